"""Maintains a lake step by step, each under the lake's lock, so that a batch that waits goes between two."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.maintenance.steps import WORKS, Step, Upkeep
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.delta_log.live_files import Extent, extent
from lakejoin.storage.errors import LakeBusy, LakejoinError
from lakejoin.storage.lake.layout import SCRATCH, Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.spark.session import jobs_called


@dataclass(frozen=True)
class Done:
    """A step that was done, or why it was not."""

    step: Step
    before: Extent | None = None
    """What the table took; None for one that was not there."""
    after: Extent | None = None
    skipped: str = ""
    """Why the step is left for later."""
    failed: bool = False
    """Whether the step was tried and failed, and was not only left for later."""


def find_steps(pipeline: Pipeline) -> list[Step]:
    """Return every step that would change anything as the lake is now, due or not. Starts no JVM."""
    upkeep = Upkeep(pipeline, Lake(pipeline.lake), datetime.now(UTC))
    return [step for work in WORKS for step in upkeep.steps(work)]


def maintain(
    pipeline: Pipeline,
    session: Callable[[], SparkSession],
    *,
    everything: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Done]:
    """Do what is due, or with `everything` whatever would change anything; yields each step once it is over.

    `session` is called when the first step needs Spark. A step that fails, or that finds a batch at work, is yielded
    with the reason, and the others go on. Raises as a run does where lake and configuration do not fit.
    """
    lake = Lake(pipeline.lake)
    for work in WORKS:
        # looked for here: a fold makes files to compact, a compaction files to remove
        for step in Upkeep(pipeline, lake, datetime.now(UTC)).steps(work):
            if not (step.finding.due or everything):
                continue
            progress(f"{work} {step.table}")
            named: AbstractContextManager[None] = nullcontext()
            if step.needs_spark:  # starting takes long, and nobody should wait for it
                named = jobs_called(session(), f"{pipeline.name}: {work} {step.table}")
            try:
                with named:
                    done = _do(pipeline, lake, step, session, everything=everything)
            except LakejoinError as error:
                busy = isinstance(error, LakeBusy)
                yield Done(step, skipped=_first_line(error), failed=not busy)
                if busy:
                    return
                continue
            if done is not None:
                yield done


def _do(
    pipeline: Pipeline, lake: Lake, step: Step, session: Callable[[], SparkSession], *, everything: bool
) -> Done | None:
    """Do a step, if it is still to be done when the lake is free."""
    with writing(lake, maintenance=True):
        upkeep = Upkeep(pipeline, lake, datetime.now(UTC), only=step.table)
        found = upkeep.steps(step.work)
        if not found or not (found[0].finding.due or everything):
            return None
        before = _extent(lake, step)
        with explained(pipeline, "maintenance"):
            upkeep.do(found[0], session)
        return Done(found[0], before, _extent(lake, step))


def _extent(lake: Lake, step: Step) -> Extent | None:
    if step.table == SCRATCH or lake.snapshot(step.table) is None:
        return None
    return extent(lake.path(step.table))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
