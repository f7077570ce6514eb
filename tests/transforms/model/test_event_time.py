"""The clock of a stream or a versioned table, and the records whose time cannot be used."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.model import event_time
from lakejoin.transforms.model.event_time import (
    CLOCK,
    behind_clock,
    from_micros,
    has_time,
    instant,
    moved_back,
    ordered_by_time,
    refuse_times,
    with_clock,
)
from lakejoin.transforms.model.schemas import DETAIL, OP, POSITION, POSITION_TYPE, RAW, REASON, SEQUENCE, TIME
from lakejoin.transforms.model.specs import TableSpec

pytestmark = pytest.mark.spark

COLUMNS = StructType().add("station", "string").add("seen", "timestamp")
BY_LSN = StructType().add("lsn", "long")
SPEC = TableSpec(
    "weather",
    COLUMNS,
    ("station",),
    StructType().add(TIME, "timestamp").add("lsn", "long"),
    "seen",
    history_retention=timedelta(days=1),
    max_future=timedelta(hours=1),
)
START = datetime(2013, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    """A time so many hours after midnight."""
    return START + timedelta(hours=hours)


def records(spark: SparkSession, *rows: tuple[str, date | None, datetime | None, int | None]) -> DataFrame:
    """Records of an operation, with the date of their file, their time and their number in the log."""
    schema = (
        StructType([*COLUMNS]).add(POSITION, POSITION_TYPE).add(OP, "string").add(SEQUENCE, BY_LSN)
        .add(TIME, "timestamp").add(REASON, "string").add(DETAIL, "string").add(RAW, "string")
    )  # fmt: skip
    made: list[tuple[Any, ...]] = [
        ("EWR", time, (day, "f", line), op, None if lsn is None else (lsn,), time, None, None, None)
        for line, (op, day, time, lsn) in enumerate(rows, start=1)
    ]
    return spark.createDataFrame(made, schema)


@pytest.mark.bad_input(10)
def test_records_without_time_or_too_far_ahead_are_quarantined(spark: SparkSession) -> None:
    """Ahead of the end of the file's date, else of the batch's clock; exactly at the bound is accepted."""
    day = START.date()
    given = records(
        spark,
        ("upsert", day, at(25), 1), ("upsert", day, at(25.1), 2), ("upsert", None, at(13), 3),
        ("upsert", None, at(13.1), 4),
        ("upsert", day, None, 5), ("delete", day, None, 6), ("tombstone", day, None, 7),
    )  # fmt: skip

    found = refuse_times(given, SPEC, at(12), has_time()).orderBy(SEQUENCE).collect()

    ahead, none = "in_the_future", "no_event_time"
    assert [row[REASON] for row in found] == [None, ahead, None, ahead, none, none, None]
    assert found[1][DETAIL] == "seen: 2013-01-02 01:06:00 is more than max_future after 2013-01-02 00:00:00"
    assert (found[4][DETAIL], found[4][RAW]) == ("seen is null", '{"station":"EWR"}')


@pytest.mark.bad_input(9)
def test_time_comes_before_what_orders_a_key_otherwise(spark: SparkSession) -> None:
    """What has no time has no place of its own."""
    given = records(
        spark, ("upsert", None, at(2), 1), ("tombstone", None, None, 2), ("upsert", None, at(1), None)
    )

    found = ordered_by_time(given, SPEC).orderBy(POSITION).select(f"{SEQUENCE}.*").collect()

    assert [tuple(row)[1] for row in found] == [1, None, None]
    assert found[0][TIME] is not None


@pytest.mark.bad_input(11)
@pytest.mark.parametrize("year", [1, 150, 1582, 1900, 9999])
def test_time_of_any_year_is_compared_as_what_it_is(spark: SparkSession, year: int) -> None:
    """Dates before 1582 are no other day than in the data; no time has no instant."""
    time = datetime(year, 1, 1, 1, 2, 3, 456_789, tzinfo=UTC)

    found = spark.range(1).select(F.unix_micros(instant(time)).alias("micros"), instant(None).alias("none"))

    assert from_micros(found.first()["micros"]) == time
    assert found.first()["none"] is None


def test_what_a_time_moved_back_would_be_before_all_time_is_none() -> None:
    """As it is without a time or a duration; the first instant of all is still one."""
    first, day = datetime(1, 1, 1, tzinfo=UTC), timedelta(days=1)

    assert moved_back(first + day, day) == first
    assert [moved_back(first, day), moved_back(None, day), moved_back(first, None)] == [None] * 3


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    hours=st.lists(st.one_of(st.none(), st.integers(0, 40)), max_size=12),
    start=st.none() | st.integers(0, 20),
)
def test_clock_is_the_greatest_time_before_a_record_in_one_task_and_in_many(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, hours: list[int | None], start: int | None
) -> None:
    """A record that does not move the clock is held against it all the same."""
    monkeypatch.setattr(event_time, "_LINES", 3)
    rows = [
        ("upsert" if n % 4 else "ignored", None, None if h is None else at(h), n) for n, h in enumerate(hours)
    ]
    given = records(spark, *rows)
    wanted, clock = [], start
    for n, hour in enumerate(hours):
        wanted.append(None if clock is None or hour is None else hour < clock - 5)
        if n % 4 and hour is not None:
            clock = hour if clock is None else max(clock, hour)

    for small in (True, False):
        moved = with_clock(
            given, F.col(OP) == "upsert", None if start is None else at(start), in_one_task=small
        )
        found = moved.withColumn("behind", behind_clock(timedelta(hours=5))).orderBy(POSITION)
        rows_found = found.select("behind", CLOCK).collect()
        assert [row["behind"] for row in rows_found] == [bool(late) for late in wanted]
