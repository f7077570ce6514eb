"""Implements session stores (KIP-617's `SessionStore`): values by key, then by the session's end, then its start."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.stores.errors import WrongRange
from lakejoin.storage.stores.kinds.base import Key, Store, Value, bound_of, not_expired
from lakejoin.storage.stores.kinds.compaction import compact
from lakejoin.storage.stores.kinds.window import Windowed
from lakejoin.storage.stores.scan.order import Between, Bound, Span
from lakejoin.storage.stores.scan.reader import Row
from lakejoin.storage.stores.write.creation import Columns, create_table

Time = datetime

_END, _START = ("end",), ("start",)


class SessionStore(Store):
    """Values by key, end and start of session.

    Rows are gone once their end is not after the newest end less the retention. Raises `NullKey` and `WrongKey`.
    """

    _kind = "session"

    @classmethod
    def create(
        cls, spark: SparkSession, path: str, key: Columns, value: Columns,
        *, retention: timedelta | None = None,
    ) -> Self:  # fmt: skip
        """Make a store of these columns."""
        create_table(spark, path, "session", key, value, retention=retention)
        return cls.open(path, spark)

    def fetch(self, key: Key) -> Iterator[Windowed]:
        """Yield the sessions of a key by end, then by start."""
        return self.find_sessions(key, None, None)

    def backward_fetch(self, key: Key) -> Iterator[Windowed]:
        """Yield what `fetch` does, the last one first."""
        return self.backward_find_sessions(key, None, None)

    def fetch_range(self, key_from: Key | None, key_to: Key | None) -> Iterator[Windowed]:
        """Yield the sessions of a range of keys, both inclusive and open where None."""
        return self.find_sessions_range(key_from, key_to, None, None)

    def backward_fetch_range(self, key_from: Key | None, key_to: Key | None) -> Iterator[Windowed]:
        """Yield what `fetch_range` does, the other way round."""
        return self.backward_find_sessions_range(key_from, key_to, None, None)

    def find_sessions(
        self, key: Key, earliest_end: Time | None, latest_start: Time | None
    ) -> Iterator[Windowed]:
        """Yield the sessions of a key that end not before one time and start not after another."""
        return self._of_key(key, earliest_end, latest_start, reverse=False)

    def backward_find_sessions(
        self, key: Key, earliest_end: Time | None, latest_start: Time | None
    ) -> Iterator[Windowed]:
        """Yield what `find_sessions` does, the last one first."""
        return self._of_key(key, earliest_end, latest_start, reverse=True)

    def find_sessions_range(
        self, key_from: Key | None, key_to: Key | None, earliest_end: Time | None, latest_start: Time | None
    ) -> Iterator[Windowed]:
        """Yield the sessions that `find_sessions` does of a range of keys, by key, then end, then start."""
        return self._of_keys(key_from, key_to, earliest_end, latest_start, reverse=False)

    def backward_find_sessions_range(
        self, key_from: Key | None, key_to: Key | None, earliest_end: Time | None, latest_start: Time | None
    ) -> Iterator[Windowed]:
        """Yield what `find_sessions_range` does, the other way round."""
        return self._of_keys(key_from, key_to, earliest_end, latest_start, reverse=True)

    def find_sessions_by_end(self, end_from: Time | None, end_to: Time | None) -> Iterator[Windowed]:
        """Yield the sessions of all keys that end between two times, both inclusive, by key, then end, then start."""
        return map(self._found, self._rows(Span(within=self._ending(end_from, end_to))))

    def backward_find_sessions_by_end(self, end_from: Time | None, end_to: Time | None) -> Iterator[Windowed]:
        """Yield what `find_sessions_by_end` does, the other way round."""
        return map(self._found, self._rows(Span(within=self._ending(end_from, end_to)), reverse=True))

    def fetch_session(self, key: Key, start: Time, end: Time) -> Value | None:
        """Return the value of one session, None without it."""
        bound = Bound((*self._place(key), self._time("end", end), self._time("start", start)))
        row = self._first(Span(bound, bound, self._alive(None, None)))
        return None if row is None else self._value_of(row)

    def put(self, key: Key, start: Time, end: Time, value: Value | None) -> None:
        """Put the value of a session, which ends no earlier than it starts; None removes it."""
        self.put_all([(key, start, end, value)])

    def put_all(
        self, entries: Iterable[tuple[Key, Time, Time, Value]] | DataFrame, order: str | None = None
    ) -> None:
        """Put many values in one commit; of a session the last one counts. `order`: see `Writer.put_frame`."""
        writer = self._writer
        if isinstance(entries, DataFrame):
            writer.put_frame(entries, order)
        elif rows := [self._row(*e) for e in self._entries(entries, ("key", "start", "end", "value"), order)]:
            writer.put_rows(rows)

    def remove(self, key: Key, start: Time, end: Time) -> None:
        """Remove a session; nothing happens where there is none."""
        self.put(key, start, end, None)

    def compact(self) -> None:
        """Drop superseded, removed and expired rows, and bring all others in order."""
        compact(self._reader, self._layout, self._writer)

    def _row(self, key: Key, start: Time, end: Time, value: Value) -> tuple[object, ...]:
        times = self._time("end", end), self._time("start", start)
        if times[1] > times[0]:
            raise WrongRange(
                f"{self._reader.path}: expected a session that ends no earlier than it starts, found {start!r} to "
                f"{end!r}; give the start first; nothing was put"
            )
        return (*self._place(key), *times, *self._columns_of(value))

    def _of_key(
        self, key: Key, earliest_end: Time | None, latest_start: Time | None, *, reverse: bool
    ) -> Iterator[Windowed]:
        place = self._place(key)
        low = place if earliest_end is None else (*place, self._time("end", earliest_end))
        span = Span(Bound(low), Bound(place), self._alive(None, latest_start))
        return map(self._found, self._rows(span, reverse=reverse))

    def _of_keys(
        self, key_from: Key | None, key_to: Key | None, earliest_end: Time | None, latest_start: Time | None,
        *, reverse: bool,
    ) -> Iterator[Windowed]:  # fmt: skip
        span = self._between(key_from, key_to, self._alive(earliest_end, latest_start))
        return map(self._found, self._rows(span, reverse=reverse))

    def _ending(self, end_from: Time | None, end_to: Time | None) -> dict[tuple[str, ...], Between]:
        limits = self._limit(_END, end_from, end_to)
        return not_expired(limits, _END, bound_of(self._reader, self._layout.retention))

    def _alive(self, earliest_end: Time | None, latest_start: Time | None) -> dict[tuple[str, ...], Between]:
        limits = self._limit(_END, earliest_end, None) | self._limit(_START, None, latest_start)
        return not_expired(limits, _END, bound_of(self._reader, self._layout.retention))

    def _found(self, row: Row) -> Windowed:
        return Windowed(self._key_of(row), row["start"], row["end"], self._value_of(row))
