"""Lists the files of a table without a JVM: those that are live by its log, and all those below its path."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.filesystem import quoted_uri
from lakejoin.transforms.model.schemas import BATCH

CUT_OFF = timedelta(milliseconds=1)
"""The log shortens times in its statistics to milliseconds: a file's greatest time may be later by up to this much."""


@dataclass(frozen=True)
class LiveFile:
    """A data file of a table, as the log has it."""

    name: str
    """Path below the table."""
    size: int
    rows: int
    deleted: int
    """How many of its rows a deletion vector marks as deleted."""
    last: int | None
    """Greatest batch number in it; None where no statistics were kept."""


@dataclass(frozen=True)
class StoredFile:
    """A file below a table's path, whoever wrote it."""

    name: str
    size: int
    modified: datetime

    @property
    def hidden(self) -> bool:
        """Whether it belongs to the log or is hidden: its name, or that of a folder, begins with _ or a dot."""
        return any(part.startswith(("_", ".")) for part in PurePosixPath(self.name).parts)


@dataclass(frozen=True)
class Extent:
    """How much room a table takes."""

    files: int
    """Live data files,"""
    live_bytes: int
    """and their bytes."""
    stored_bytes: int
    """Those of all files below its path, the log among them."""


def live_files(path: str, version: int | None = None) -> list[LiveFile]:
    """Return the data files of a table at a version, by default the newest. Raises `LakeInconsistent`."""
    with reading_table(path):
        table = opened(path, version)
        actions = pa.table(table.get_add_actions(flatten=True))
        kept = kept_rows(table)
    deleted = {name: vector.false_count for name, vector in kept.items()}
    names = actions["path"].to_pylist()
    sizes, rows, last = (
        actions[column].to_pylist() if column in actions.column_names else [None] * len(names)
        for column in ("size_bytes", "num_records", f"max.{BATCH}")
    )
    return [
        LiveFile(name, size, count or 0, deleted.get(PurePosixPath(name).name, 0), greatest)
        for name, size, count, greatest in zip(names, sizes, rows, last, strict=True)
    ]


def rows_after(path: str, version: int, batch: int) -> int:
    """How many rows the files of a version have that may hold batches after one. Raises `LakeInconsistent`."""
    return sum(file.rows for file in live_files(path, version) if file.last is None or file.last > batch)


def kept_rows(table: DeltaTable) -> dict[str, pa.BooleanArray]:
    """Return which rows are not marked as deleted, of files that have marks: by the last part of a file's name."""
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    marks = pa.table(table.deletion_vectors())
    return {
        PurePosixPath(name).name: vector.values
        for name, vector in zip(marks["filepath"].to_pylist(), marks["selection_vector"], strict=True)
    }


def stored_files(path: str) -> list[StoredFile]:
    """List every file below a table's path. Raises `LakeUnusable`."""
    with reading_table(path):
        system = fs.PyFileSystem(DeltaStorageHandler(quoted_uri(path)))
        found = system.get_file_info(fs.FileSelector("", recursive=True))
    return [StoredFile(file.path, file.size, file.mtime) for file in found if file.type == fs.FileType.File]


def is_whole(path: str, version: int) -> bool:
    """Whether all files of a version are still there: a vacuum may have removed those of an old one."""
    try:
        needed = {file.name for file in live_files(path, version)}
    except LakeInconsistent:  # of its log, or its deletion vectors
        return False
    return needed <= {file.name for file in stored_files(path)}


def extent(path: str) -> Extent:
    """Measure a table that exists."""
    return measured(live_files(path), stored_files(path))


def measured(live: Sequence[LiveFile], stored: Sequence[StoredFile]) -> Extent:
    """Add up files."""
    return Extent(len(live), sum(file.size for file in live), sum(file.size for file in stored))
