"""Reads the versions of a key in their order, each with the one after it, as of a time or within a span."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from lakejoin.storage.stores.scan.order import Bound, Place, Span
from lakejoin.storage.stores.scan.reader import Reader, Row
from lakejoin.storage.stores.write.layout import DELETED

Time = datetime


class Version(NamedTuple):
    """A value and when it is valid."""

    value: Any
    valid_from: Time
    valid_to: Time | None
    """Exclusive; None: until further notice."""


@dataclass(frozen=True)
class VersionColumns:
    """How the columns of a table of versions are called."""

    valid_from: str = "valid_from"
    deleted: str = DELETED


OUR_COLUMNS = VersionColumns()


@dataclass(frozen=True)
class History:
    """The versions of all keys, deletes included, with nothing forgotten."""

    reader: Reader
    columns: VersionColumns

    def last(self, place: Place, time: Time | None) -> Row | None:
        """Return the newest version of a key, up to a time if there is one; it may be a delete."""
        span = Span(Bound(place), Bound(place if time is None else (*place, time)))
        return next(islice(self.reader.rows(span, reverse=True, tombstones=True), 1), None)

    def next(self, place: Place, time: Time) -> Row | None:
        """Return the oldest version of a key after a time; it may be a delete."""
        span = Span(Bound((*place, time), inclusive=False), Bound(place))
        return next(islice(self.reader.rows(span, tombstones=True), 1), None)

    def forward(self, place: Place, start: Time | None) -> Iterator[tuple[Row, Time | None]]:
        """Yield the versions of a key with their ends, from the one that is valid at a time."""
        first = None if start is None else self.last(place, start)
        low = Bound(place if first is None else (*place, self.start(first)))
        rows = self.reader.rows(Span(low, Bound(place)), tombstones=True)
        for row, after in followed(rows):
            yield row, self.end(after)

    def backward(
        self, place: Place, start: Time | None, end: Time | None
    ) -> Iterator[tuple[Row, Time | None]]:
        """Yield the versions of a key with their ends, from the one valid at `end` back to the one at `start`."""
        after = None if end is None else self.next(place, end)
        high = Bound(place if end is None else (*place, end))
        for row in self.reader.rows(Span(Bound(place), high), reverse=True, tombstones=True):
            yield row, self.end(after)
            if start is not None and self.start(row) <= start:
                return
            after = row

    def start(self, row: Row) -> Time:
        """Return when a version begins."""
        found: Time = row[self.columns.valid_from]
        return found

    def end(self, after: Row | None) -> Time | None:
        """Return when a version ends: where the one after it begins."""
        return None if after is None else self.start(after)

    def is_delete(self, row: Row) -> bool:
        """Tell whether a version is a delete."""
        return bool(row[self.columns.deleted])


def followed(rows: Iterator[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Yield each row with the one after it, None after the last."""
    for row, after in pairwise(chain(rows, [None])):
        assert row is not None  # which is only put behind all rows
        yield row, after
