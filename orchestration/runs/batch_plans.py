"""Plans the batches of a run, and commits each plan when the batch before it is published."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from lakejoin.orchestration.batch.tables.replaced_files import check_truncates
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import new_joins
from lakejoin.orchestration.planning.ambiguous_input import check_unambiguous
from lakejoin.orchestration.planning.input_checks import check_bad_ratio, check_deleted, check_schemas
from lakejoin.orchestration.planning.input_records import InputRecords, reading
from lakejoin.orchestration.planning.pending_input import BatchBy, Group, cut, pending_groups
from lakejoin.orchestration.planning.plan_builder import PlanBuilder, under_way
from lakejoin.orchestration.planning.replaced_files import exported_again
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.files.source_files import Dates
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.spark import kept_frames


@dataclass(frozen=True)
class Asked:
    """What a run shall work off; see `run_batches`."""

    dates: Dates | None
    batch_by: BatchBy
    batch_rows: int | None
    settle: timedelta | None
    flush: bool
    rebuilt: Collection[str]
    replace: date | str | None


@dataclass(frozen=True)
class PlannedBatch:
    """A plan, with what was read of its input to check it."""

    plan: Plan
    read: InputRecords | None = None
    held: ExitStack = field(default_factory=ExitStack)
    """Frees what was read."""


@dataclass(frozen=True)
class BatchPlans:
    """Plans in their order, each committed when it is asked for."""

    pipeline: Pipeline
    spark: SparkSession
    lake: Lake
    journal: Journal
    asked: Asked

    def __iter__(self) -> Iterator[PlannedBatch]:
        """Yield the batch that was cut off, then new joins, then input. Raises what is wrong with it."""
        pipeline, journal, asked = self.pipeline, self.journal, self.asked
        finished = None  # the batch that was under way, if there was one
        for finished in under_way(pipeline, self.lake, journal, asked.rebuilt):
            yield PlannedBatch(finished)
        now = datetime.now(UTC)
        if new := new_joins(pipeline, self.lake, journal, asked.rebuilt):
            yield self._commit(PlannedBatch(self._draft.bootstrap(new)))
        again = asked.replace and exported_again(
            pipeline, journal, asked.replace, now=now, spark=self.spark, finished=finished
        )
        if again:
            plan = self._draft.replace(again)
            check_schemas(pipeline, self.spark, plan.files)
            check_truncates(pipeline, self.spark, self.lake, journal, plan)
            yield self._commit(self._kept_if_checked(plan, asks=True))
        for group in pending_groups(
            pipeline, journal, now=now, spark=self.spark, dates=asked.dates, batch_by=asked.batch_by,
            most=asked.batch_rows or kept_frames.SMALL, settle=asked.settle,
        ):  # fmt: skip
            are_together = asked.batch_by == "size" and len(group.dates) > 1
            yield from self._of_days(group) if are_together else self._of_group(group)
        if asked.flush and journal.last and journal.last.waits:
            yield self._commit(PlannedBatch(self._draft.flush()))

    @property
    def _draft(self) -> PlanBuilder:
        return PlanBuilder(self.pipeline, self.lake, self.journal)

    def _of_days(self, group: Group) -> Iterator[PlannedBatch]:
        """Plans for days that go together; if they are refused, for each by itself.

        So what is wrong with one day does not keep back those before it.
        """
        planned = None
        with suppress(LakejoinError):  # a day's own plan will say it
            check_schemas(self.pipeline, self.spark, group.files)
            (piece,) = cut(group, None)
            planned = self._checked(self._draft.batch(piece), asks=True)
        if planned is not None:
            yield self._commit(planned)
            return
        for day in group.by_date():
            yield from self._of_group(day)

    def _of_group(self, group: Group) -> Iterator[PlannedBatch]:
        pieces = cut(group, self.asked.batch_rows, self.pipeline.snapshot_tables)
        with self._discarding(group.files):
            check_schemas(self.pipeline, self.spark, group.files)
            if len(pieces) > 1:  # one piece alone does not tell what the others say to a question
                with reading(self.pipeline, self.spark, self._draft.batch(group), keeps=False) as read:
                    check_unambiguous(read, self.journal)
        for piece in pieces:
            yield self._commit(self._kept_if_checked(self._draft.batch(piece), asks=len(pieces) == 1))

    def _kept_if_checked(self, plan: Plan, *, asks: bool) -> PlannedBatch:
        with self._discarding(plan.files):
            return self._checked(plan, asks=asks)

    def _checked(self, plan: Plan, *, asks: bool) -> PlannedBatch:
        """A plan whose input is as declared. `asks`: and can be read in one way only."""
        with ExitStack() as stack:
            read = stack.enter_context(reading(self.pipeline, self.spark, plan))
            if asks:
                check_unambiguous(read, self.journal)
            check_bad_ratio(self.pipeline, read)
            check_deleted(self.pipeline, read)
            return PlannedBatch(plan, read, stack.pop_all())

    @contextmanager
    def _discarding(self, files: Sequence[PlannedFile]) -> Iterator[None]:
        """Forget what was made for a batch, such as the dump of a database, if a check refuses it."""
        try:
            yield
        except LakejoinError:
            for name, table in self.pipeline.inputs.items():
                if parts := [file for file in files if file.table == name]:
                    table.source_format.discard(table.source_spec, parts)
            raise

    def _commit(self, planned: PlannedBatch) -> PlannedBatch:
        with planned.held:
            self.journal.write_plan(planned.plan)
            return replace(planned, held=planned.held.pop_all())
