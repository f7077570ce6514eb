"""Follows the clock of a stream or a versioned table: the greatest event time among its records so far.

The clock moves record by record in arrival order (position), whatever the batches are. So what it decides does not
depend on how the input is split into batches. KIP-923 calls it stream time, Kafka's versioned stores observed time.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.transforms.model.refused_records import refuse
from lakejoin.transforms.model.schemas import OP, POSITION, REASON, SEQUENCE, TIME
from lakejoin.transforms.model.specs import TableSpec

CLOCK = "_lj_clock"
"""Greatest time before a record, in arrival order; null for the first of all."""
UNTIMELY = ("no_event_time", "in_the_future")
"""Reasons for which a record is refused by its time."""
_CHUNK, _PASSED = "_lj_chunk", "_lj_passed"
_LINES = 50_000  # in one task, so that a large batch does not have its clock run in a single one

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def refuse_times(records: DataFrame, table: TableSpec, planned_at: datetime, which: Column) -> DataFrame:
    """Quarantine records whose event time cannot be used: none, or too far ahead (`max_future`).

    `records`: what the parsers yield. `planned_at`: the batch's clock, for files without a date. `which`: records that
    need a time.
    """
    assert table.max_future is not None
    no_time, in_the_future = UNTIMELY
    end_of_day = F.date_add(F.col(POSITION)["date"], 1).cast("timestamp")
    latest = F.coalesce(end_of_day, F.lit(planned_at)) + F.lit(table.max_future)
    timed = which & F.col(REASON).isNull()
    missing = timed & F.col(TIME).isNull()
    ahead = timed & F.coalesce(F.col(TIME) > latest, F.lit(False))
    told = F.concat(
        F.lit(f"{table.event_time}: "), F.col(TIME).cast("string"),
        F.lit(" is more than max_future after "), (latest - F.lit(table.max_future)).cast("string"),
    )  # fmt: skip
    reason = F.when(missing, F.lit(no_time)).when(ahead, F.lit(in_the_future))
    detail = F.when(missing, F.lit(f"{table.event_time} is null")).otherwise(told)
    return refuse(records, table.columns.names, reason, detail)


def ordered_by_time(records: DataFrame, table: TableSpec) -> DataFrame:
    """Put the event time before what orders the records of a key otherwise: a versioned table's sequence.

    What has no time, such as a tombstone line, has no place of its own in this order.
    """
    parts = [F.col(SEQUENCE)[name].alias(name) for name in table.as_read.sequence.names]
    whole = F.col(SEQUENCE).isNotNull() & F.col(TIME).isNotNull()
    return records.withColumn(SEQUENCE, F.when(whole, F.struct(F.col(TIME).alias(TIME), *parts)))


def times_of(which: Column) -> list[Column]:
    """Least and greatest event time of some records, as `oldest` and `newest` in microseconds since 1970.

    PySpark would give a timestamp in the zone of the Python process.
    """
    time = F.when(which, F.unix_micros(TIME))
    return [F.min(time).alias("oldest"), F.max(time).alias("newest")]


def from_micros(micros: object) -> datetime | None:
    """A time from microseconds since 1970; None from None."""
    return EPOCH + timedelta(microseconds=micros) if isinstance(micros, int) else None


def latest(*times: datetime | None) -> datetime | None:
    """The greatest of these times; None where there is none."""
    return max((time for time in times if time is not None), default=None)


def earliest(*times: datetime | None) -> datetime | None:
    """The least of these times; None, which is before all of them, where it is among them."""
    return None if None in times else min(time for time in times if time is not None)


def valid_at(time: Column, since: Column, until: Column) -> Column:
    """Whether something is valid at a time: from `since` on, inclusive, until `until`, exclusive; null for ever."""
    return (since <= time) & (until.isNull() | (time < until))


def moved_back(time: datetime | None, duration: timedelta | None) -> datetime | None:
    """A time less a duration; None without one of them, or where that is before all time: then nothing is as old."""
    if time is None or duration is None:
        return None
    with suppress(OverflowError):  # before the year 1
        return time - duration
    return None


def instant(time: datetime | None) -> Column:
    """A time as a column, null from None: PySpark would take a literal from before 1582 by the Julian calendar."""
    micros = None if time is None else (time - EPOCH) // timedelta(microseconds=1)
    return F.timestamp_micros(F.lit(micros).cast("bigint"))


def has_time() -> Column:
    """Which records of a versioned table need a time: a tombstone line has none."""
    return F.col(OP).isin("upsert", "delete", "filtered")


def with_clock(records: DataFrame, moves: Column, start: datetime | None, *, in_one_task: bool) -> DataFrame:
    """Add `CLOCK`, the greatest time among the records that stand before this one.

    `moves`: which records move the clock. `start`: the clock before the batch. `in_one_task`: they are few enough.
    """
    time = F.when(moves, F.col(TIME))
    before = instant(start)
    if in_one_task:
        earlier = Window.partitionBy(F.lit(0)).orderBy(POSITION).rowsBetween(Window.unboundedPreceding, -1)
        return records.withColumn(CLOCK, F.greatest(before, F.max(time).over(earlier)))
    position = F.col(POSITION)
    chunk = F.struct(
        F.coalesce(position["date"], F.lit(EPOCH.date())).alias("date"),
        position["file"].alias("file"),
        (position["line"] / _LINES).cast("bigint").alias("part"),
    )
    chunked = records.withColumn(_CHUNK, chunk)
    passed = Window.partitionBy(F.lit(0)).orderBy(_CHUNK).rowsBetween(Window.unboundedPreceding, -1)
    chunks = (
        chunked.groupBy(_CHUNK)
        .agg(F.max(time).alias("greatest"))
        .select(_CHUNK, F.greatest(before, F.max("greatest").over(passed)).alias(_PASSED))
    )
    earlier = Window.partitionBy(_CHUNK).orderBy(POSITION).rowsBetween(Window.unboundedPreceding, -1)
    return (
        chunked.join(F.broadcast(chunks), _CHUNK)
        .withColumn(CLOCK, F.greatest(_PASSED, F.max(time).over(earlier)))
        .drop(_CHUNK, _PASSED)
    )


def behind_clock(duration: timedelta) -> Column:
    """Whether a record's time is further behind the clock than `duration`."""
    return F.coalesce(F.col(TIME) < F.col(CLOCK) - F.lit(duration), F.lit(False))
