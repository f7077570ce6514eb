"""Places, spans and prefixes: what comes before what, and what can hold it."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakejoin.storage.stores.scan.order import (
    Between,
    Bound,
    Place,
    Span,
    ahead,
    beginning_with,
    nearest,
    successor,
)

texts = st.text(st.sampled_from("\0\x01aß\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=3)
octets = st.binary(max_size=3)


@given(texts, texts)
def test_text_is_ordered_by_its_utf8_bytes(one: str, other: str) -> None:
    """The order of Python's texts, by which places compare, is that of the bytes; UTF-16 would differ."""
    assert ahead((one,), (other,)) == (one.encode() < other.encode())


@given(texts, texts)
def test_texts_with_a_prefix_are_a_span(prefix: str, text: str) -> None:
    """The ends let in exactly what begins with the prefix, whatever its last characters are."""
    assert _holds(Span(*beginning_with((), prefix)), (text,)) == text.startswith(prefix)


@given(octets, octets)
def test_bytes_with_a_prefix_are_a_span(prefix: bytes, value: bytes) -> None:
    """The same for bytes, the last of which have no successor."""
    assert _holds(Span(*beginning_with((), prefix)), (value,)) == value.startswith(prefix)


@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        ("a", "b"),
        ("\ud7ff", "\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff", None),
        (b"a\xff", b"b"),
        (b"\xff", None),
    ],
)
def test_successor_is_the_least_value_after_all_with_a_prefix(prefix: Any, after: Any) -> None:
    """Surrogates are no characters; the greatest character and byte have nothing after them."""
    assert successor(prefix) == after


@given(texts, texts)
def test_prefix_within_the_first_parts_of_a_key(prefix: str, text: str) -> None:
    """Of keys with several parts the first ones are fixed and the next one begins with the prefix."""
    span = Span(*beginning_with((7,), prefix))
    assert _holds(span, (7, text, 1)) == text.startswith(prefix)
    assert not _holds(span, (6, text, 1))
    assert not _holds(span, (8, text, 1))


numbers = st.integers(0, 3)
places = st.tuples(numbers, numbers)
bounds = st.none() | st.builds(Bound, st.tuples(numbers) | st.tuples(numbers, numbers), st.booleans())


@given(st.lists(places, min_size=1), bounds, bounds, st.integers(0, 2), st.integers(0, 2))
def test_file_is_passed_over_only_if_no_row_of_it_is_asked_for(
    rows: list[Place], low: Bound | None, high: Bound | None, known_least: int, known_greatest: int
) -> None:
    """By the least and greatest value of each column, as far as they are known."""
    span = Span(low, high)
    least = tuple(min(column) for column in zip(*rows, strict=True))[:known_least]
    greatest = tuple(max(column) for column in zip(*rows, strict=True))[:known_greatest]
    if any(_holds(span, row) for row in rows):
        assert span.meets(least, greatest)
        assert not span.nowhere


@given(st.lists(st.tuples() | st.tuples(numbers) | places, min_size=1), places, st.booleans())
def test_row_ahead_of_the_nearest_place_is_ahead_of_all(
    known: list[Place], row: Place, reverse: bool
) -> None:
    """So such a row may be handed out before any of the parts is opened that begin there."""
    first = nearest(known, reverse=reverse)
    assert first in known
    if ahead(row, first, reverse=reverse):
        assert all(ahead(row, place, reverse=reverse) for place in known)


@pytest.mark.parametrize(
    ("limit", "met"),
    [
        (Between(), True), (Between(5, None), True), (Between(6, None), False), (Between(None, 2), True),
        (Between(None, 1), False), (Between(5, None, low_inclusive=False), False),
    ],
)  # fmt: skip
def test_limits_of_a_column_are_met_by_files_between_them(limit: Between, met: bool) -> None:
    """A file whose values go from 2 to 5; nulls are not counted among them."""
    assert limit.meets(2, 5) == met
    assert limit.meets(None, None)


def test_span_that_ends_before_it_begins_is_nowhere() -> None:
    """As in Kafka: no rows, no error."""
    assert Span(Bound(("b",)), Bound(("a",))).nowhere
    assert Span(within={("time",): Between(2, 1)}).nowhere
    assert not any(Span(Bound((low,)), Bound((high,))).nowhere for low, high in product("ab", "b"))


def _holds(span: Span, row: Place) -> bool:
    """Whether a row is in a span, one comparison after the other."""
    low, high = span.low, span.high
    above = (
        low is None
        or row[: len(low.place)] > low.place
        or (low.inclusive and row[: len(low.place)] == low.place)
    )
    below = (
        high is None
        or row[: len(high.place)] < high.place
        or (high.inclusive and row[: len(high.place)] == high.place)
    )
    return above and below
