"""The hash of a table goes by its rows alone, and by every value of them."""

import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.verification.content_hash import Content, content_of

ROWS = st.lists(
    st.tuples(
        st.none() | st.text(max_size=3), st.none() | st.text(max_size=3), st.none() | st.integers(-2, 2)
    ),
    max_size=6,
)


def columns(**types: str) -> StructType:
    """Return columns of these types."""
    found = StructType()
    for name, dtype in types.items():
        found.add(name, parse_type(dtype))
    return found


def hashed(rows: Sequence[Sequence[Any]], schema: StructType) -> Content:
    """Hash rows."""
    arrow = to_arrow_schema(schema, timezone="UTC")
    table = pa.table(
        [pa.array([row[n] for row in rows], field.type) for n, field in enumerate(arrow)], schema=arrow
    )
    return content_of(table.to_reader(2), schema)


TEXTS = columns(a="string", b="string", n="bigint")


@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_order_of_rows_is_nothing(rows: list[Any], chance: Any) -> None:
    """Nor how they lie in pieces."""
    mixed = list(rows)
    chance.shuffle(mixed)
    assert hashed(rows, TEXTS) == hashed(mixed, TEXTS)


@given(ROWS, ROWS)
@settings(max_examples=60, deadline=None)
def test_other_rows_have_another_hash(rows: list[Any], others: list[Any]) -> None:
    """Also where their texts one behind another are the same, or a row is there twice."""
    same = sorted(map(repr, rows)) == sorted(map(repr, others))
    assert (hashed(rows, TEXTS).sha256 == hashed(others, TEXTS).sha256) == same


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("string", [None, "", "n", "0:", "1:a", "a", "A", "é", "e\u0301", "a "]),
        ("decimal(9,2)", [None, Decimal("0.10"), Decimal("0.01"), Decimal("-0.10"), Decimal("10.00")]),
        ("double", [None, 0.0, 0.1, 0.1 + 2**-54, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324]),
        ("boolean", [None, True, False]),
        ("date", [None, date(2026, 1, 1), date(1, 1, 1)]),
        ("timestamp", [None, *[datetime(2026, 1, 1, 0, 0, 0, us, UTC) for us in (0, 1)]]),
        ("timestamp_ntz", [None, datetime.fromisoformat("2026-01-01"), datetime.fromisoformat("0001-01-01")]),
        ("binary", [None, b"", b"\x00", b"\x00\x00", b"00"]),
        ("array<string>", [None, [], [None], [""], ["a", "b"], ["b", "a"], ["ab"], ["a", None, "b"]]),
        ("map<string,int>", [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)], [("a", 2), ("b", 1)]]),
        ("struct<a:string,b:string>", [None, {"a": None, "b": None}, {"a": "x", "b": None}, {"a": None, "b": "x"}]),
        ("array<struct<a:timestamp>>", [None, [None], [{"a": None}], [{"a": datetime(2026, 1, 1, tzinfo=UTC)}]]),
    ],
)  # fmt: skip
def test_every_value_counts(dtype: str, values: list[Any]) -> None:
    """Of every type, null and empty ones among them."""
    found = {hashed([[value]], columns(x=dtype)).sha256 for value in values}
    assert len(found) == len(values)


def test_instants_that_duckdb_takes_for_infinite_are_instants() -> None:
    """A row of one is not passed over."""
    schema = columns(at="timestamp", a="string")
    arrow = to_arrow_schema(schema, timezone="UTC")

    def held(microseconds: int, text: str) -> str:
        at = pa.array([microseconds], pa.int64()).cast(arrow.field("at").type)
        return content_of(pa.table([at, pa.array([text])], schema=arrow).to_reader(), schema).sha256

    most = 2**63 - 1
    assert len({held(at, text) for at in (most, -most, 0) for text in ("a", "b")}) == 6


def test_struct_is_hashed_whatever_it_is_called() -> None:
    """Also by the names that the query gives to others."""
    for name in ("_held", "t", "h", "x"):
        schema = columns(**{name: "struct<x:string>", "x" if name != "x" else "y": "string"})
        assert len({hashed([[{"x": text}, "same"]], schema).sha256 for text in ("one", "two")}) == 2


def test_values_may_be_nested_deeply() -> None:
    """The query grows with the levels, not with their power."""
    dtype, value = "string", "x"
    for level in range(12):
        dtype, value = (f"struct<a:{dtype}>", {"a": value}) if level % 2 else (f"array<{dtype}>", [value])
    assert hashed([[value]], columns(x=dtype)).sha256 != hashed([[None]], columns(x=dtype)).sha256


def test_what_is_no_number_is_one() -> None:
    """Whatever its sign and its other bits."""
    signed = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000000))[0]
    assert hashed([[signed]], columns(x="double")) == hashed([[float("nan")]], columns(x="double"))


def test_two_zeros_and_two_orders_of_a_map_are_one() -> None:
    """As they are to whoever compares them."""
    assert hashed([[0.0]], columns(x="double")) == hashed([[-0.0]], columns(x="double"))
    maps = ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)])
    assert len({hashed([[value]], columns(x="map<string,int>")).sha256 for value in maps}) == 1


def test_names_and_types_of_columns_count() -> None:
    """Their order does not."""
    one = hashed([["x", "y", 1]], TEXTS)
    assert one == hashed([[1, "y", "x"]], columns(n="bigint", b="string", a="string"))
    assert one.sha256 != hashed([["x", "y", 1]], columns(a="string", b="string", m="bigint")).sha256
    assert one.sha256 != hashed([["x", "y", 1]], columns(a="string", b="string", n="int")).sha256
    assert hashed([], TEXTS).rows == 0


def test_the_method_is_the_one_of_earlier_certificates() -> None:
    """A change of it needs another name: hashes that were written down stay what they are."""
    rows = [["a", None, 1], ["", "é", None], ["a", None, 1]]
    assert hashed(rows, TEXTS).sha256 == "d341d8d2616bac8960c23eb6ca4809628327e16629209d14bc4a0f069322e27b"
