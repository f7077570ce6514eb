"""Stores whose tables delta-rs writes instead of Spark: thousands of puts in seconds, for what is about reading.

That Spark's tables read the same is tested with Spark.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.scan.reader import Reader
from lakejoin.storage.stores.scan.table_columns import Source
from lakejoin.storage.stores.write.layout import DELETED, OBSERVED, PLACE, PROPERTY, PUT, Layout
from lakejoin.transforms.model.event_time import EPOCH

TEXT = {"key": pa.string()}
TIME = pa.timestamp("us", "UTC")
_KINDS = {kind._kind: kind for kind in (KeyValueStore, WindowStore, SessionStore, VersionedKeyValueStore)}


def at(seconds: int) -> datetime:
    """A time so many seconds after 1970."""
    return EPOCH + timedelta(seconds=seconds)


class ArrowWriter:
    """Does what the product's writer does, for rows of Python."""

    def __init__(self, table: TableFiles, layout: Layout, schema: pa.Schema) -> None:
        self.layout, self._table, self._schema = layout, table, schema
        self.last_put = 0

    def put_rows(self, rows: Sequence[tuple[Any, ...]], after: int | None = None) -> None:
        """Append rows as one file, in their order."""
        assert after in (None, self.last_put)
        self.last_put += 1
        found = [self._complete(row, place) for place, row in enumerate(rows)]
        if self.layout.duplicates:
            found = [row for row in found if not row[DELETED]]
        places = [*self.layout.key, *self.layout.times, PLACE]
        found.sort(key=lambda row: [row[name] for name in places])
        data = pa.Table.from_pylist(found, schema=self._schema)
        write_deltalake(self._table.path, data, mode="append")

    def _complete(self, row: tuple[Any, ...], place: int) -> dict[str, Any]:
        given = dict(zip(self.layout.given, row, strict=True))
        times = self.layout.times
        observed = (given[times[0]] - EPOCH) // timedelta(microseconds=1) if times else None
        deleted = all(given[name] is None for name in self.layout.value)
        return {**given, DELETED: deleted, PUT: self.last_put, PLACE: place, OBSERVED: observed}


def make_store(
    path: Path,
    layout: Layout,
    key: Mapping[str, pa.DataType] = TEXT,
    value: Mapping[str, pa.DataType] | None = None,
) -> Any:
    """Make an empty store of a layout and open it for puts."""
    columns = {**key, **dict.fromkeys(layout.times, TIME)}
    columns |= {DELETED: pa.bool_(), PUT: pa.int64(), PLACE: pa.int64(), OBSERVED: pa.int64()}
    columns |= value or {"value": pa.string()}
    schema = pa.schema(list(columns.items()))
    DeltaTable.create(
        str(path), schema, configuration={PROPERTY: layout.to_json()}, raise_if_key_not_exists=False
    )
    table = TableFiles(str(path))
    writer: Any = ArrowWriter(table, layout, schema)
    reader = Reader([Source(str(path))], layout.shape, tables=[table])
    return _KINDS[layout.kind](reader, layout, writer)
