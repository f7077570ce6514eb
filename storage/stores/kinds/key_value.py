"""Implements key-value stores (KIP-617's `KeyValueStore`): the last value of each key, in the order of keys."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.stores.errors import NullKey, WrongKey
from lakejoin.storage.stores.kinds.base import Key, Store, Value
from lakejoin.storage.stores.kinds.compaction import compact
from lakejoin.storage.stores.scan.order import Bound, Span, beginning_with
from lakejoin.storage.stores.scan.reader import Row
from lakejoin.storage.stores.scan.table_columns import dotted
from lakejoin.storage.stores.write.creation import Columns, create_table

COUNTED = 100_000
"""Up to this many rows the keys of a store are counted."""


class KeyValue(NamedTuple):
    """What a key-value store yields."""

    key: Key
    value: Value


class KeyValueStore(Store):
    """The last value of each key. Raises `NullKey` and `WrongKey` for keys that no row can have."""

    _kind = "key-value"

    @classmethod
    def create(cls, spark: SparkSession, path: str, key: Columns, value: Columns) -> Self:
        """Make a store of these columns: `StructType`s, or text such as `id bigint, name string`."""
        create_table(spark, path, "key-value", key, value)
        return cls.open(path, spark)

    def get(self, key: Key) -> Value | None:
        """Return the value of a key, None without one."""
        bound = Bound(self._place(key))
        row = self._first(Span(bound, bound))
        return None if row is None else self._value_of(row)

    def range(self, key_from: Key | None, key_to: Key | None) -> Iterator[KeyValue]:
        """Yield keys from one to another, both inclusive and open where None; none where they cross."""
        return map(self._found, self._rows(self._between(key_from, key_to, {})))

    def reverse_range(self, key_from: Key | None, key_to: Key | None) -> Iterator[KeyValue]:
        """Yield what `range` does, last key first."""
        return map(self._found, self._rows(self._between(key_from, key_to, {}), reverse=True))

    def all(self) -> Iterator[KeyValue]:
        """Yield every key, first one first."""
        return map(self._found, self._rows(Span()))

    def reverse_all(self) -> Iterator[KeyValue]:
        """Yield every key, last one first."""
        return map(self._found, self._rows(Span(), reverse=True))

    def prefix_scan(self, prefix: Any) -> Iterator[KeyValue]:
        """Yield keys that begin with a prefix: text or bytes for a key of one such column, else its first columns."""
        return map(self._found, self._rows(self.prefix_span(prefix)))

    def reverse_prefix_scan(self, prefix: Any) -> Iterator[KeyValue]:
        """Yield what `prefix_scan` does, last key first."""
        return map(self._found, self._rows(self.prefix_span(prefix), reverse=True))

    def prefix_span(self, prefix: Any) -> Span:
        """Return where keys are that begin with a prefix. Raises `NullKey`, `WrongKey`."""
        columns = self._reader.shape.key
        if prefix is None:
            raise NullKey(
                f"{self._reader.path}: expected a prefix of {self._key_columns}, found None; () is the prefix of every "
                "key"
            )
        if len(columns) > 1 or isinstance(prefix, (tuple, list)):
            bound = self._bound(prefix)
            return Span(bound, bound)
        kind = self._reader.kind(columns[0])
        if not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
            raise WrongKey(
                f"{self._reader.path}: expected text, bytes or a key of several columns, which have prefixes, found "
                f"{prefix!r} for {dotted(columns[0])}, which is {kind}; ask for a range"
            )
        return Span(*beginning_with((), self._reader.value(columns[0], prefix)))

    def approximate_num_entries(self) -> int:
        """Return how many keys a small store has; of a large one how many rows, which the log knows.

        There, rows that were superseded and deletes count until they are compacted away.
        """
        rows = self._reader.estimate()
        return rows if rows > COUNTED else sum(block.num_rows for block in self._reader.blocks(Span()))

    def put(self, key: Key, value: Value | None) -> None:
        """Put a value; None deletes the key."""
        self.put_all([(key, value)])

    def put_if_absent(self, key: Key, value: Value | None) -> Value | None:
        """Put a value unless the key has one; return that, or None. Raises `LakeBusy` where someone put meanwhile."""
        last = self._writer.last_put
        row = (*self._place(key), *self._columns_of(value))
        found = self.get(key)
        if found is None:
            self._writer.put_rows([row], after=last)
        return found

    def put_all(self, entries: Iterable[tuple[Key, Value]] | DataFrame, order: str | None = None) -> None:
        """Put many values in one commit; of a key the last one counts. `order`: see `Writer.put_frame`."""
        writer = self._writer
        if isinstance(entries, DataFrame):
            writer.put_frame(entries, order)
            return
        given = self._entries(entries, ("key", "value"), order)
        if rows := [(*self._place(key), *self._columns_of(value)) for key, value in given]:
            writer.put_rows(rows)

    def delete(self, key: Key) -> Value | None:
        """Delete a key; return the value it had."""
        writer, found = self._writer, self.get(key)
        if found is not None:
            writer.put_rows([(*self._place(key), *self._columns_of(None))])
        return found

    def compact(self) -> None:
        """Drop superseded rows and deleted keys, and bring all others in order."""
        compact(self._reader, self._layout, self._writer)

    def _found(self, row: Row) -> KeyValue:
        return KeyValue(self._key_of(row), self._value_of(row))
