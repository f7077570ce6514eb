"""Streams and their joins: verdicts of records, which way each goes, what waits and what is due."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructType

from lakejoin.transforms.model.schemas import (
    BATCH,
    CONTEXT,
    DERIVED,
    DETAIL,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIME,
    UNAVAILABLE,
    VERDICT,
)
from lakejoin.transforms.model.specs import How, StreamJoinSpec, TableSpec
from lakejoin.transforms.stream_join.records import judge_records
from lakejoin.transforms.stream_join.table_join import ROUTE, is_due, route, waiting

pytestmark = pytest.mark.spark

COLUMNS = StructType().add("id", "long").add("item", "string").add("kind", "string").add("at", "timestamp")
BY_LSN = StructType().add("lsn", "long")
STREAM = TableSpec("clicks", COLUMNS, ("id",), BY_LSN, "at", max_future=timedelta(days=1))
START = datetime(2013, 1, 1, tzinfo=UTC)


def at(hour: int) -> datetime:
    """An hour after midnight."""
    return START + timedelta(hours=hour)


def join(how: How = "left", grace: int | None = 2, *, drops: bool = True) -> StreamJoinSpec:
    """A join of the stream with a table of items."""
    items = StructType().add("item", "string").add("price", "long")
    spec = StreamJoinSpec("priced", "clicks", "items", COLUMNS, ("id",), items, ("item",), ("item",), how)
    hours = None if grace is None else timedelta(hours=grace)
    return StreamJoinSpec(**{**vars(spec), "grace": hours, "drops_late": drops, "as_of": True})


def records(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    """Source records in the order of their lines: buys of item A at midnight by default."""
    schema = (
        StructType([*COLUMNS]).add(POSITION, POSITION_TYPE).add(OP, "string").add(SEQUENCE, BY_LSN)
        .add(TIME, "timestamp").add(CONTEXT, "boolean").add(DERIVED, "boolean")
        .add(UNAVAILABLE, ArrayType(StringType())).add(REASON, "string").add(DETAIL, "string").add(RAW, "string")
    )  # fmt: skip
    made = []
    for line, row in enumerate(rows, start=1):
        lsn, hour = row.get("lsn", line), row.get("hour", 0)
        made.append(
            (
                row.get("id", 1), row.get("item", "A"), row.get("kind", "buy"), at(hour), (None, "f", line),
                row.get("op", "upsert"), (lsn,), at(hour), row.get("context", False), row.get("derived", False),
                row.get("unavailable"), row.get("reason"), None, None,
            )
        )  # fmt: skip
    return spark.createDataFrame(made, schema)


def test_record_of_a_stream_is_judged_by_what_it_is_and_whether_it_was_seen(spark: SparkSession) -> None:
    """Deletes and what the condition does not hold for are ignored; key and sequence make a record."""
    given = records(
        spark,
        {"lsn": 1}, {"lsn": 1, "item": "B"}, {"lsn": 2, "id": 7}, {"lsn": 1, "id": 2}, {"op": "delete"},
        {"kind": "look", "unavailable": ["item"]}, {"kind": None}, {"reason": "parse_error"}, {"unavailable": ["item"]},
        {"context": True}, {"derived": True, "op": "delete"},
    )  # fmt: skip
    identity = StructType().add("id", "long").add(SEQUENCE, BY_LSN)
    seen = spark.createDataFrame([(7, (2,)), (7, (2,)), (2, (9,))], identity)

    found = judge_records(given, seen, STREAM, "kind = 'buy'").orderBy(POSITION).collect()

    assert [row[VERDICT] for row in found] == [
        "applied", "duplicate", "duplicate", "applied", "ignored", "ignored", "ignored", "quarantined", "quarantined",
    ]  # fmt: skip
    assert [row[DETAIL] for row in found if row[VERDICT] == "ignored"] == ["delete", "where", "where"]
    assert [(row[REASON], row[DETAIL]) for row in found[-2:]] == [
        ("parse_error", None),
        ("unavailable_value", "item"),
    ]


ROUTES = {
    "without grace": (join(grace=None), [0, 5, 1], ["at_once", "at_once", "at_once"]),
    "in time, at the bound, and late": (join(), [5, 3, 2], ["waits", "waits", "late"]),
    "late, and joined": (join(drops=False), [5, 2], ["waits", "at_once"]),
    "the stream was further already": (join(), [7, 8, 10], ["late", "waits", "waits"]),
    "grace of zero": (join(grace=0), [10, 9], ["waits", "late"]),
}


@pytest.mark.parametrize(("spec", "hours", "ways"), ROUTES.values(), ids=ROUTES)
def test_way_of_a_record_follows_from_the_clock_before_it(
    spark: SparkSession, spec: StreamJoinSpec, hours: list[int], ways: list[str]
) -> None:
    """In arrival order; stream time stands at 10 where the first record comes at 7 or later."""
    given = records(spark, *[{"hour": hour} for hour in hours])
    clock = at(10) if hours[0] >= 7 else None

    found = route(given, spec, clock, in_one_task=True, some_late=True).orderBy(POSITION).collect()

    assert [row[ROUTE] for row in found] == ways


@pytest.mark.parametrize(("how", "way"), [("inner", "ignored"), ("left", "at_once")])
def test_record_that_refers_to_nothing_waits_for_nothing(spark: SparkSession, how: How, way: str) -> None:
    """Nor does it move stream time: the one after it would be late."""
    given = records(spark, {"hour": 1}, {"item": None, "hour": 9}, {"hour": 2})

    found = route(given, join(how), None, in_one_task=True, some_late=True).orderBy(POSITION).collect()

    assert [row[ROUTE] for row in found] == ["waits", way, "waits"]


def test_what_waits_is_a_range_of_the_stream_and_leaves_at_its_end(spark: SparkSession) -> None:
    """Released or late is what lies at stream time less grace or before; due what a later time passes, inclusive."""
    log = records(spark, *[{"hour": hour} for hour in (2, 3, 4, 5)], {"item": None, "hour": 5})
    log = log.withColumn(VERDICT, F.lit("applied")).withColumn(BATCH, F.lit(1))

    wait = waiting(log, join(), at(5))
    left = wait.where(~is_due(join(), at(6)))

    assert [row["at"].hour for row in wait.orderBy(TIME).collect()] == _hours(4, 5)
    assert [row["at"].hour for row in left.collect()] == _hours(5)


def test_before_the_first_record_moved_stream_time_everything_waits(spark: SparkSession) -> None:
    """Without grace nothing ever does."""
    log = (
        records(spark, {"hour": 2}, {"item": None})
        .withColumn(VERDICT, F.lit("applied"))
        .withColumn(BATCH, F.lit(1))
    )

    wait = waiting(log, join(), None)

    assert wait.select(is_due(join(), None), is_due(join(grace=None), None)).collect() == [(False, True)]


def _hours(*hours: int) -> list[int]:
    """Hours as PySpark gives them back, in the zone of the Python process."""
    return [at(hour).astimezone().hour for hour in hours]
