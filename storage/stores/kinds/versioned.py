"""Implements versioned stores (KIP-889's `VersionedKeyValueStore`, KIP-960, KIP-968): the value of a key at each time.

A version is valid from its time until that of the next one, exclusive; a delete is a version, too. The history
retention is also the grace period: a version older than the newest time less the retention is refused. As of such a
time a key has a value only if its latest version, which never expires, was valid then.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.stores.errors import WrongRange
from lakejoin.storage.stores.kinds.base import Key, Store, Value, bound_of
from lakejoin.storage.stores.kinds.compaction import compact
from lakejoin.storage.stores.kinds.version_acceptance import accepted, accepted_rows
from lakejoin.storage.stores.kinds.version_history import OUR_COLUMNS, History, Version, VersionColumns
from lakejoin.storage.stores.scan.reader import Reader, Row
from lakejoin.storage.stores.write.creation import Columns, create_table
from lakejoin.storage.stores.write.layout import Layout
from lakejoin.storage.stores.write.puts import Writer

Time = datetime


class Put(NamedTuple):
    """What became of a version that was put."""

    accepted: bool
    """False for one that is older than the retention."""
    valid_to: Time | None
    """Start of the next version; None where it is the latest."""


class PutAll(NamedTuple):
    """What became of versions that were put together."""

    accepted: int
    expired: int
    """How many were refused: older than the retention."""


class VersionedKeyValueStore(Store):
    """Versions by key and time. Raises `NullKey` and `WrongKey`."""

    _kind = "versioned"

    def __init__(
        self, reader: Reader, layout: Layout, writer: Writer | None = None,
        columns: VersionColumns = OUR_COLUMNS, bound: datetime | None = None,
    ) -> None:  # fmt: skip
        """`bound`: versions that ended before it have expired, where the store's rows do not say."""
        super().__init__(reader, layout, writer)
        self._bound_given = bound
        self._columns, self._history = columns, History(reader, columns)

    @classmethod
    def create(
        cls, spark: SparkSession, path: str, key: Columns, value: Columns,
        *, history_retention: timedelta | None = None,
    ) -> Self:  # fmt: skip
        """Make a store of these columns."""
        create_table(spark, path, "versioned", key, value, retention=history_retention)
        return cls.open(path, spark)

    def get(self, key: Key) -> Version | None:
        """Return the latest version of a key; None without one, or where that is a delete."""
        return self._version(self._history.last(self._place(key), None), None)

    def get_as_of(self, key: Key, time: Time) -> Version | None:
        """Return the version that was valid at a time; None without one, or where it has expired."""
        place, when = self._place(key), self._time(self._columns.valid_from, time)
        bound = self._expiry()
        if bound is not None and when < bound:
            latest = self.get(key)
            return latest if latest is not None and latest.valid_from <= when else None
        row = self._history.last(place, when)
        if row is None:
            return None
        return self._version(row, self._history.end(self._history.next(place, when)))

    def versions(self, key: Key, time_from: Time | None, time_to: Time | None) -> Iterator[Version]:
        """Yield the versions valid at any time between two, both inclusive and open where None, oldest first.

        As in Kafka, versions that have expired are listed while they are there, which is until a compaction; but of
        a span that ends before the history begins only the latest version is. Raises `WrongRange` for
        a span that ends before it begins.
        """
        place, start, end = self._place(key), *self._times(time_from, time_to)
        return self._listed(self._history.forward(place, start), end)

    def backward_versions(self, key: Key, time_from: Time | None, time_to: Time | None) -> Iterator[Version]:
        """Yield what `versions` does, newest first."""
        place, start, end = self._place(key), *self._times(time_from, time_to)
        return self._listed(self._history.backward(place, start, end), end)

    def put(self, key: Key, value: Value | None, valid_from: Time) -> Put:
        """Put a version, in the place of one of the same time; None is a delete."""
        writer = self._writer
        place, when, values = self._place(key), self._time("valid_from", valid_from), self._columns_of(value)
        bound = self._expiry()
        if bound is not None and when < bound:
            return Put(accepted=False, valid_to=None)
        following = self._history.next(place, when)
        writer.put_rows([(*place, when, *values)])
        return Put(accepted=True, valid_to=None if following is None else self._history.start(following))

    def put_all(
        self, entries: Iterable[tuple[Key, Value, Time]] | DataFrame, order: str | None = None
    ) -> PutAll:
        """Put many versions in one commit, one after the other: each may move the time that refuses later ones.

        `order`: see `Writer.put_frame`; rows of a frame whose value columns are all null are deletes.
        """
        writer, bound, retention = self._writer, self._expiry(), self._layout.retention
        if isinstance(entries, DataFrame):
            return PutAll(*accepted(writer, entries, order, bound, retention))
        given = self._entries(entries, ("key", "value", "valid_from"), order)
        rows = [(*self._place(k), self._time("valid_from", t), *self._columns_of(v)) for k, v, t in given]
        kept = accepted_rows(rows, len(self._layout.key), bound, retention)
        if kept:
            writer.put_rows(kept)
        return PutAll(len(kept), len(rows) - len(kept))

    def delete(self, key: Key, time: Time) -> Version | None:
        """Delete a key as of a time; return the version that was valid then, None also where it is too old."""
        writer, bound = self._writer, self._expiry()
        place, when = self._place(key), self._time("valid_from", time)
        if bound is not None and when < bound:
            return None
        found = self.get_as_of(key, time)
        writer.put_rows([(*place, when, *self._columns_of(None))])
        return found

    def compact(self) -> None:
        """Drop versions that were replaced or have expired, and bring all others in order."""
        compact(self._reader, self._layout, self._writer)

    def _expiry(self) -> Time | None:
        """Versions that ended before it have expired."""
        if self._bound_given is not None:
            return self._bound_given
        return bound_of(self._reader, self._layout.retention)

    def _times(self, time_from: Time | None, time_to: Time | None) -> tuple[Time | None, Time | None]:
        """Ends of a span of time. Raises `WrongKey`, `WrongRange`."""
        column = self._columns.valid_from
        start, end = (None if t is None else self._time(column, t) for t in (time_from, time_to))
        if start is not None and end is not None and start > end:
            raise WrongRange(
                f"{self._reader.path}: expected a span of time that ends no earlier than it begins, found "
                f"{time_from!r} to {time_to!r}; give the earlier time first, or None for no bound"
            )
        return start, end

    def _listed(self, versions: Iterator[tuple[Row, Time | None]], end: Time | None) -> Iterator[Version]:
        """Those that are values and begin up to an end; before history begins, only what is still valid."""
        bound = self._expiry()
        before_history = bound is not None and end is not None and end < bound
        for row, ended in versions:
            if end is not None and self._history.start(row) > end:
                return
            version = self._version(row, ended)
            if version is None or (ended is not None and before_history):
                continue
            yield version

    def _version(self, row: Row | None, end: Time | None) -> Version | None:
        """A row as a version; None for a delete."""
        if row is None or self._history.is_delete(row):
            return None
        return Version(self._value_of(row), self._history.start(row), end)
