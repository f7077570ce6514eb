"""Compares a table with a snapshot beside its change data, and makes it equal to that in a batch of its own."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.run_batch import run_batch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.orchestration.errors import WrongUsage, unknown
from lakejoin.orchestration.lake_state.preflight import journal_at_rest
from lakejoin.orchestration.planning.input_checks import check_deleted
from lakejoin.orchestration.planning.input_records import InputRecords, reading
from lakejoin.orchestration.planning.pending_input import Group, blamed
from lakejoin.orchestration.planning.plan_builder import PlanBuilder
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Plan, Published
from lakejoin.storage.sources.formats.source_format import Look
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.planned.snapshots import last_place, snapshots
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.changelog.snapshot_changes import is_found_gone
from lakejoin.transforms.model.schemas import POSITION_TYPE, REASON, SEQUENCE, named
from lakejoin.transforms.model.specs import TableSpec

_SHOWN = 10


class BadSnapshot(LakejoinError):
    """A snapshot cannot say what a table should be: it has bad records, or a key twice."""


@dataclass(frozen=True)
class Differences:
    """In what a table differs from a snapshot of its source."""

    table: str
    files: tuple[PlannedFile, ...]
    rows: int
    """Of the snapshot."""
    at: str
    """The sequence that it has among the changes, as JSON."""
    missing: int
    """Keys of the snapshot that the table has not."""
    different: int
    gone: int
    """Keys of the table that the snapshot has not."""
    examples: tuple[tuple[str, str], ...]
    """Some of the keys as JSON, with what is the matter."""

    def __str__(self) -> str:
        """What a person wants to know, in lines."""
        more = f" and {len(self.files) - 1} more" if self.files[1:] else ""
        snapshot = f"{self.table} and {self.files[0].name}{more} ({self.rows:,} rows, as of {self.at})"
        if not self.count:
            return f"{snapshot} are equal"
        counts = f"{self.missing:,} missing, {self.different:,} different, {self.gone:,} not in the snapshot"
        lines = [f"{snapshot} differ in {self.count:,} keys: {counts}"]
        return "\n".join([*lines, *[f"  {key}: {what}" for what, key in self.examples]])

    @property
    def count(self) -> int:
        """How many keys differ."""
        return self.missing + self.different + self.gone


def reconcile(
    pipeline: Pipeline, session: Callable[[], SparkSession], name: str, *,
    at: str | None = None, mend: bool = False, progress: Progress = lambda _: None,
) -> Iterator[Differences | Published]:  # fmt: skip
    """Compare a table with the last snapshot of its `reconcile` source; yields in what they differ.

    `at`: the sequence of the last change that is in the snapshot, as JSON; what is newer stays out of the comparison.
    By default the snapshot is as new as the newest change that was read, or newer. `mend`: make the table equal to the
    snapshot, and the joins with it; yields the batch. Raises `WrongUsage`, `BadSnapshot`, `TooManyDeleted`.
    """
    table, lake = _table(pipeline, name), Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "comparing with a snapshot"):
        journal, spark = journal_at_rest(pipeline, lake), session()
        draft = PlanBuilder(pipeline, lake, journal).batch(Group((), _last_snapshot(table, spark)))
        plan = _placed(draft, table, journal, State(spark, lake, draft), at)
        with reading(pipeline, spark, plan) as read:
            found = _differences(read, name)
            yield found
            if mend and found.count:
                check_deleted(pipeline, read)
                journal.write_plan(plan)
                yield run_batch(pipeline, spark, lake, journal, plan, progress=progress, read=read)


def _table(pipeline: Pipeline, name: str) -> Table:
    if name not in pipeline.tables:
        raise unknown("table", name, pipeline.tables)
    table = pipeline.tables[name]
    if table.reconcile is None:
        raise WrongUsage(
            f"{name} has no snapshots to be compared with; write `reconcile: {{format: …, path: …}}` under the table"
        )
    return table


def _last_snapshot(table: Table, spark: SparkSession) -> tuple[PlannedFile, ...]:
    """The files of the last snapshot. Raises `WrongUsage` where there is none."""
    read = table.of_snapshots
    with blamed(read):
        parts = read.source_format.unread(read.source_spec, {}, Look(datetime.now(UTC)), spark)
        found = snapshots(read.source_spec.path, parts)
    if not found:
        raise WrongUsage(f"{read.source.place}: holds no snapshot of {table.name}")
    return tuple(found[-1])


def _placed(draft: Plan, table: Table, journal: Journal, state: State, at: str | None) -> Plan:
    """The plan with the place of the snapshot among the changes. Raises `WrongUsage`."""
    known, spec = journal.known_files(table.name), table.spec
    if not known or not state.has_rows(table.name):
        raise WrongUsage(f"{table.name} has no rows yet; `lakejoin run` reads its change data first")
    if spec.sequence == POSITION_TYPE and len(known) > 1 and not table.source_format.is_dense:
        raise WrongUsage(
            f"{table.name} is read from {len(known)} partitions, and no sequence says which of their changes are newer "
            "than a snapshot; declare `sequence`"
        )
    day, file, line = last_place(known)
    place = json.dumps({"date": day and day.isoformat(), "file": file, "line": line})
    if at is None:
        at = place if spec.sequence == POSITION_TYPE else _greatest(spec, state)
    elif not _is_sequence(at, spec, state.spark):
        example = json.dumps(dict.fromkeys(spec.sequence.names, "…"), ensure_ascii=False)
        raise WrongUsage(f"--at {at}: is no sequence of {table.name}; expected {example}, as `show` has it")
    return replace(draft, kind="reconcile", at=at, place=place)


def _greatest(table: TableSpec, state: State) -> str:
    """The greatest sequence of a table, that of a tombstone or of a purged one included."""
    rows = state.all_rows(table, (SEQUENCE,))
    floor = F.from_json(F.lit(state.plan.floors.get(table.name)), table.sequence)
    greatest = F.to_json(F.greatest(F.max(SEQUENCE), floor)).alias("greatest")
    return str(aggregated(rows, greatest)["greatest"])


def _is_sequence(text: str, table: TableSpec, spark: SparkSession) -> bool:
    read = F.from_json(F.lit(text), table.sequence)
    parts = [
        read[name].isNotNull().alias(f"part{number}") for number, name in enumerate(table.sequence.names)
    ]
    optional = {0} if table.sequence == POSITION_TYPE else set[int]()  # the day
    row = spark.range(1).select(*parts).first()
    assert row is not None
    return all(has or number in optional for number, has in enumerate(row))


def _differences(read: InputRecords, name: str) -> Differences:
    """Compare; the records stay kept for the batch. Raises `BadSnapshot`."""
    table, files, records = read.pipeline.tables[name].spec, read.plan.files_of(name), read.kept(name)
    found = read.differences[name]
    if found["bad"]:
        first = records.where(F.col(REASON).isNotNull()).select(REASON).first()
        raise BadSnapshot(
            f"{files[0].path}: {found['bad']:,} records cannot be read (the first: {first and first[0]}). Expected "
            "none: what a snapshot does not tell, nobody can compare. Correct it, or how it is declared, then run again"
        )
    key = [named(column) for column in table.key]
    as_text = F.to_json(F.struct(*key))
    keys = records.where(~is_found_gone()).groupBy(*key).count().where("count > 1")
    if twice := keys.select(as_text).first():
        raise BadSnapshot(
            f"{files[0].path}: has the key {twice[0]} twice, expected once; correct it, then run again"
        )
    what = F.when(is_found_gone(), "not in the snapshot").otherwise("missing, or another row")
    shown = records.orderBy(*key).select(what, as_text).limit(_SHOWN).collect()
    return Differences(
        table=name, files=tuple(files), rows=sum(file.records for file in files), at=read.plan.at,
        missing=found["missing"], different=found["different"], gone=found["gone"],
        examples=tuple((row[0], row[1]) for row in shown),
    )  # fmt: skip
