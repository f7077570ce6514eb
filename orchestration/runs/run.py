"""Works off what is pending: an unfinished batch first, then new joins, then new input, batch after batch."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import SparkSession

from expectations.rules import rules_for
from orchestration.batch.context import Progress
from orchestration.batch.join_stages import JOIN_STAGES
from orchestration.batch.run_batch import run_batch
from orchestration.batch.tables.replaced_files import check_truncates
from orchestration.config import Pipeline
from orchestration.errors import unknown
from orchestration.lake_state.active_joins import joins_to_rebuild, new_joins
from orchestration.lake_state.config_fingerprints import check_shapes
from orchestration.lake_state.fold_progress import finished_state
from orchestration.lake_state.log_checks import settle_logs
from orchestration.lake_state.preflight import check_progress
from orchestration.lake_state.sql_checks import check_expressions
from orchestration.maintenance.folds import tidy_up
from orchestration.planning.ambiguous_input import check_unambiguous
from orchestration.planning.input_checks import check_bad_ratio, check_deleted, check_schemas
from orchestration.planning.input_records import InputRecords, reading
from orchestration.planning.pending_input import BatchBy, cut, pending_groups
from orchestration.planning.plan_builder import PlanBuilder, under_way
from orchestration.planning.replaced_files import exported_again
from orchestration.spark_errors import explained
from storage.errors import LakejoinError
from storage.lake.journal import Journal
from storage.lake.layout import Lake
from storage.lake.lock import writing
from storage.lake.plan import Plan, Published
from storage.sources.files.source_files import Dates
from storage.sources.planned.planned_file import PlannedFile


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
    rebuild: Collection[str] = (),
    replace: date | str | None = None,
    progress: Progress = lambda _: None,
) -> Iterator[Published]:
    """Work off what is pending, one finished batch after the other.

    `dates`: inclusive range of `{date}` values. `batch_by`: one batch per date, or one for everything. `batch_rows`:
    split batches to about so many records. `batches`: stop after so many. `accept`: rules that may be violated.
    `flush`: at the end, release what waits for its grace period to pass, in a batch of its own. `rebuild`: joins that
    begin anew, as they are declared now, before new input is read; until then readers see what they were.
    `replace`: a `{date}`, or the name of a file: what was exported again is taken in the place of what it was.
    Raises `LakejoinError`s; whatever was yielded before stays published.
    """
    check_accepted(pipeline, accept)
    lake, rebuilt = Lake(pipeline.lake), joins_to_rebuild(pipeline, rebuild)
    asked = _Asked(dates, batch_by, batch_rows, settle, flush, rebuilt, replace)
    with writing(lake), explained(pipeline, "planning a batch"):
        settle_logs(pipeline, lake)
        journal = Journal(lake)
        check_shapes(pipeline, journal, rebuilt)
        check_progress(pipeline, lake, journal, rebuilt)
        check_expressions(pipeline, spark)
        for done, planned in enumerate(_plans(pipeline, spark, lake, journal, asked), start=1):
            with planned.held:
                published = run_batch(
                    pipeline,
                    spark,
                    lake,
                    journal,
                    planned.plan,
                    accept=accept,
                    progress=progress,
                    read=planned.read,
                )
            yield published
            if pipeline.maintenance.when == "after_batch":
                with explained(pipeline, "maintenance"):
                    finished = finished_state(pipeline, lake, journal, datetime.now(UTC))
                    tidy_up(pipeline, spark, lake, journal, finished)
            if done == batches:
                return


@dataclass(frozen=True)
class _Asked:
    """What a run shall work off."""

    dates: Dates | None
    batch_by: BatchBy
    batch_rows: int | None
    settle: timedelta | None
    flush: bool
    rebuilt: Collection[str]
    replace: date | str | None


@dataclass(frozen=True)
class _Planned:
    """A committed plan, with what was read of its input to check it."""

    plan: Plan
    read: InputRecords | None = None
    held: ExitStack = field(default_factory=ExitStack)
    """Frees what was read."""


def _plans(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, asked: _Asked
) -> Iterator[_Planned]:
    """Plans in their order; each is committed when it is asked for, after the one before it was published."""
    finished = None  # the batch that was under way, if there was one
    for finished in under_way(pipeline, lake, journal, asked.rebuilt):
        yield _Planned(finished)
    draft, now = PlanBuilder(pipeline, lake, journal), datetime.now(UTC)
    if new := new_joins(pipeline, lake, journal, asked.rebuilt):
        yield _commit(journal, draft.bootstrap(new))
    again = asked.replace and exported_again(
        pipeline, journal, asked.replace, now=now, spark=spark, finished=finished
    )
    if again:
        plan = draft.replace(again)
        check_schemas(pipeline, spark, plan.files)
        check_truncates(pipeline, spark, lake, journal, plan)
        yield _read(pipeline, spark, journal, plan, asks=True)
    groups = pending_groups(
        pipeline, journal, now=now, spark=spark, dates=asked.dates, batch_by=asked.batch_by, settle=asked.settle,
    )  # fmt: skip
    for group in groups:
        pieces = cut(group, asked.batch_rows, pipeline.snapshot_tables)
        with _discarding(pipeline, group.files):
            check_schemas(pipeline, spark, group.files)
            if len(pieces) > 1:  # one piece alone does not tell what the others say to a question
                with reading(pipeline, spark, draft.batch(group), keeps=False) as read:
                    check_unambiguous(read, journal)
        for piece in pieces:
            yield _read(pipeline, spark, journal, draft.batch(piece), asks=len(pieces) == 1)
    if asked.flush and journal.last and journal.last.waits:
        yield _commit(journal, draft.flush())


def _read(pipeline: Pipeline, spark: SparkSession, journal: Journal, plan: Plan, *, asks: bool) -> _Planned:
    """Commit a plan if its input is as declared. `asks`: also if it can be read in one way only."""
    with ExitStack() as stack:
        read = stack.enter_context(reading(pipeline, spark, plan))
        with _discarding(pipeline, plan.files):
            if asks:
                check_unambiguous(read, journal)
            check_bad_ratio(pipeline, read)
            check_deleted(pipeline, read)
        return replace(_commit(journal, plan), read=read, held=stack.pop_all())


@contextmanager
def _discarding(pipeline: Pipeline, files: Sequence[PlannedFile]) -> Iterator[None]:
    """Forget what was made for a batch, such as the dump of a database, if a check refuses it."""
    try:
        yield
    except LakejoinError:
        for name, table in pipeline.inputs.items():
            if parts := [file for file in files if file.table == name]:
                table.source_format.discard(table.source_spec, parts)
        raise


def _commit(journal: Journal, plan: Plan) -> _Planned:
    journal.write_plan(plan)
    return _Planned(plan)


def check_accepted(pipeline: Pipeline, names: Collection[str]) -> None:
    """Refuse a mistyped rule at once, and not after the batch that it should have let pass.

    Raises `WrongUsage` for a name that is no rule of any declared join that has a gate.
    """
    gates = [(JOIN_STAGES[type(join)].gate, join.how) for join in pipeline.joins.values()]
    kinds = {gate[how] for gate, how in gates if gate}
    known = sorted({rule.name for kind in kinds for rule in rules_for(kind)})
    for name in names:
        if name not in known:
            raise unknown("rule", name, known)
