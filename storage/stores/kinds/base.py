"""Holds what the four kinds of store have in common: keys and values as rows hold them, spans by key, retention."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, ClassVar, Self

from pyspark.sql import SparkSession

from lakejoin.storage.stores.errors import NullKey, StoreReadOnly, StoreUnreadable, WrongKey
from lakejoin.storage.stores.kinds.method_names import name_methods
from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.scan.order import Between, Bound, Column, Place, Span, ahead
from lakejoin.storage.stores.scan.reader import Reader, Row
from lakejoin.storage.stores.scan.table_columns import Source, dotted
from lakejoin.storage.stores.write.layout import OBSERVED, Kind, Layout, read_layout
from lakejoin.storage.stores.write.puts import Writer
from lakejoin.transforms.model.event_time import from_micros, moved_back
from lakejoin.transforms.model.printable_text import printable

Key = Any
"""The value of a key's only column, or a tuple of its columns."""
Value = Any
"""The value of a row's only other column, or its other columns by name."""

_log = logging.getLogger(__name__)


class Store:
    """A store that is read; with a writer it is written, too."""

    _kind: ClassVar[Kind]
    """What the table of such a store says it is."""

    def __init_subclass__(cls) -> None:
        """Let the errors of a kind of store name its methods."""
        super().__init_subclass__()
        name_methods(cls)

    def __init__(self, reader: Reader, layout: Layout, writer: Writer | None = None) -> None:
        self._reader, self._layout, self._given_writer = reader, layout, writer
        self._value = layout.value

    @classmethod
    def open(cls, path: str, spark: SparkSession | None = None) -> Self:
        """Open a store that `create` made: reads need no Spark, writes do. Raises `StoreUnreadable`."""
        if not isinstance(path, str):
            raise StoreUnreadable(
                f"expected the path of a store as text, found {path!r}; give the one it was made at"
            )
        table = TableFiles(path)
        layout = read_layout(table, cls._kind)
        reader = Reader([Source(path)], layout.shape, tables=[table])
        return cls(reader, layout, None if spark is None else Writer(spark, table, layout))

    @property
    def reader(self) -> Reader:
        """What reads the rows: says which files it opened, and what keeps it from opening fewer."""
        return self._reader

    @property
    def _writer(self) -> Writer:
        if self._given_writer is None:
            raise StoreReadOnly(
                f"{self._reader.path}: expected a store that was opened with a Spark session, found one opened "
                "for reading; open a store of your own with a session. Tables of a pipeline are written by its batches "
                "alone."
            )
        return self._given_writer

    def _place(self, key: Key) -> Place:
        """A whole key as the rows hold it. Raises `NullKey`, `WrongKey`."""
        parts = _parts(key)
        has_null = any(part is None for part in parts)
        if has_null or len(parts) != len(self._reader.shape.key):
            raise (NullKey if has_null else WrongKey)(
                f"{self._reader.path}: expected a key of {self._key_columns}, found {key!r}; give each column a value "
                "that is not null, several as a tuple"
            )
        return self._typed(parts)

    @property
    def _key_columns(self) -> str:
        """Columns of a key, for messages."""
        return ", ".join(map(dotted, self._reader.shape.key))

    def _typed(self, parts: Place) -> Place:
        """The first parts of a key, each as its column has it. Raises `NullKey`, `WrongKey`."""
        columns = self._reader.shape.key
        if any(part is None for part in parts):
            raise NullKey(
                f"{self._reader.path}: expected the first columns of {self._key_columns}, found {parts!r}; leave out "
                "the columns that may hold anything: () is the beginning of every key"
            )
        if len(parts) > len(columns):
            raise WrongKey(
                f"{self._reader.path}: expected the first columns of {self._key_columns}, found {parts!r}; give no "
                "more values than the key has columns"
            )
        return tuple(self._reader.value(c, part) for c, part in zip(columns, parts, strict=False))

    def _bound(self, key: Key | None) -> Bound | None:
        """An end of a range of keys, both inclusive. First parts stand for all keys with them, none for all keys."""
        place = () if key is None else self._typed(_parts(key))
        return Bound(place) if place else None

    def _between(self, key_from: Key | None, key_to: Key | None, within: Mapping[Column, Between]) -> Span:
        """Keys from one to another, both inclusive and open where None."""
        span = Span(self._bound(key_from), self._bound(key_to), within)
        if span.low and span.high and ahead(span.high.place, span.low.place):
            _log.warning(
                "keys from %s to %s are none: the range ends before it begins",
                printable(repr(key_from)),
                printable(repr(key_to)),
            )
        return span

    def _rows(self, span: Span, *, reverse: bool = False) -> Iterator[Row]:
        return self._reader.rows(span, reverse=reverse)

    def _first(self, span: Span) -> Row | None:
        return next(islice(self._rows(span), 1), None)

    def _key_of(self, row: Row) -> Key:
        parts = tuple(_field(row, column) for column in self._reader.shape.key)
        return parts[0] if len(parts) == 1 else parts

    def _value_of(self, row: Row) -> Value:
        return row[self._value[0]] if len(self._value) == 1 else {name: row[name] for name in self._value}

    def _columns_of(self, value: Value) -> tuple[Any, ...]:
        """A value as columns; None, a delete, as nulls."""
        if value is None:
            return (None,) * len(self._value)
        if len(self._value) == 1:
            return (self._reader.content(self._value[0], value),)
        if not isinstance(value, Mapping) or set(value) - set(self._value):
            raise WrongKey(
                f"{self._reader.path}: expected a value with the members {', '.join(self._value)}, found {value!r}; "
                "give a dictionary of these; nothing was put"
            )
        return tuple(self._reader.content(name, value.get(name)) for name in self._value)

    def _time(self, column: str, value: datetime | None) -> datetime:
        """A time as the rows hold it. Raises `NullKey`, `WrongKey`."""
        if value is None:
            raise NullKey(
                f"{self._reader.path}: expected a time for {column}, found None; give a datetime with a time zone"
            )
        found: datetime = self._reader.value((column,), value)
        return found

    def _entries(self, entries: Any, members: tuple[str, ...], order: str | None) -> list[Any]:
        """What is to be put, each with these members. Raises `NullKey`, `WrongKey`."""
        expected = f"entries of ({', '.join(members)}) or a frame"
        if entries is None:
            raise NullKey(f"{self._reader.path}: expected {expected}, found None; give [] to put nothing")
        if order is not None:
            raise WrongKey(
                f"{self._reader.path}: expected no order of entries, found {order!r}; the last one counts, and only "
                "rows of a frame have a column that orders them; nothing was put"
            )
        found = list(entries) if isinstance(entries, Iterable) else [entries]
        for entry in found:
            if not isinstance(entry, (tuple, list)) or len(entry) != len(members):
                raise WrongKey(
                    f"{self._reader.path}: expected {expected}, found {entry!r}; give each as a tuple; nothing was put"
                )
        return found

    def _limit(self, column: Column, low: datetime | None, high: datetime | None) -> dict[Column, Between]:
        low, high = (None if t is None else self._reader.value(column, t) for t in (low, high))
        return {} if low is None and high is None else {column: Between(low, high)}


name_methods(Store)


def observed(reader: Reader) -> datetime | None:
    """Return the newest time that a store of ours has seen, deletes included; None before the first put."""
    micros = [table.greatest((OBSERVED,)) for table in reader.tables]
    known = [m for m in micros if m is not None]
    return from_micros(max(known, default=None))


def bound_of(reader: Reader, retention: timedelta | None) -> datetime | None:
    """Return the newest time that a store has seen less its retention; None where nothing has expired."""
    return None if retention is None else moved_back(observed(reader), retention)


def not_expired(
    limits: Mapping[Column, Between], column: Column, bound: datetime | None
) -> dict[Column, Between]:
    """Narrow limits to times after a bound."""
    if bound is None:
        return dict(limits)
    former = limits.get(column, Between())
    if former.low is not None and former.low > bound:
        return dict(limits)
    return {**limits, column: Between(bound, former.high, low_inclusive=False)}


def _parts(key: Key) -> Place:
    return tuple(key) if isinstance(key, (tuple, list)) else (key,)


def _field(row: Row, column: Column) -> Any:
    found: Any = row
    for name in column:
        found = found[name]
    return found
