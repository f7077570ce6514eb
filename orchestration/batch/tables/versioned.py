"""Applies a batch to a versioned table: what its clock refuses, and which late records still enter its history."""

from dataclasses import replace
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.tables.record_survey import RecordKinds
from lakejoin.storage.lake.layout import versions_of
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.changelog.apply_changes import apply_changes
from lakejoin.transforms.changelog.versions import last_by_time
from lakejoin.transforms.model.event_time import (
    CLOCK,
    behind_clock,
    from_micros,
    has_time,
    instant,
    latest,
    moved_back,
    with_clock,
)
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DETAIL,
    POSITION,
    RAW,
    REASON,
    SEQUENCE,
    TIME,
    VERDICT,
    named,
)
from lakejoin.transforms.model.specs import TableSpec

EXPIRED = "_lj_expired"
"""True for a record older than the history that its table keeps, as its clock stood before the record."""
_AGAIN = "_lj_again"


def in_time(
    records: DataFrame, table: TableSpec, state: State, frames: Frames, kinds: RecordKinds
) -> tuple[DataFrame, datetime | None]:
    """Mark the records that come after the table's retention as `EXPIRED`; return the clock after the batch, too.

    `kinds`: oldest and newest time of the batch in microseconds, which mostly show that none can have expired.
    """
    assert table.history_retention is not None
    before = state.plan.clocks.get(f"tables/{table.name}")
    oldest, newest = from_micros(kinds.oldest), from_micros(kinds.newest)
    clock = latest(before, newest)
    dropped = state.plan.forgotten(versions_of(table.name))
    bound = latest(moved_back(clock, table.history_retention), dropped)
    if oldest is None or bound is None or oldest >= bound:
        return records.withColumn(EXPIRED, F.lit(False)), clock
    moves = F.col(REASON).isNull() & has_time() & ~F.col(CONTEXT)
    timed = with_clock(records, moves, before, in_one_task=frames.small)
    unknown = F.coalesce(F.col(TIME) < instant(dropped), F.lit(False))
    expired = moves & (behind_clock(table.history_retention) | unknown)
    return frames.keep(timed.withColumn(EXPIRED, expired).drop(CLOCK)), clock


def with_history(records: DataFrame, table: TableSpec, state: State, frames: Frames) -> DataFrame:
    """Look at the records that are out of order for their key once more, among those of the same key and time.

    There one may still be the last: then its status is `history`. One that is there already is a duplicate.
    `records`: every record with its status. Returns the same columns.
    """
    place = (*table.key, TIME)
    late = frames.keys(records.where(F.col(VERDICT) == "out_of_order").select(*map(named, place)).distinct())
    at_issue = records.where(F.col(VERDICT).isin("applied", "out_of_order", "duplicate"))
    same_place = restrict(at_issue, late, place).withColumn(CONTEXT, F.lit(False))
    keys = frames.keys(late.rows.select(*map(named, table.key)).distinct())
    stored = restrict(last_by_time(state.versions(table, keys), table), late, place)
    floor = F.lit(None).cast(table.sequence)
    judged = apply_changes(same_place, stored, replace(table, key=place), floor)
    verdict = F.when(F.col(VERDICT) == "applied", "history").when(F.col(VERDICT) == "duplicate", "duplicate")
    names = (*table.key, POSITION)
    again = judged.select(*map(named, names), verdict.alias(_AGAIN)).where(F.col(_AGAIN).isNotNull())
    late_verdict = F.when(F.col(VERDICT) == "out_of_order", F.coalesce(_AGAIN, VERDICT))
    joined = records.join(again, list(names), "left")
    return joined.withColumn(VERDICT, F.coalesce(late_verdict, VERDICT)).select(*map(named, records.columns))


def known_again(records: DataFrame, table: TableSpec, state: State, frames: Frames) -> DataFrame:
    """Take back what was set aside for a value it left out where it has the sequence of a known version.

    It is out of order and no duplicate: that would move the version to it, and it does not know its value. `records`:
    every record with its status, as `with_history` leaves it. Returns the same columns.
    """
    left_out = F.col(REASON) == "unavailable_value"
    identity = (*table.key, SEQUENCE)
    keys = frames.keys(records.where(left_out).select(*map(named, table.key)).distinct())
    stored = state.versions(table, keys).select(*map(named, identity))
    judged = records.where(F.col(VERDICT).isin("applied", "out_of_order")).select(*map(named, identity))
    known = stored.unionByName(judged).distinct().withColumn(_AGAIN, F.lit("out_of_order"))
    found = records.join(known, list(identity), "left")
    again = left_out & F.col(_AGAIN).isNotNull()
    said = {name: F.when(~again, F.col(name)) for name in (REASON, DETAIL, RAW)}
    verdict = F.when(again, F.col(_AGAIN)).otherwise(F.col(VERDICT))
    return found.withColumns({**said, VERDICT: verdict}).select(*map(named, records.columns))
