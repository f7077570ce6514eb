"""Defines the order of a store, and spans of it: by the key's columns one after the other, then by time.

Values compare as their bytes do: text by its UTF-8 bytes (which is the order of code points), binary unsigned, numbers,
dates and timestamps by value, false before true. The place of a row is the tuple of these values. Of a file only the
beginning of such a tuple is known: its least values column by column are a lower bound of all its places, its greatest
values an upper bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any

Place = tuple[Any, ...]
Column = tuple[str, ...]
"""Path of a column: its name, or those of a struct and of a field in it."""

_GREATEST_CHARACTER = "\U0010ffff"
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class Bound:
    """One end of a span: values of the first columns of the order."""

    place: Place
    inclusive: bool = True


@dataclass(frozen=True)
class Between:
    """The values that a single column may hold."""

    low: Any = None
    high: Any = None
    low_inclusive: bool = True

    def meets(self, least: Any, greatest: Any) -> bool:
        """Whether values between these two, None for unknown, may be among them."""
        over = self.low is not None and greatest is not None
        if over and (greatest < self.low or (greatest == self.low and not self.low_inclusive)):
            return False
        return not (self.high is not None and least is not None and least > self.high)


ANYTHING: Mapping[Column, Between] = MappingProxyType({})


@dataclass(frozen=True)
class Span:
    """Rows between two ends of the order, both open where None, whose columns are `within` limits."""

    low: Bound | None = None
    high: Bound | None = None
    within: Mapping[Column, Between] = field(default_factory=lambda: ANYTHING)

    @property
    def nowhere(self) -> bool:
        """Whether its end comes before its beginning, so that it holds no row; Kafka answers the same."""
        crossed = self.low and self.high and ahead(self.high.place, self.low.place)
        return bool(crossed) or any(
            limit.low is not None and limit.high is not None and limit.low > limit.high
            for limit in self.within.values()
        )

    def meets(self, least: Place, greatest: Place) -> bool:
        """Whether rows from `least` to `greatest`, as far as these are known, may be in the span."""
        return not (
            (self.low and _outside(greatest, self.low, reverse=False))
            or (self.high and _outside(least, self.high, reverse=True))
        )


def ahead(one: Place, other: Place, *, reverse: bool = False) -> bool:
    """Whether every place that begins with `one` comes before every one that begins with `other`."""
    length = min(len(one), len(other))
    return one[:length] > other[:length] if reverse else one[:length] < other[:length]


def nearest(places: Iterable[Place], *, reverse: bool = False) -> Place | None:
    """The first of these places; of places that begin with each other the shortest, which is known least well."""

    def nearer(one: Place, other: Place) -> Place:
        if ahead(one, other, reverse=reverse):
            return one
        return other if ahead(other, one, reverse=reverse) or len(other) < len(one) else one

    found = list(places)
    return reduce(nearer, found) if found else None


def beginning_with(first: Place, prefix: str | bytes | None = None) -> tuple[Bound | None, Bound | None]:
    """The ends of the span whose places begin with `first`, and next with text or bytes that begin with a prefix."""
    if not prefix:
        end = Bound(first) if first else None
        return end, end
    after = successor(prefix)
    high = Bound((*first, after), inclusive=False) if after is not None else Bound(first) if first else None
    return Bound((*first, prefix)), high


def successor(prefix: str | bytes) -> str | bytes | None:
    """The least text or bytes after all that begin with a prefix; None where nothing is."""
    if isinstance(prefix, bytes):
        short = prefix.rstrip(b"\xff")
        return short[:-1] + bytes([short[-1] + 1]) if short else None
    text = prefix.rstrip(_GREATEST_CHARACTER)
    if not text:
        return None
    point = ord(text[-1]) + 1
    return text[:-1] + chr(_SURROGATES.stop if point in _SURROGATES else point)


def _outside(known: Place, bound: Bound, *, reverse: bool) -> bool:
    """Whether all places up to `known` are beyond an end."""
    if ahead(known, bound.place, reverse=reverse):
        return True
    return not bound.inclusive and len(known) >= len(bound.place) == _common(known, bound.place)


def _common(one: Place, other: Place) -> int:
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
