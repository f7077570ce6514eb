"""Flat JSON lines with a column `op`: what a line does, and why one is quarantined."""

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from lakejoin.transforms.model.schemas import (
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
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.json_rows import take_apart
from lakejoin.transforms.parsing.options import ParseOptions, records_schema
from lakejoin.transforms.parsing.validation import finish_records
from tests.transforms.parsing.lines import numbered

pytestmark = pytest.mark.spark

NOON = datetime(2013, 1, 1, 12)  # noqa: DTZ001 - as Spark's row holds it, in UTC
NOON_TEXT = "2013-01-01T12:00:00Z"


def orders() -> TableSpec:
    """A table whose sequence and event time are columns."""
    columns = StructType.fromDDL("id bigint, name string, price decimal(20,2), version int, at timestamp")
    return TableSpec("orders", columns, ("id",), StructType.fromDDL("version int"), "at")


def parse(spark: SparkSession, spec: TableSpec, lines: Sequence[object]) -> list[Row]:
    """The record of each line, all parsed in one frame; an object stands for its JSON."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    records = finish_records(take_apart(numbered(spark, texts), spec, ParseOptions("jsonl")), spec)
    assert records.schema.simpleString() == records_schema(spec).simpleString()
    found = sorted(records.collect(), key=lambda row: row[POSITION])
    assert len(found) == len(lines)
    return found


def test_op_says_what_a_row_does(spark: SparkSession) -> None:
    """A deleted row keeps what identifies, orders and dates it; its other columns are not even looked at."""
    row = {"id": 1, "name": "a", "price": 123456789012345678.91, "version": 2, "at": NOON_TEXT}
    texts = [
        json.dumps({"op": op, **row}).replace("1.2345678901234568e+17", "123456789012345678.91")
        for op in "cru"
    ]
    delete = {**row, "op": "d", "price": "no number"}

    *upserts, deleted = parse(spark, orders(), [*texts, delete])

    for upsert in upserts:
        assert [*upsert][:5] == [1, "a", Decimal("123456789012345678.91"), 2, NOON]
        assert (upsert[OP], upsert[SEQUENCE], upsert[TIME]) == ("upsert", Row(version=2), NOON)
        assert (upsert[DERIVED], upsert[UNAVAILABLE], upsert[RAW]) == (False, None, None)
    assert (deleted[OP], deleted[REASON], deleted[SEQUENCE], deleted[TIME]) == (
        "delete",
        None,
        Row(version=2),
        NOON,
    )
    assert [*deleted][:5] == [1, None, None, None, None]


@pytest.mark.bad_input(1)
@pytest.mark.bad_input(2)
@pytest.mark.bad_input(4)
@pytest.mark.bad_input(5)
def test_bad_row_is_quarantined(spark: SparkSession) -> None:
    """Without an op no row is taken for an upsert; the message says what was expected."""
    cases = [
        ({"id": 1, "version": 1}, "unknown_op", "no column `op`, or null in it; expected c, r, u or d"),
        ({"op": None, "id": 1, "version": 1}, "unknown_op", "no column `op`"),
        ({"op": "t"}, "unknown_op", 'op "t"; expected c, r, u or d'),
        ({"op": "c", "version": 1}, "null_key", "id is null"),
        ({"op": "d", "version": 1}, "null_key", "id is null"),
        ({"op": "c", "id": 1}, "null_sequence", "version is null"),
        ({"op": "d", "id": 1, "version": "x"}, "type_mismatch", 'version: "x" is no int'),
        ({"op": "u", "id": 1, "version": 1, "at": "2013-01-01"}, "bad_timestamp", "names no zone"),
        (
            '{"op":"c","id":1,"version":1,"price":1e-30}',
            "type_mismatch",
            'price: "1.0E-30" is no decimal(20,2)',
        ),
        ('{"op":"c","price" : 1.%s1,"id":1,"version":1}' % ("0" * 40), "type_mismatch", 'price: "1.0" is no'),
        ('{"op":"c","id":1', "parse_error", "cut off"),
        ("nil", "parse_error", 'begins with "nil"; expected an object'),
    ]

    found = parse(spark, orders(), [line for line, _, _ in cases])

    for (line, reason, detail), row in zip(cases, found, strict=True):
        assert (row[REASON], row[OP]) == (reason, None), line
        assert detail in row[DETAIL]
        assert row[RAW] == (line if isinstance(line, str) else json.dumps(line))


def test_line_that_holds_no_record_is_ignored(spark: SparkSession) -> None:
    """What is left in a dump of a tombstone whose key is not there."""
    found = parse(spark, orders(), ["", " ", "null"])

    assert [(row[OP], row[REASON], row["id"]) for row in found] == [("ignored", None, None)] * 3
    assert [row[DETAIL] for row in found] == ["empty", "empty", "tombstone"]


def test_op_may_be_a_declared_column(spark: SparkSession) -> None:
    """Nothing keeps a table from showing what the last change was."""
    spec = TableSpec("t", StructType.fromDDL("id int, op string"), ("id",), POSITION_TYPE)

    assert [*parse(spark, spec, [{"id": 1, "op": "u"}])[0]][:2] == [1, "u"]
