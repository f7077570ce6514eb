"""Lists the records that are still in quarantine, and runs a batch that reads them once more where they stand."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.quarantine import open_records
from lakejoin.orchestration.batch.run_batch import run_batch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import unknown
from lakejoin.orchestration.lake_state.preflight import journal_at_rest
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.planning.pending_input import Group, blamed, check_same
from lakejoin.orchestration.planning.plan_builder import PlanBuilder
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Published
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import POSITION, QUARANTINE_SCHEMA, named


def known(pipeline: Pipeline, names: Collection[str]) -> Collection[str]:
    """Return these tables and streams, or all of them where none is named. Raises `WrongUsage` for an unknown one."""
    for name in names:
        if name not in pipeline.inputs:
            raise unknown("table or stream", name, pipeline.inputs)
    return names or tuple(pipeline.inputs)


def in_quarantine(pipeline: Pipeline, spark: SparkSession, names: Collection[str]) -> DataFrame:
    """Return the records of these tables and streams that are in quarantine after the last finished batch.

    Columns of `quarantine`, of the last time that each was put there; in the order of their position.
    """
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    rows = open_records(pipeline, journal, State(spark, lake, published_snapshot(journal)))
    ordered = rows.where(F.col("table").isin(*names)).orderBy("table", POSITION)
    return ordered.select(*map(named, QUARANTINE_SCHEMA.names))


def retry(
    pipeline: Pipeline, session: Callable[[], SparkSession], names: Collection[str], *,
    progress: Progress = lambda _: None,
) -> Iterator[Published]:  # fmt: skip
    """Read the records of these tables and streams in quarantine once more, in a batch of their own.

    Each is applied to the rows like a record that comes late, at its own position. Those that are still bad stay in
    quarantine. Yields the batch; none where nothing is there. Raises `WrongUsage` while a batch is under way,
    `SourceError` for a file that is no longer what it was.
    """
    lake = Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "reading the quarantine"):
        journal = journal_at_rest(pipeline, lake)
        spark, draft = session(), PlanBuilder(pipeline, lake, journal).batch(Group((), ()))
        waiting = open_records(pipeline, journal, State(spark, lake, draft))
        files = list(_files(pipeline, journal, waiting, names, draft.planned_at))
        if not files:
            return
        plan = replace(draft, kind="retry", files=tuple(files))
        check_same(pipeline, plan)
        journal.write_plan(plan)
        yield run_batch(pipeline, spark, lake, journal, plan, progress=progress)


def _files(
    pipeline: Pipeline, journal: Journal, waiting: DataFrame, names: Collection[str], now: datetime
) -> Iterator[PlannedFile]:
    """The parts of files that hold the records; one row is read here for each file."""
    lines = waiting.groupBy("table", "file").agg(F.min("line").alias("first"), F.max("line").alias("last"))
    parts = lines.orderBy("table", "file").collect()
    for name in dict.fromkeys(row["table"] for row in parts):
        read = pipeline.inputs.get(name)
        if read is None or name not in names or not read.source_format.has_lines:
            continue
        known = journal.known_files(name)
        with blamed(read):
            own = {row["file"]: row for row in parts if row["table"] == name}
            paths = read.source_format.paths(read.source_spec, own, now)
        for row in own.values():
            file = known[row["file"]]
            path = paths.get(file.name, file.path)
            yield replace(file, path=path, from_line=row["first"] - 1, to_line=row["last"])
