"""Applies the source records of a batch to one declared table, beside the rows that they met."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.first_load import TableLoad
from lakejoin.orchestration.batch.tables.apply_to_table import apply_to_table
from lakejoin.orchestration.batch.tables.record_survey import RecordKinds, first_truncate, kinds_of
from lakejoin.orchestration.batch.tables.verdicts import COUNTS, LOGGED, is_logged, records_schema
from lakejoin.orchestration.batch.tables.versioned import EXPIRED, in_time
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.event_time import UNTIMELY, has_time, ordered_by_time, refuse_times
from lakejoin.transforms.model.keys import KeyTotals
from lakejoin.transforms.model.refused_records import is_by_hand, with_refused_deletes
from lakejoin.transforms.model.schemas import (
    CHANGED,
    CONTEXT,
    CURRENT,
    DELETED,
    DERIVED,
    HASH,
    INSERTED,
    OP,
    POSITION,
    POSITION_TYPE,
    REASON,
    SEQUENCE,
    TIME,
    UNAVAILABLE,
    VERDICT,
    changes_schema,
    empty,
    named,
    rows_schema,
)
from lakejoin.transforms.model.specs import TableSpec

_ROWS_ONLY = RecordKinds(beside=1)
"""What is assumed of a few flat records without a job that looks: some may not be acceptable."""
_AT = "_lj_at"


class TruncateStopped(LakejoinError):
    """The source emptied a table, and the configuration does not say that Lakejoin may do the same."""


@dataclass(frozen=True)
class TableBatch:
    """What a batch knows of a table."""

    spec: TableSpec
    records: DataFrame
    """Every record with its status: columns of `changes_schema`, reason, detail, raw."""
    before: DataFrame
    """The stored rows of the batch's keys as they were."""
    counts: dict[str, int]
    inserts: int = 0
    """How many of the changes are plain inserts."""
    logged: int = 0
    """How many rows `changes` has."""
    clock: datetime | None = None
    """Of a versioned table: its greatest event time after the batch."""
    keys: KeyTotals | None = None
    """The keys of the records, where every one is a plain insert of a key of its own."""

    @property
    def changes(self) -> DataFrame:
        """Rows of `tables/T/changes`."""
        columns = changes_schema(self.spec.columns, self.spec.sequence).names
        return self.records.where(is_logged()).select(*[named(c) for c in columns])

    @property
    def current(self) -> DataFrame:
        """The rows of the batch's keys after it, without those that a record met and did not change."""
        return self.records.where(F.col(CURRENT) & F.col(CHANGED))

    @property
    def applied(self) -> DataFrame:
        """The changes that did something to their key."""
        return self.changes.where((F.col(VERDICT) == "applied") & (F.col(OP) != "truncate"))

    @property
    def quarantined(self) -> DataFrame:
        """The records that could not be accepted."""
        return self.records.where(~is_logged())


def table_batch(  # noqa: PLR0913 - what a batch works with, and what it may be asked
    table: TableSpec, records: DataFrame, state: State, frames: Frames,
    *, on_truncate: Literal["stop", "delete"] | None, needed: Callable[[], list[str]],
    load: TableLoad,
) -> TableBatch:  # fmt: skip
    """Apply a table's source records of a batch.

    `records`: what the parsers yield; read several times. `on_truncate`: what a truncate event leads to; None where the
    records are rows, which neither truncate a table nor leave a value out. `needed`: columns of the rows before the
    batch that the joins read. Raises `TruncateStopped` at a truncate event the configuration does not allow.
    """
    versioned, clock = table.history_retention is not None, None
    if versioned:
        timed = refuse_times(records, table, state.plan.planned_at, has_time() | (F.col(OP) == "truncate"))
        records = ordered_by_time(timed, table)
    rows_only = on_truncate is None and not load.looks_for_keys and not versioned
    kinds = (
        _ROWS_ONLY
        if rows_only
        else kinds_of(records, table, looks_for_keys=load.looks_for_keys, ignores=load.ignores)
    )
    if versioned:
        records, clock = in_time(records, table, state, frames, kinds)
    elif load.flawless is not None and not kinds.beside:
        records = load.flawless()
    if kinds.truncated and on_truncate == "stop":
        event = first_truncate(records)
        raise TruncateStopped(
            f"{table.name}: {event} says that the source table was truncated; found `on_truncate: stop`. Set "
            "`on_truncate: delete` to delete every row it had, then run again; or leave the event out: "
            f"{_left_out(table, event)}."
        )
    if kinds.truncated and versioned:
        _check_truncates_in_time(records, table)
    good = records.where(F.col(REASON).isNull() & (F.coalesce(F.col(OP), F.lit("")) != "truncate"))
    good = _with_context(records, good, versioned=versioned, by_hand=bool(state.plan.refused_of(table.name)))
    if kinds.truncated:
        good = good.unionByName(_truncations(records, good, state, table))
    columns = [SEQUENCE, POSITION, HASH, DELETED, *needed()]
    if kinds.unavailable:
        columns += table.columns.names
    else:
        good = good.drop(UNAVAILABLE)
    before = _before(good, table, state, frames, columns)
    beside = records if kinds.beside or versioned else records.limit(0)
    judged, counts = apply_to_table(good, beside, before, table, state, frames, kinds, load)
    inserts, logged = counts.pop(INSERTED), counts.pop(LOGGED)
    keys = kinds.keys if kinds.keys is not None and kinds.keys.count == inserts else None
    return TableBatch(table, judged, before, counts, inserts, logged, clock, keys)


def _check_truncates_in_time(records: DataFrame, table: TableSpec) -> None:
    """Refuse a truncate event with a future time: until then its deletes would be newer than all that follows it."""
    if (first := first_truncate(records.where(F.col(REASON).isNotNull()))) is not None:
        raise TruncateStopped(
            f"{table.name}: the truncate event at {first} has no time, or one that is more than max_future ahead "
            f"({table.max_future}). Raise `max_future`, then run again; or leave the event out: "
            f"{_left_out(table, first)}."
        )


def _left_out(table: TableSpec, event: str) -> str:
    return f"`lakejoin quarantine add FILE {table.name} --record {event}`"


def _with_context(records: DataFrame, good: DataFrame, *, versioned: bool, by_hand: bool) -> DataFrame:
    """The good records that have not expired, and the deletes that are not taken as context."""
    if versioned:
        untimely = F.col(EXPIRED) | F.col(REASON).isin(*UNTIMELY)
        good = with_refused_deletes(good.where(~F.col(EXPIRED)), records, untimely).drop(EXPIRED)
    return with_refused_deletes(good, records, is_by_hand()) if by_hand else good


def _before(good: DataFrame, table: TableSpec, state: State, frames: Frames, columns: list[str]) -> DataFrame:
    most = sum(file.records for file in state.plan.files_of(table.name))
    keys = frames.keys(good.where(~F.col(CONTEXT)).select(*[named(name) for name in table.key]), most)
    before = state.rows(table, keys, columns)
    return frames.keep(before) if state.has_rows(table.name) else before


def untouched(table: TableSpec, state: State) -> TableBatch:
    """A table that has no records in the batch."""
    records = empty(state.spark, records_schema(table))
    before = empty(state.spark, rows_schema(table.columns, table.sequence))
    clock = state.plan.clocks.get(f"tables/{table.name}")
    return TableBatch(table, records, before, dict.fromkeys(COUNTS, 0), clock=clock)


def _truncations(records: DataFrame, good: DataFrame, state: State, table: TableSpec) -> DataFrame:
    """A delete at the truncate event's position for every key there was before it."""
    key = [named(name) for name in table.key]
    own = ~F.col(CONTEXT) & ~is_by_hand()
    events = records.where(own & (F.col(OP) == "truncate")).select(POSITION, SEQUENCE, TIME)
    stored = (
        state.all_rows(table).where(~F.col(DELETED)).select(*key, F.lit(None).cast(POSITION_TYPE).alias(_AT))
    )
    keys = stored.unionByName(good.where(~F.col(CONTEXT)).select(*key, F.col(POSITION).alias(_AT)))
    met = keys.join(F.broadcast(events), F.col(_AT).isNull() | (F.col(_AT) < F.col(POSITION)))
    deletes = (
        met.select(*key, POSITION, SEQUENCE, TIME)
        .distinct()
        .withColumns(
            {
                OP: F.lit("delete"),
                DERIVED: F.lit(True),
                CONTEXT: F.lit(False),
            }
        )
    )
    rest = {f.name: F.lit(None).cast(f.dataType) for f in good.schema if f.name not in deletes.columns}
    return deletes.withColumns(rest).select(*[named(name) for name in good.columns])
