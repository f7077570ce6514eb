"""Reads what is known of a table's data files before they are read: bounds of columns, and rows that are deleted.

Delta's log has the least and greatest value of a file's columns: of text the first characters, of timestamps whole
milliseconds. A file with rows marked as deleted (Delta protocol, "Deletion Vectors") may have lost these. Its Parquet
footer still has them, row group by row group. delta-rs reads which rows are deleted.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakejoin.storage.delta_log.live_files import CUT_OFF, kept_rows
from lakejoin.storage.stores.scan.order import Column
from lakejoin.storage.stores.scan.table_columns import dotted

_EXACT_DIGITS = 15
"""Decimals with more digits may be rounded on their way through the log."""

Bounds = Mapping[Column, tuple[Any, Any]]
"""Least and greatest value of columns; None for unknown."""


@dataclass(frozen=True)
class DataFile:
    """A file that holds rows of a table."""

    name: str
    rows: int | None
    bounds: Bounds
    kept: pa.BooleanArray | None
    """Row by row whether it is not marked as deleted; None where no row is."""
    folder: Mapping[str, Any]
    """The columns that a table is partitioned by: the one value of all its rows, whether it holds them or not."""

    def bounds_with(self, bounds: Bounds) -> Bounds:
        """Return bounds of its rows with those of the columns of its folder."""
        constant = {column: (self.folder[column[0]],) * 2 for column in bounds if column[0] in self.folder}
        return {**bounds, **constant}


def groups(file: pq.ParquetFile) -> Iterator[tuple[int, Any]]:
    """Yield the number and the statistics of each row group, from the footer."""
    for number in range(file.num_row_groups):
        yield number, file.metadata.row_group(number)


def bounds_of(group: Any, columns: Collection[Column]) -> Bounds:
    """Return what a row group's statistics say of these columns; nothing of one whose dotted name another has, too."""
    paths = [group.column(number).path_in_schema for number in range(group.num_columns)]
    count = Counter(paths)
    numbers = {path: number for number, path in enumerate(paths) if count[path] == 1}
    return {column: _extremes(group, numbers.get(dotted(column))) for column in columns}


def _extremes(group: Any, number: int | None) -> tuple[Any, Any]:
    statistics = None if number is None else group.column(number).statistics
    return (
        (statistics.min, statistics.max)
        if statistics is not None and statistics.has_min_max
        else (None, None)
    )


def data_files(table: DeltaTable, columns: Sequence[Column]) -> Iterator[DataFile]:
    """Yield the files of a table as it is loaded, with what its log says of these columns."""
    # side by side, a column `a.b` and the field `b` of a column `a` would have one name
    actions = pa.table(table.get_add_actions(flatten=False))
    names, rows = actions["path"].to_pylist(), actions["num_records"].to_pylist()
    least, greatest = (
        {column: _listed(actions, (end, *column)) for column in columns} for end in ("min", "max")
    )
    marks, folders = kept_rows(table), list[Mapping[str, Any]]([{}] * len(names))
    if "partition" in actions.column_names:
        folders = actions["partition"].to_pylist()
    for number, name in enumerate(names):
        bounds = {c: (_sure(least[c][number]), _widened(greatest[c][number])) for c in columns}
        file = DataFile(name, rows[number], bounds, marks.get(PurePosixPath(name).name), folders[number])
        yield replace(file, bounds=file.bounds_with(bounds))


def _listed(actions: pa.Table, path: Column) -> list[Any]:
    """A field of the log's statistics, file by file; None where it has none."""
    found = pa.chunked_array(actions.to_struct_array())
    for name in path:
        index = found.type.get_field_index(name) if pa.types.is_struct(found.type) else -1
        if index < 0:
            return [None] * actions.num_rows
        found = pc.struct_field(found, [index])
    listed: list[Any] = found.to_pylist()
    return listed


def _sure(value: Any) -> Any:
    """A bound, or None where it may have been rounded."""
    unsure = isinstance(value, float) or (
        isinstance(value, Decimal) and len(value.as_tuple().digits) > _EXACT_DIGITS
    )
    return None if unsure else value


def _widened(value: Any) -> Any:
    """An upper bound from the log, which shortens timestamps to milliseconds."""
    if not isinstance(value, datetime):
        return _sure(value)
    try:
        return value + CUT_OFF
    except OverflowError:
        return None
