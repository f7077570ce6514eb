"""Options of `show` as a part of a store's order, and what they cannot be."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.show.key_ranges import Ordered, Range, parsed
from lakejoin.storage.stores.scan.order import Between, Bound, Span

TEXT = Ordered("planes", StructType().add("tailnum", StringType()), (("tailnum",),))
NUMBER = Ordered("flights", StructType().add("id", LongType()), (("id",),), time=("at",))
PAIR = Ordered(
    "lines", StructType().add("order", StringType()).add("line", LongType()), (("order",), ("line",))
)
VERSIONS = Ordered("fares.versions", TEXT.key, TEXT.columns, time=("valid_from",), validity=True)
BUFFER = Ordered("j.buffer", StructType(), (), key_is_place=False, time=("at",))
STORE = Ordered("j.store", PAIR.key, PAIR.columns, key_is_place=False)
TEN = datetime(2013, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ordered", "asked", "span"),
    [
        (TEXT, Range(), Span()),
        (TEXT, Range(key="N1"), Span(Bound(("N1",)), Bound(("N1",)))),
        (TEXT, Range(key='["N1"]'), Span(Bound(('["N1"]',)), Bound(('["N1"]',)))),
        (TEXT, Range(prefix="N1"), Span(Bound(("N1",)), Bound(("N2",), inclusive=False))),
        (TEXT, Range(key_from="N1", reverse=True), Span(Bound(("N1",)))),
        (NUMBER, Range(key_from="9", key_to="10"), Span(Bound((9,)), Bound((10,)))),
        (NUMBER, Range(time_from="2013-01-01T10:00:00Z"), Span(within={("at",): Between(TEN)})),
        (NUMBER, Range(time_to="2013-01-01T11:00:00+01:00"), Span(within={("at",): Between(None, TEN)})),
        (PAIR, Range(key='["a", 2]'), Span(Bound(("a", 2)), Bound(("a", 2)))),
        (PAIR, Range(prefix="a"), Span(Bound(("a",)), Bound(("a",)))),
        (PAIR, Range(prefix='["a"]'), Span(Bound(("a",)), Bound(("a",)))),
        (PAIR, Range(key_from='["a", 2]', key_to="b"), Span(Bound(("a", 2)), Bound(("b",)))),
        (STORE, Range(prefix="7"), Span(Bound(("7",)), Bound(("7",)))),
    ],
)
def test_options_are_a_span(ordered: Ordered, asked: Range, span: Span) -> None:
    """Typed as the key's columns are; a bare text is the first column of a composite key."""
    assert ordered.span(asked) == span


def test_times_of_versions_are_no_part_of_the_order() -> None:
    """A version from before them may still be valid: the view looks at its end."""
    asked = Range(key="a", time_from="2013-01-01T10:00:00Z")
    assert VERSIONS.span(asked) == Span(Bound(("a",)), Bound(("a",)))
    assert VERSIONS.times(asked) == (TEN, None)


@pytest.mark.parametrize(
    ("ordered", "asked", "message"),
    [
        (PAIR, Range(key='["a", null]'), "found null, which no column of a key is; expected values"),
        (PAIR, Range(prefix="[null]"), "--prefix '[null]': found null"),
        (NUMBER, Range(key="many"), "--key 'many': id is bigint, found 'many'"),
        (NUMBER, Range(key_to="x"), "--key-to 'x': id is bigint"),
        (NUMBER, Range(prefix="1"), "only text and keys of several columns have prefixes"),
        (NUMBER, Range(key="1", prefix="1"), "--key and --prefix: give one of them"),
        (NUMBER, Range(key="1", key_from="1"), "--key and --key-from/--key-to: give one"),
        (NUMBER, Range(key_from="3", key_to="2"), "--key-from '3' comes after --key-to '2'"),
        (NUMBER, Range(time_from="noon"), "--time-from 'noon': expected a time such as"),
        (TEXT, Range(time_to="2013-01-01"), "--time-to: the rows of planes have no time"),
        (PAIR, Range(key="a"), "the key of lines is a JSON array of order, line"),
        (PAIR, Range(key='["a", 1, 2]'), "the key of lines is a JSON array of order, line"),
        (PAIR, Range(prefix="[]"), "is a JSON array of order, line"),
        (BUFFER, Range(prefix="1"), "--prefix: the rows of j.buffer are ordered by time"),
        (STORE, Range(key="1", reverse=True), "--key of j.store is a primary key"),
    ],
)
def test_options_that_cannot_be_are_refused(ordered: Ordered, asked: Range, message: str) -> None:
    """The message names the option, what was found and what is expected."""
    with pytest.raises(WrongUsage) as refused:
        ordered.span(asked)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("a", StringType(), "a"),
        ("a", BinaryType(), b"a"),
        (" 7 ", ShortType(), 7),
        ("70000", ShortType(), None),
        ("1.50", DecimalType(4, 2), Decimal("1.50")),
        ("2013-01-02", DateType(), date(2013, 1, 2)),
        ("2013-13-02", DateType(), None),
        ("true", BooleanType(), True),
        ("2013-01-01 10:00:00", TimestampType(), TEN),
        ("2013-01-01T10:00:00", TimestampNTZType(), TEN.replace(tzinfo=None)),
    ],
)
def test_text_is_parsed_by_the_type_of_its_column(text: str, kind: DataType, value: Any) -> None:
    """None where it is no value of the type; a time without a zone is in UTC."""
    assert parsed(text, kind) == value


def test_given_options_are_named_as_they_were_typed() -> None:
    """For messages, and to tell whether only a store can answer."""
    asked = Range(key="1", time_from="t", reverse=True)
    assert asked.given == ["--key", "--time-from", "--reverse"]
    assert asked.beyond_key == ["--time-from", "--reverse"]
    assert Range().given == []
