"""Works off what is pending in a pipeline, from Python."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from lakejoin.orchestration.config import Pipeline, pipeline_of
from lakejoin.orchestration.planning.backlog import backlog
from lakejoin.orchestration.planning.pending_input import BatchBy
from lakejoin.storage.lake.plan import Published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Batch", "run"]


@dataclass(frozen=True)
class Batch:
    """A finished batch."""

    number: int
    """From 1, without gaps."""
    kind: str
    """`batch` where input was read; others begin or rebuild joins, take a file anew, or release what waited."""
    dates: tuple[date, ...]
    """The days of dated sources that it read, in order."""
    tables: Mapping[str, Mapping[str, int]]
    """Of each declared table and stream: records by what became of them, `quarantined` among them."""
    joins: Mapping[str, Mapping[str, int]]
    """Of each join and each group: messages, answers, emissions."""


def run(  # noqa: PLR0913 - the options of `lakejoin run`
    pipeline: str | os.PathLike[str] | Pipeline,
    spark: "SparkSession | None" = None,
    *,
    start: date | None = None,
    end: date | None = None,
    batch_by: BatchBy = "size",
    accept: Sequence[str] = (),
    rebuild: Sequence[str] = (),
    flush: bool = False,
) -> list[Batch]:
    """Work off what is pending, as `lakejoin run` does, and return the batches that it took.

    pipeline: the configuration file, or what `lakejoin.orchestration.config.load` made of it. spark: a session with
    Delta Lake, in whose application the run then works by a session beside it; by default one of the pipeline's own,
    which is started if anything is pending. start, end: only days of dated sources from and up to these, inclusive.
    batch_by: small days together (`size`), one batch a day (`date`), or one for everything (`all`). accept: rules of
    the gate that may be violated. rebuild: joins that are first computed anew. flush: at the end, join the records of
    streams that still wait for their grace period.

    Raises `LakejoinError`s; what was finished before stays so.
    """
    from lakejoin.orchestration.runs.run import run_batches
    from lakejoin.storage.spark.session import session_beside, start_session

    declared = pipeline_of(pipeline)
    dates = None if start is None and end is None else (start or date.min, end or date.max)
    if not rebuild and not flush and backlog(declared, datetime.now(UTC), dates=dates).is_empty:
        return []
    if spark is None:
        session = start_session(**declared.session, idle=declared.engine.stays())
    else:
        session = session_beside(spark, declared.spark.conf)
    done = run_batches(
        declared, session, dates=dates, batch_by=batch_by, accept=accept, rebuild=rebuild, flush=flush
    )
    return [_batch(batch) for batch in done]


def _batch(batch: Published) -> Batch:
    return Batch(batch.batch, batch.kind, batch.dates, batch.tables, batch.joins)
