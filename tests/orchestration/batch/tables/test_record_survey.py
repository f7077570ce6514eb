"""One look at all records of a batch, before they are applied."""

from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakejoin.orchestration.batch.tables.record_survey import RecordKinds, first_truncate, kinds_of
from lakejoin.transforms.model.keys import KeyTotals
from lakejoin.transforms.model.schemas import POSITION_TYPE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import records_schema

pytestmark = pytest.mark.spark

_COLUMNS = StructType().add("a", "long").add("b", "string").add("v", "string")
_TABLE = TableSpec("rows", _COLUMNS, ("a", "b"), POSITION_TYPE)
_NOON = datetime(2013, 1, 1, 12)  # noqa: DTZ001 - as Spark's row holds it, in UTC
_NOON_MICROS = 1_357_041_600_000_000

Record = tuple[Any, ...]


def record(a: int | None = 1, b: str | None = "x", **more: Any) -> Record:
    """A good upsert of a key, but for what is said of it."""
    said = {
        "op": "upsert", "time": _NOON, "context": False, "unavailable": None, "reason": None, "detail": None, "line": 1,
        **more,
    }  # fmt: skip
    place = (None, "f", said["line"])
    return (
        a, b, "v", place, said["op"], place, said["time"], said["context"], False, said["unavailable"],
        said["reason"], said["detail"], None,
    )  # fmt: skip


def frame(spark: SparkSession, *records: Record) -> DataFrame:
    """The records as parsers yield them."""
    return spark.createDataFrame(list(records), records_schema(_TABLE))


@pytest.mark.parametrize("small", [True, False], ids=["few", "many"])
def test_kinds_are_counted_alike_among_few_and_many(spark: SparkSession, small: bool) -> None:
    """A line before the batch's own counts for nothing but for what is not applied."""
    records = frame(
        spark,
        record(1),
        record(2, unavailable=["v"], time=None),
        record(None, None, op="truncate", line=7),
        record(None, None, op="truncate", line=5),
        record(3, op=None, reason="bad_timestamp", time=datetime(1999, 1, 1)),  # noqa: DTZ001
        record(4, context=True, unavailable=["v"], time=datetime(1999, 1, 1)),  # noqa: DTZ001
        record(5, context=True, op=None, reason="parse_error"),
    )

    kinds = kinds_of(records, _TABLE, looks_for_keys=not small)

    assert kinds == RecordKinds(2, 1, 4, kinds.keys, oldest=_NOON_MICROS, newest=_NOON_MICROS)
    assert (kinds.keys is None) is small
    assert first_truncate(records) == "f:5"


@pytest.mark.parametrize(
    ("others", "alone"),
    [
        ([], True),
        ([record(1, "y"), record(2, "x")], True),
        ([record(None, "x", reason="null_key"), record(None, "x", reason="null_key")], True),
        ([record(1, "x", line=2)], False),
        ([record(1, "x", line=2, op="ignored")], False),
        ([record(1, "x", line=2, context=True)], False),
    ],
    ids=["one", "other keys", "no keys", "the same key", "another operation", "the line before the batch"],
)
def test_keys_are_alone_if_none_has_two_records(
    spark: SparkSession, others: list[Record], *, alone: bool
) -> None:
    """A key is one only as a whole; records without one have none in common."""
    keys = kinds_of(frame(spark, record(), *others), _TABLE, looks_for_keys=True).keys
    assert (keys is not None) is alone


def test_what_is_ignored_is_counted_by_its_kind(spark: SparkSession) -> None:
    """With the keys, where the log that is counted later has no kinds; not the line before the batch's own."""
    beats = [record(None, None, op="ignored", detail="heartbeat", line=line) for line in (2, 3)]
    other = record(None, None, op="ignored", detail="other_table")
    context = record(None, None, op="ignored", detail="heartbeat", context=True)
    bad = record(None, None, op=None, reason="parse_error", detail="heartbeat")
    records = frame(spark, record(), *beats, other, context, bad)

    kinds = kinds_of(records, _TABLE, looks_for_keys=True, ignores=True)

    assert kinds.ignored == {"ignored_heartbeat": 2, "ignored_other_table": 1}
    assert kinds.keys is not None
    assert (kinds.keys.count, kinds.beside) == (1, 1)


def test_no_records_are_of_no_kind(spark: SparkSession) -> None:
    """Nor does any key have two."""
    assert kinds_of(frame(spark, record()).limit(0), _TABLE, looks_for_keys=True) == RecordKinds(
        keys=KeyTotals(0, None)
    )
