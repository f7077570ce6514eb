"""What is known of a table's data files before they are read: bounds of columns, and which rows are not deleted.

Delta's log has the least and greatest value of a file's columns, of text the first characters, of timestamps whole
milliseconds. A file with rows marked as deleted (Delta protocol, "Deletion Vectors") may have lost these; its Parquet
footer still has them, row group by row group. What the marks say is honoured: delta-rs reads them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from storage.stores.order import Column
from storage.stores.shape import dotted
from storage.table_files import CUT_OFF, kept_rows

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


def groups(file: pq.ParquetFile) -> Iterator[tuple[int, Any]]:
    """Yield the number and the statistics of each row group, from the footer."""
    for number in range(file.num_row_groups):
        yield number, file.metadata.row_group(number)


def bounds_of(group: Any, columns: Collection[Column]) -> Bounds:
    """Return what a row group's statistics say of these columns."""
    numbers = {group.column(number).path_in_schema: number for number in range(group.num_columns)}
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
    actions = pa.table(table.get_add_actions(flatten=True))
    names, rows = actions["path"].to_pylist(), actions["num_records"].to_pylist()
    least, greatest = (
        {column: _listed(actions, f"{end}.{dotted(column)}") for column in columns} for end in ("min", "max")
    )
    marks = kept_rows(table)
    for number, name in enumerate(names):
        bounds = {c: (_sure(least[c][number]), _widened(greatest[c][number])) for c in columns}
        yield DataFile(name, rows[number], bounds, marks.get(PurePosixPath(name).name))


def _listed(actions: pa.Table, name: str) -> list[Any]:
    return actions[name].to_pylist() if name in actions.column_names else [None] * actions.num_rows


def _sure(value: Any) -> Any:
    """A bound, or None where it may have been rounded."""
    unsure = isinstance(value, float) or (
        isinstance(value, Decimal) and len(value.as_tuple().digits) > _EXACT_DIGITS
    )
    return None if unsure else value


def _widened(value: Any) -> Any:
    """An upper bound from the log: timestamps are cut to milliseconds there."""
    if not isinstance(value, datetime):
        return _sure(value)
    try:
        return value + CUT_OFF
    except OverflowError:
        return None
