"""The files of a Delta table with what its log says of them, read by delta-rs: no JVM is started.

Delta's log has the least and greatest value of a file's columns, of text the first characters, of timestamps whole
milliseconds. A file with rows marked as deleted (Delta protocol, "Deletion Vectors") may have lost these; its Parquet
footer still has them, row group by row group. What the marks say is honoured: delta-rs reads them.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs
from pyspark.sql.types import StructType

from storage.file_systems import is_local
from storage.lake import reading_table
from storage.stores.errors import StoreUnreadable
from storage.stores.order import Column
from storage.stores.shape import dotted

OPEN_FILES = 64
"""How many files stay open for the next read; of each its footer is held."""
_MILLISECOND = timedelta(milliseconds=1)
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


class TableFiles:
    """The files of one table at a version, or at its newest."""

    def __init__(self, path: str, version: int | None = None) -> None:
        self.path, self._pinned = path.rstrip("/"), version
        with reading_table(path):
            try:
                self._delta = DeltaTable(path, version=version)
            except TableNotFoundError as error:
                raise StoreUnreadable(f"{path}: there is no Delta table") from error
        self._check()
        self._found: tuple[int, dict[tuple[Column, ...], list[DataFile]]] = (-1, {})
        self.opened: list[str] = []
        """Names of the files that were opened, in this order."""
        self.unsorted: set[str] = set()
        """Names of those whose rows, as far as they were read, do not stand in the order of the store."""
        self._open = lru_cache(OPEN_FILES)(partial(_open, self.path))

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table."""
        return pa.schema(self._delta.schema().to_arrow())

    @property
    def spark_schema(self) -> StructType:
        """The same as Spark has it."""
        return StructType.fromJson(json.loads(self._delta.schema().to_json()))

    @property
    def identity(self) -> str:
        """What Delta named the table when it was made."""
        return str(self._delta.metadata().id)

    @property
    def configuration(self) -> Mapping[str, str]:
        """Delta's properties of the table."""
        return dict(self._delta.metadata().configuration)

    def files(self, columns: tuple[Column, ...]) -> list[DataFile]:
        """List the files, with what the log knows of these columns."""
        with reading_table(self.path):
            self._update()
            version = self._delta.version()
            if self._found[0] != version:
                self._found = (version, {})
            found = self._found[1]
            if columns not in found:
                found[columns] = list(_files(self._delta, columns))
        return found[columns]

    def transaction(self, app: str) -> int | None:
        """Last version that this application committed."""
        with reading_table(self.path):
            self._update()
            return self._delta.transaction_version(app)

    def greatest(self, column: Column) -> Any:
        """Greatest value of a column, rows marked as deleted included; None without any."""
        files = self.files((column,))
        known = [file.bounds[column][1] for file in files]
        for file in [file for file in files if file.bounds[column][1] is None]:
            with self.reading(file.name) as opened:
                known += [bounds_of(group, (column,))[column][1] for _, group in groups(opened)]
        return max((bound for bound in known if bound is not None), default=None)

    def _update(self) -> None:
        if self._pinned is None:
            self._delta.update_incremental()

    @contextmanager
    def reading(self, name: str) -> Iterator[pq.ParquetFile]:
        """Open a file, or take it as it was opened last."""
        with reading_table(self.path):
            missed = self._open.cache_info().misses
            file = self._open(name)
            if self._open.cache_info().misses > missed:
                self.opened.append(name)
            yield file

    def _check(self) -> None:
        metadata = self._delta.metadata()
        if metadata.partition_columns:
            parts = ", ".join(metadata.partition_columns)
            raise StoreUnreadable(
                f"{self.path}: is partitioned by {parts}; a store orders all its rows by key. Write a copy of it "
                "without partitions, sorted by key."
            )
        if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
            raise StoreUnreadable(
                f"{self.path}: its columns have other names in its files (delta.columnMapping.mode), and stores read "
                "files. Write a copy of it without column mapping."
            )


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


def _files(table: DeltaTable, columns: Sequence[Column]) -> Iterator[DataFile]:
    actions = pa.table(table.get_add_actions(flatten=True))
    names, rows = actions["path"].to_pylist(), actions["num_records"].to_pylist()
    least, greatest = (
        {column: _listed(actions, f"{end}.{dotted(column)}") for column in columns} for end in ("min", "max")
    )
    marks = _marks(table)
    for number, name in enumerate(names):
        bounds = {c: (_sure(least[c][number]), _widened(greatest[c][number])) for c in columns}
        yield DataFile(name, rows[number], bounds, marks.get(PurePosixPath(name).name))


def _listed(actions: pa.Table, name: str) -> list[Any]:
    return actions[name].to_pylist() if name in actions.column_names else [None] * actions.num_rows


def _marks(table: DeltaTable) -> dict[str, pa.BooleanArray]:
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    marks = pa.table(table.deletion_vectors())
    return {
        PurePosixPath(name).name: vector.values
        for name, vector in zip(marks["filepath"].to_pylist(), marks["selection_vector"], strict=True)
    }


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
        return value + _MILLISECOND
    except OverflowError:
        return None


def _open(path: str, name: str) -> pq.ParquetFile:
    # timestamps that older programs wrote as INT96 would be nanoseconds, which end in the year 2262
    if is_local(path):
        return pq.ParquetFile(Path(path) / name, memory_map=True, coerce_int96_timestamp_unit="us")
    file = fs.PyFileSystem(DeltaStorageHandler(path)).open_input_file(name)
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
