"""Values of a YAML file equal values of a result where their column says so."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import DataType, StringType

from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.unit_tests.values import comparable, row_text


@pytest.mark.parametrize(
    ("dtype", "written", "found"),
    [
        ("bigint", 1, 1), ("int", "7", 7), ("boolean", True, True), ("string", "x", "x"),
        ("decimal(9,2)", 12.5, Decimal("12.50")),
        ("decimal(38,10)", "1234567890123456789.0123456789", Decimal("1234567890123456789.0123456789")),
        ("double", 0.1, 0.1 + 1e-16), ("double", 1, 1.0), ("double", float("nan"), float("nan")), ("double", -0.0, 0.0),
        ("date", "2026-01-02", date(2026, 1, 2)),
        ("timestamp", "2026-01-02T10:00:00", datetime(2026, 1, 2, 10, tzinfo=UTC)),
        ("timestamp", "2026-01-02T12:00:00+02:00", datetime(2026, 1, 2, 10, tzinfo=UTC)),
        ("timestamp_ntz", "2026-01-02 10:00:00", datetime.fromisoformat("2026-01-02T10:00:00")),
        ("binary", "AAE=", b"\x00\x01"),
        ("array<decimal(9,2)>", (1, None), [Decimal("1.00"), None]),
        ("struct<a:int,b:date>", {"a": 1}, {"a": 1, "b": None}),
        ("map<int,string>", {"1": "x", "2": "y"}, [(2, "y"), (1, "x")]),
    ],
)  # fmt: skip
def test_values_that_are_equal(dtype: str, written: Any, found: Any) -> None:
    """However they are written."""
    kind = parse_type(dtype)
    assert comparable(written, kind) == comparable(found, kind)


@pytest.mark.parametrize(
    ("dtype", "one", "other"),
    [
        ("bigint", 1, 2), ("string", "a", "a "), ("string", "", None),
        ("double", 1.0, 1.0000001), ("boolean", True, False),
        ("timestamp", "2026-01-02", "2026-01-02T00:00:01"), ("array<int>", [1, 2], [2, 1]),
        ("map<int,string>", {"1": "x"}, {"1": None}), ("struct<a:int,b:int>", {"a": 1}, {"b": 1}),
    ],
)  # fmt: skip
def test_values_that_are_not(dtype: str, one: Any, other: Any) -> None:
    """Nothing is passed over."""
    kind = parse_type(dtype)
    assert comparable(one, kind) != comparable(other, kind)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("bigint", 1.5), ("bigint", "x"), ("bigint", True), ("boolean", 1), ("decimal(9,2)", 1.234),
        ("decimal(9,2)", "x"),
        ("date", "yesterday"), ("timestamp", 5), ("binary", "ä"), ("array<int>", 1), ("struct<a:int>", {"b": 1}),
        ("map<int,int>", 1),
    ],
)  # fmt: skip
def test_value_that_the_type_has_not(dtype: str, value: Any) -> None:
    """A mistake of the file."""
    with pytest.raises(ValueError, match=r"is no |expected a "):
        comparable(value, parse_type(dtype))


def test_text_is_asked_for_in_quotes() -> None:
    """A number in a column of text was meant otherwise."""
    kind: DataType = StringType()
    with pytest.raises(ValueError, match=r"^201 is no string; put it in quotes$"):
        comparable(201, kind)


def test_row_is_written_as_a_file_has_it() -> None:
    """On one line, with what YAML would take for something else in quotes."""
    row = {
        "id": 1, "amount": Decimal("12.50"), "long": Decimal("0.12345678901234567890"),
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "day": date(2026, 1, 2), "text": "2026-01-02", "none": None, "raw": b"\x00", "nested": {"a": [1, None]},
    }  # fmt: skip
    assert row_text(row) == (
        "{id: 1, amount: 12.5, long: '0.12345678901234567890', at: '2026-01-02T00:00:00Z', day: '2026-01-02', "
        "text: '2026-01-02', none: null, raw: AA==, nested: {a: [1, null]}}"
    )
