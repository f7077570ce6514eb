"""Implements window stores (KIP-617's `WindowStore`): values of windows of one length, by key, then by start."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.stores.kinds.base import Key, Store, Value, bound_of, not_expired
from lakejoin.storage.stores.kinds.compaction import compact
from lakejoin.storage.stores.scan.order import Between, Bound, Column, Span
from lakejoin.storage.stores.scan.reader import Reader, Row
from lakejoin.storage.stores.write.creation import Columns, create_table
from lakejoin.storage.stores.write.layout import Layout
from lakejoin.storage.stores.write.puts import Writer

Time = datetime


class Windowed(NamedTuple):
    """The value of a key in a window or session."""

    key: Key
    start: Time
    end: Time | None
    """Exclusive; None where the store has no length of windows."""
    value: Value


class WindowStore(Store):
    """Values by key and start of window.

    Rows are gone once their start is not after the newest start less the retention. Times are inclusive at both
    ends, open where None. Raises `NullKey` and `WrongKey`.
    """

    _kind = "window"

    def __init__(self, reader: Reader, layout: Layout, writer: Writer | None = None) -> None:
        super().__init__(reader, layout, writer)
        (self._start,) = reader.shape.times

    @classmethod
    def create(  # noqa: PLR0913 - each is a choice of its own
        cls, spark: SparkSession, path: str, key: Columns, value: Columns,
        *, window: timedelta, retention: timedelta | None = None, duplicates: bool = False,
    ) -> Self:  # fmt: skip
        """Make a store of these columns. `duplicates`: keep every put of a key and start, in the order of puts."""
        create_table(
            spark, path, "window", key, value, retention=retention, window=window, duplicates=duplicates
        )
        return cls.open(path, spark)

    def fetch_one(self, key: Key, start: Time) -> Value | None:
        """Return the value of a key in the window that starts then; a store of duplicates finds none."""
        bound = Bound((*self._place(key), self._time(self._start[0], start)))
        row = None if self._reader.shape.every else self._first(Span(bound, bound, self._alive({})))
        return None if row is None else self._value_of(row)

    def fetch(self, key: Key, time_from: Time | None, time_to: Time | None) -> Iterator[Windowed]:
        """Yield the windows of a key that start between two times, oldest first."""
        return map(self._found, self._of_key(key, time_from, time_to, reverse=False))

    def backward_fetch(self, key: Key, time_from: Time | None, time_to: Time | None) -> Iterator[Windowed]:
        """Yield what `fetch` does, newest first."""
        return map(self._found, self._of_key(key, time_from, time_to, reverse=True))

    def fetch_range(
        self, key_from: Key | None, key_to: Key | None, time_from: Time | None, time_to: Time | None
    ) -> Iterator[Windowed]:
        """Yield the windows of a range of keys, both inclusive and open where None, by key, then by start."""
        return map(self._found, self._of_keys(key_from, key_to, time_from, time_to, reverse=False))

    def backward_fetch_range(
        self, key_from: Key | None, key_to: Key | None, time_from: Time | None, time_to: Time | None
    ) -> Iterator[Windowed]:
        """Yield what `fetch_range` does, the other way round."""
        return map(self._found, self._of_keys(key_from, key_to, time_from, time_to, reverse=True))

    def fetch_all(self, time_from: Time | None, time_to: Time | None) -> Iterator[Windowed]:
        """Yield the windows of all keys that start between two times, by key, then by start."""
        return self.fetch_range(None, None, time_from, time_to)

    def backward_fetch_all(self, time_from: Time | None, time_to: Time | None) -> Iterator[Windowed]:
        """Yield what `fetch_all` does, the other way round."""
        return self.backward_fetch_range(None, None, time_from, time_to)

    def all(self) -> Iterator[Windowed]:
        """Yield every window, by key, then by start."""
        return self.fetch_all(None, None)

    def backward_all(self) -> Iterator[Windowed]:
        """Yield every window, the last one first."""
        return self.backward_fetch_all(None, None)

    def put(self, key: Key, value: Value | None, start: Time) -> None:
        """Put a value; None deletes the window, or is ignored by a store of duplicates."""
        self.put_all([(key, value, start)])

    def put_all(
        self, entries: Iterable[tuple[Key, Value, Time]] | DataFrame, order: str | None = None
    ) -> None:
        """Put many values in one commit; of a key and start the last one counts. `order`: see `Writer.put_frame`."""
        writer = self._writer
        if isinstance(entries, DataFrame):
            writer.put_frame(entries, order)
            return
        given = self._entries(entries, ("key", "value", "start"), order)
        if rows := [(*self._place(k), self._time("start", t), *self._columns_of(v)) for k, v, t in given]:
            writer.put_rows(rows)

    def compact(self) -> None:
        """Drop superseded, deleted and expired rows, and bring all others in order."""
        compact(self._reader, self._layout, self._writer)

    def _of_key(
        self, key: Key, time_from: Time | None, time_to: Time | None, *, reverse: bool
    ) -> Iterator[Row]:
        place, column = self._place(key), self._start
        limit = self._limit(column, time_from, time_to).get(column, Between())
        low = Bound(place if limit.low is None else (*place, limit.low))
        high = Bound(place if limit.high is None else (*place, limit.high))
        return self._rows(Span(low, high, self._alive({})), reverse=reverse)

    def _of_keys(
        self, key_from: Key | None, key_to: Key | None, time_from: Time | None, time_to: Time | None,
        *, reverse: bool,
    ) -> Iterator[Row]:  # fmt: skip
        within = self._alive(self._limit(self._start, time_from, time_to))
        return self._rows(self._between(key_from, key_to, within), reverse=reverse)

    def _alive(self, limits: Mapping[Column, Between]) -> dict[Column, Between]:
        return not_expired(limits, self._start, bound_of(self._reader, self._layout.retention))

    def _found(self, row: Row) -> Windowed:
        start = row[self._start[0]]
        end = None if self._layout.window is None else start + self._layout.window
        return Windowed(self._key_of(row), start, end, self._value_of(row))
