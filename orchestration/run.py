"""Works off what is pending: an unfinished batch first, then new joins, then new input, batch after batch."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version

from pyspark.sql import SparkSession

from orchestration.bad_records import check_bad_ratio
from orchestration.batch import run_batch
from orchestration.batch_context import Progress, bases_of, state_tables
from orchestration.config import Pipeline
from orchestration.folding import tidy_up
from orchestration.log_recovery import settle_logs
from orchestration.pending import BatchBy, Dates, Group, check_unchanged, cut, pending_groups
from orchestration.recovery import check_progress, check_shapes, new_joins, shapes_of, still_declared
from orchestration.spark_checks import check_expressions
from orchestration.spark_failures import explained
from storage.lake import Lake, rows_of
from storage.lock import writing
from storage.maintenance import Folds
from storage.plan import Journal, Plan, Published
from storage.sources import csv_counter


def run_batches(  # noqa: PLR0913 - the options of `lakejoin run`
    pipeline: Pipeline,
    spark: SparkSession,
    *,
    dates: Dates | None = None,
    batch_by: BatchBy = "date",
    batch_rows: int | None = None,
    batches: int | None = None,
    accept: Sequence[str] = (),
    settle: timedelta | None = None,
    flush: bool = False,
    progress: Progress = lambda _: None,
) -> Iterator[Published]:
    """Work off what is pending, one finished batch after the other.

    `dates`: inclusive range of `{date}` values. `batch_by`: one batch per date, or one for everything. `batch_rows`:
    cut batches to about so many records. `batches`: stop after so many. `accept`: rules that may be violated.
    `flush`: at the end, release what waits for its grace period to pass, in a batch of its own.
    Raises `LakejoinError`s; whatever was yielded before stays published.
    """
    lake = Lake(pipeline.lake)
    with writing(lake):
        settle_logs(pipeline, lake)
        journal = Journal(lake)
        check_shapes(pipeline, journal)
        check_progress(pipeline, lake, journal)
        check_expressions(pipeline, spark)
        plans = _plans(pipeline, spark, lake, journal, dates, batch_by, batch_rows, settle, flush)
        for done, plan in enumerate(plans, start=1):
            with explained(pipeline, plan):
                published = run_batch(pipeline, spark, lake, journal, plan, accept=accept, progress=progress)
            yield published
            if pipeline.maintenance.when == "after_batch":
                with explained(pipeline, None):
                    tidy_up(
                        pipeline, spark, lake, journal, _Drafts(pipeline, lake, journal).batch(Group((), ()))
                    )
            if done == batches:
                return


def _plans(  # noqa: PLR0913, PLR0917 - the same options
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, dates: Dates | None, batch_by: BatchBy,
    batch_rows: int | None, settle: timedelta | None, flush: bool,
) -> Iterator[Plan]:  # fmt: skip
    """Plans in their order; each is committed when it is asked for, after the one before it was published."""
    if journal.unfinished is not None:
        unfinished = still_declared(pipeline, journal.unfinished)
        check_unchanged(pipeline, unfinished)
        yield unfinished
    draft = _Drafts(pipeline, lake, journal)
    if new := new_joins(pipeline, lake, journal):
        yield _commit(journal, draft.bootstrap(new))
    groups = pending_groups(
        pipeline, journal, now=datetime.now(UTC), counter=csv_counter(spark), dates=dates, batch_by=batch_by,
        settle=settle,
    )  # fmt: skip
    for group in groups:
        for piece in cut(group, batch_rows):
            plan = draft.batch(piece)
            check_bad_ratio(pipeline, spark, plan)
            yield _commit(journal, plan)
    if flush and journal.last and journal.last.waits:
        yield _commit(journal, draft.flush())


def _commit(journal: Journal, plan: Plan) -> Plan:
    journal.write_plan(plan)
    return plan


class _Drafts:
    """Plans as they would be written now."""

    def __init__(self, pipeline: Pipeline, lake: Lake, journal: Journal) -> None:
        self._pipeline, self._lake, self._journal = pipeline, lake, journal

    def bootstrap(self, joins: Sequence[str]) -> Plan:
        """The first batch of joins that were added to a lake with rows."""
        return replace(self.batch(Group((), ())), kind="bootstrap", bootstrap=tuple(joins))

    def flush(self) -> Plan:
        """A batch that releases everything that waits for its grace period."""
        return replace(self.batch(Group((), ())), kind="flush")

    def batch(self, group: Group) -> Plan:
        """The batch that reads a group of files."""
        previous = self._journal.plans[-1] if self._journal.plans else None
        now = datetime.now(UTC)
        versions, folded, floors = self._pinned(bases_of(self._pipeline))
        return Plan(
            batch=len(self._journal.plans) + 1,
            kind="batch",
            # the clock never goes back, whatever the machine's does
            planned_at=max(now, previous.planned_at) if previous else now,
            files=group.files,
            versions=versions,
            folded=folded,
            floors=floors,
            joins=tuple(self._pipeline.joins),
            bootstrap=(),
            configuration=self._pipeline.fingerprint,
            shapes=(dict(previous.shapes) if previous else {}) | shapes_of(self._pipeline),
            code=code_version(),
            clocks=self._journal.last.clocks if self._journal.last else {},
            flushed=self._journal.flushed,
        )

    def _pinned(self, bases: Collection[str]) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
        """Versions of the state, and how far its bases are folded, each from one reading of its log."""
        versions, folded = {}, {}
        for table in state_tables(self._pipeline):
            snapshot = self._lake.snapshot(table)
            if snapshot is None:
                continue
            versions[table] = snapshot.version
            if table in bases:
                folded[table] = snapshot.transaction(self._journal.application(f"fold/{table}")) or 0
        folds = Folds(self._lake)
        floors = {
            name: folds.floor(rows_of(name), folded.get(rows_of(name), 0)) for name in self._pipeline.tables
        }
        return versions, folded, {name: floor for name, floor in floors.items() if floor is not None}


def code_version() -> str:
    """Version of the code that plans the batch."""
    try:
        return version("lakejoin")
    except PackageNotFoundError:
        return "unknown"  # run from a source tree that is not installed
