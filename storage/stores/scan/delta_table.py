"""Reads one Delta table for a store by delta-rs and pyarrow, without a JVM."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs
from pyspark.sql.types import StructType

from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.filesystem import is_local, quoted_uri
from lakejoin.storage.stores.errors import StoreUnreadable
from lakejoin.storage.stores.scan.file_bounds import DataFile, bounds_of, data_files, groups
from lakejoin.storage.stores.scan.order import Column

OPEN_FILES = 64
"""How many files stay open for the next read, each with its footer in memory."""


class TableFiles:
    """The files of one table at a version, or at its newest."""

    def __init__(self, path: str, version: int | None = None) -> None:
        self.path, self._pinned = path.rstrip("/"), version
        with reading_table(path):
            try:
                self._delta = DeltaTable(quoted_uri(path), version=version)
            except TableNotFoundError as error:
                raise StoreUnreadable(
                    f"{path}: expected a table, found that there is no Delta table; make the store first, or give the "
                    "path that it was made at"
                ) from error
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
                found[columns] = list(data_files(self._delta, columns))
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
                of_groups = [file.bounds_with(bounds_of(group, (column,))) for _, group in groups(opened)]
                known += [bounds[column][1] for bounds in of_groups]
        return max((bound for bound in known if bound is not None), default=None)

    def _update(self) -> None:
        if self._pinned is None:
            self._delta.update_incremental()

    @contextmanager
    def reading(self, name: str) -> Iterator[pq.ParquetFile]:
        """Open a file, or take it as it was opened last."""
        with reading_table(self.path, name):
            missed = self._open.cache_info().misses
            file = self._open(name)
            if self._open.cache_info().misses > missed:
                self.opened.append(name)
            yield file

    def _check(self) -> None:
        metadata = self._delta.metadata()
        if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
            raise StoreUnreadable(
                f"{self.path}: its columns have other names in its files (delta.columnMapping.mode), and stores read "
                "files. Write a copy of it without column mapping."
            )


def _open(path: str, name: str) -> pq.ParquetFile:
    # timestamps that older programs wrote as INT96 would be nanoseconds, which end in the year 2262
    if is_local(path):
        return pq.ParquetFile(Path(path) / name, memory_map=True, coerce_int96_timestamp_unit="us")
    file = fs.PyFileSystem(DeltaStorageHandler(quoted_uri(path))).open_input_file(name)
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us")
