"""The history of a versioned table: intervals, what may be forgotten, and as-of reads."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.changelog.versions import (
    VALID_FROM,
    VALID_TO,
    as_of,
    intervals,
    last_by_time,
    reachable,
    versions_schema,
)
from lakejoin.transforms.model.schemas import (
    DELETED,
    HASH,
    MET_HASH,
    MET_VALUE,
    POSITION,
    POSITION_TYPE,
    SEQUENCE,
    TIME,
)
from lakejoin.transforms.model.specs import TableSpec

pytestmark = pytest.mark.spark

SPEC = TableSpec(
    "weather",
    StructType().add("station", "string").add("temp", "long"),
    ("station",),
    StructType([*StructType().add(TIME, "timestamp"), *POSITION_TYPE]),
    history_retention=timedelta(hours=10),
)
START = datetime(2013, 1, 1, tzinfo=UTC)


def at(hour: int | None) -> datetime | None:
    """An hour after midnight."""
    return None if hour is None else START + timedelta(hours=hour)


def versions(spark: SparkSession, *rows: tuple[str, int, int | None]) -> DataFrame:
    """Versions of a station from an hour on, in the order of their arrival; without a temperature it is gone."""
    made: list[dict[str, Any]] = []
    for line, (station, hour, temp) in enumerate(rows, start=1):
        position = {"date": None, "file": "f", "line": line}
        made.append(
            {
                "station": station, "temp": temp, POSITION: position, SEQUENCE: {TIME: at(hour), **position},
                HASH: None if temp is None else {"spec": 1, "high": temp, "low": line}, DELETED: temp is None,
                VALID_FROM: at(hour), VALID_TO: None,
            }
        )  # fmt: skip
    return spark.createDataFrame(made, versions_schema(SPEC))


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Key, first hour, last hour and temperature of intervals."""
    hours = [
        ((F.unix_micros(name) - int(START.timestamp() * 1e6)) / 3.6e9).cast("int").alias(name)
        for name in (VALID_FROM, VALID_TO)
    ]
    return [
        tuple(row) for row in frame.select("station", *hours, "temp").orderBy("station", VALID_FROM).collect()
    ]


HISTORY = (("EWR", 1, 10), ("EWR", 5, 50), ("EWR", 3, None), ("EWR", 5, 51), ("JFK", 2, 20), ("JFK", 9, None))
"""Out of order, with a tombstone in between, a correction at the same time, and a station that is gone."""


def test_version_lasts_until_the_next_and_the_last_at_a_time_stands(spark: SparkSession) -> None:
    """A tombstone is a version, and ends the one before it."""
    assert shown(intervals(versions(spark, *HISTORY), SPEC)) == [
        ("EWR", 1, 3, 10), ("EWR", 3, 5, None), ("EWR", 5, None, 51), ("JFK", 2, 9, 20), ("JFK", 9, None, None),
    ]  # fmt: skip


@pytest.mark.bad_input(9)
def test_among_versions_at_one_time_the_sequence_decides(spark: SparkSession) -> None:
    """Not the position: a correction may stand in a file of an earlier day. All reads find the same one."""
    by_lsn = replace(SPEC, sequence=StructType().add(TIME, "timestamp").add("lsn", "long"))
    rows = [
        ("EWR", 51, 7, {"date": None, "file": "f", "line": 1}), ("EWR", 50, 6, {"date": None, "file": "f", "line": 2}),
    ]  # fmt: skip
    made = [
        {
            "station": station, "temp": temp, POSITION: position, SEQUENCE: {TIME: at(5), "lsn": lsn},
            HASH: {"spec": 1, "high": temp, "low": 0}, DELETED: False, VALID_FROM: at(5),
        }
        for station, temp, lsn, position in rows
    ]  # fmt: skip
    history = spark.createDataFrame(made, versions_schema(by_lsn))
    record = spark.createDataFrame(
        [({"station": "EWR"}, at(6))], StructType().add("key", SPEC_KEY).add("when", "timestamp")
    )

    met = (
        as_of(record, history, F.col("key"), F.col("when"), by_lsn, None).select(f"{MET_VALUE}.temp").first()
    )

    assert shown(intervals(history, by_lsn)) == [("EWR", 5, None, 51)]
    assert met["temp"] == 51
    assert last_by_time(history, by_lsn).select(f"{HASH}.high").first()["high"] == 51


@pytest.mark.bad_input(9)
def test_intervals_of_intervals_and_late_versions_are_the_intervals_of_all(spark: SparkSession) -> None:
    """A late version splits the interval that it falls into."""
    folded = intervals(versions(spark, *HISTORY[:2]), SPEC)

    again = intervals(folded.unionByName(versions(spark, *HISTORY[2:])), SPEC)

    assert [row[:3] for row in shown(again)] == [
        row[:3] for row in shown(intervals(versions(spark, *HISTORY), SPEC))
    ]


@pytest.mark.parametrize(
    ("since", "kept"),
    [
        (None, 5),
        (2, 5),  # EWR's first value is still valid then
        (3, 4),
        (9, 2),  # JFK's tombstone begins there: nothing before it may come any more, but one at it may
        (10, 1),
    ],
)
def test_what_an_as_of_read_can_still_ask_for_stays(
    spark: SparkSession, since: int | None, kept: int
) -> None:
    """The last value of a key stays for ever, its last tombstone until nothing older can come."""
    found = shown(reachable(intervals(versions(spark, *HISTORY), SPEC), at(since)))

    assert len(found) == kept
    assert ("EWR", 5, None, 51) in found


def test_as_of_read_finds_the_version_that_was_valid(spark: SparkSession) -> None:
    """From its time on, up to the next one's; nothing before the first, in a gap, or of an unknown key."""
    asked = [("EWR", h) for h in (0, 1, 2, 3, 4, 5, 9)] + [("JFK", 8), ("JFK", 9), ("LGA", 5)]

    assert looked_up(spark, asked, bound=None) == [None, 10, 10, None, None, 51, 51, 20, None, None]


def test_before_the_retention_only_a_last_version_answers(spark: SparkSession) -> None:
    """SEMANTICS of Kafka's store: a latest version never expires; others may be gone, and so are never given."""
    asked = [("EWR", 2), ("EWR", 5), ("EWR", 6), ("JFK", 6), ("EWR", 7)]

    assert looked_up(spark, asked, bound=7) == [None, 51, 51, None, 51]
    assert looked_up(spark, asked, bound=2) == [10, 51, 51, 20, 51]


def looked_up(spark: SparkSession, asked: list[tuple[str, int]], *, bound: int | None) -> list[int | None]:
    """The temperature at each of these stations and hours."""
    rows = [(n, {"station": station}, at(hour)) for n, (station, hour) in enumerate(asked)]
    schema = StructType().add("n", "long").add("key", SPEC_KEY).add("when", "timestamp")
    records = spark.createDataFrame(rows, schema)
    history = versions(spark, *HISTORY)
    found = as_of(records, history, F.col("key"), F.col("when"), SPEC, at(bound)).orderBy("n").collect()
    assert all((row[MET_HASH] is None) == (row[MET_VALUE] is None) for row in found)
    return [None if row[MET_VALUE] is None else row[MET_VALUE]["temp"] for row in found]


SPEC_KEY = StructType().add("station", "string")
