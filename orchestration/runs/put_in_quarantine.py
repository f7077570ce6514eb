"""Puts records into quarantine that somebody names: the batch that reads them is done without them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.quarantine import open_records
from lakejoin.orchestration.batch.run_batch import run_batch
from lakejoin.orchestration.batch.tables.replaced_files import check_truncates
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage, unknown
from lakejoin.orchestration.lake_state.active_joins import still_wanted
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.log_checks import settle_logs
from lakejoin.orchestration.lake_state.preflight import check_progress
from lakejoin.orchestration.lake_state.sql_checks import check_expressions
from lakejoin.orchestration.planning.pending_input import Group, blamed, check_unchanged
from lakejoin.orchestration.planning.plan_builder import PlanBuilder
from lakejoin.orchestration.runs.abandon import give_up
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Plan, Published, RecordPlace
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.refused_records import BY_HAND


def place_of(table: str, text: str) -> RecordPlace:
    """The record that a text names as FILE:LINE. Raises `WrongUsage`."""
    file, _, line = text.rpartition(":")
    if not file or not line.isascii() or not line.isdigit():
        raise WrongUsage(
            f"--record {text}: expected FILE:LINE, as `lakejoin quarantine list` and messages have it"
        )
    return RecordPlace(table, file, int(line))


def put_in_quarantine(
    pipeline: Pipeline, session: Callable[[], SparkSession], places: Sequence[RecordPlace], *,
    progress: Progress = lambda _: None,
) -> Iterator[Published]:  # fmt: skip
    """Do a batch without some records of one table or stream; they wait in quarantine, and a retry reads them again.

    Those that the batch under way reads: it is given up and planned again without them. Those of a table that were read
    before: their files are taken anew without them; a batch under way is given up first, and its input is read by the
    next run. Yields the batches. Raises `WrongUsage` for records that cannot be put there, and what a run raises.
    """
    _check_can_be_named(pipeline, places[0].table)
    lake = Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "putting records into quarantine"):
        settle_logs(pipeline, lake)
        journal = Journal(lake)
        check_shapes(pipeline, journal)
        check_progress(pipeline, lake, journal)
        going, read_before = journal.unfinished, list[PlannedFile]()
        if going is not None:
            _check_can_be_given_up(pipeline, going)
        if going is None or not all(_reads(going, place) for place in places):
            read_before = _files_read_before(pipeline, journal, places)
        spark, anew = session(), tuple[str, ...]()
        check_expressions(pipeline, spark)
        if going is not None:
            given_up, anew = give_up(pipeline, spark, lake, journal, going, progress=progress)
            yield given_up
        plan = _without(pipeline, spark, lake, journal, places, going=going, read_before=read_before)
        journal.write_plan(plan)
        yield run_batch(pipeline, spark, lake, journal, plan, progress=progress)
    if anew:
        yield from run_batches(pipeline, spark, rebuild=anew, batches=1, progress=progress)


def _without(  # noqa: PLR0913 - where the plan is made, and of what
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, places: Sequence[RecordPlace],
    *, going: Plan | None, read_before: Sequence[PlannedFile],
) -> Plan:  # fmt: skip
    """The batch that refuses the records: the one that was given up once more, or one that takes files anew."""
    draft = PlanBuilder(pipeline, lake, journal)
    if read_before or going is None:
        plan = draft.replace(read_before)
        before = tuple(_by_hand(pipeline, spark, lake, journal, plan))
        check_truncates(pipeline, spark, lake, journal, plan)
    else:
        plan, before = replace(draft.batch(Group((), tuple(going.files))), kind=going.kind), going.refused
    return replace(plan, refused=tuple(dict.fromkeys([*before, *places])))


def _check_can_be_named(pipeline: Pipeline, name: str) -> None:
    if name not in pipeline.inputs:
        raise unknown("table or stream", name, pipeline.inputs)
    if not pipeline.inputs[name].source_format.has_lines:
        form = pipeline.inputs[name].source.format
        raise WrongUsage(f"{name}: records of format {form!r} have no lines to be named by")


def _check_can_be_given_up(pipeline: Pipeline, plan: Plan) -> None:
    if plan.kind == "reconcile":
        raise WrongUsage(
            f"batch {plan.batch}, which is under way, compares a table with a snapshot of it: `lakejoin run "
            f"{pipeline.path}` ends it"
        )
    if plan.kind == "migrate":
        raise WrongUsage(
            f"batch {plan.batch}, which is under way, takes in columns and reads no records: "
            f"`lakejoin migrate {pipeline.path}` ends it"
        )
    still_wanted(pipeline, plan)
    check_unchanged(pipeline, plan)


def _reads(plan: Plan, place: RecordPlace) -> bool:
    """Whether a batch reads a record."""
    files = [file for file in plan.files_of(place.table) if file.name == place.file]
    return any(file.from_line < place.line <= file.to_line for file in files)


def _files_read_before(
    pipeline: Pipeline, journal: Journal, places: Sequence[RecordPlace]
) -> list[PlannedFile]:
    """The files of records of finished batches, as far as they were read. Raises `WrongUsage`, `SourceError`."""
    name = places[0].table
    known = journal.known_files(name, finished=True)
    for place in places:
        if place.file not in known or not 0 < place.line <= known[place.file].to_line:
            raise WrongUsage(
                f"--record {place.file}:{place.line}: no batch has read that line of {name}, and the one under way, if "
                "there is one, does not read all of these records"
            )
    if name in pipeline.streams or pipeline.tables[name].versioned:
        what = "a stream" if name in pipeline.streams else "versioned"
        raise WrongUsage(f"{name} is {what}: what its records met in a finished batch cannot be taken back")
    read = pipeline.inputs[name]
    with blamed(read):
        files = [known[file] for file in dict.fromkeys(place.file for place in places)]
        names = {file.name for file in files}
        paths = read.source_format.paths(read.source_spec, names, datetime.now(UTC))
        starts = journal.first_lines(name)
        whole = [
            replace(file, path=paths.get(file.name, file.path), from_line=starts[file.name]) for file in files
        ]
        read.source_format.check_same(read.source_spec, whole, thoroughly=True)
    return whole


def _by_hand(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, draft: Plan
) -> Iterator[RecordPlace]:
    """The records of a plan's files that somebody put into quarantine before, and that are still there."""
    names = [file.name for file in draft.files]
    waiting = open_records(pipeline, journal, State(spark, lake, draft))
    rows = waiting.where((F.col("reason") == BY_HAND) & F.col("file").isin(*names))
    for row in rows.select("table", "file", "line").orderBy("table", "file", "line").collect():
        yield RecordPlace(row["table"], row["file"], row["line"])
