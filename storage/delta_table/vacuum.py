"""Removes files that no version within the retention needs, but keeps the files of older versions that are pinned.

Delta's own VACUUM decides what may go, in a dry run: it knows deletion vectors and files of commits that were never
made. It keeps versions by their age alone, so the files of pinned versions are taken off its list.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.live_files import StoredFile, live_files, stored_files
from lakejoin.storage.delta_table.retention import state_retention
from lakejoin.storage.filesystem import quoted_uri
from lakejoin.storage.spark.hadoop import remove
from lakejoin.transforms.model.schemas import quoted

WORTH_BYTES = 16 * 1024 * 1024
"""A vacuum is due when it would free so many bytes,"""
WORTH_SHARE = 0.25
"""and this share of what the table takes."""
WORTH_FILES = 1_000
"""Or when it would remove so many files, however small."""
_VECTOR = ".bin"
"""Ending of files of deletion vectors."""


@dataclass(frozen=True)
class Waste:
    """Files that nobody needs any more."""

    files: Sequence[StoredFile]
    stored: int
    """Bytes of all files of the table."""

    @property
    def size(self) -> int:
        """Bytes that a vacuum would free."""
        return sum(file.size for file in self.files)

    @property
    def due(self) -> bool:
        """Whether they are worth a vacuum."""
        worth = self.size >= WORTH_BYTES and self.size >= WORTH_SHARE * self.stored
        return worth or len(self.files) >= WORTH_FILES

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.files)

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        return f"{len(self.files):,} files that no version within the retention needs"


def waste(path: str, horizon: datetime, pinned: Collection[int]) -> Waste:
    """Find the files that a vacuum would remove, from log and listing, without a JVM.

    `horizon`: versions that were current at this time or later are kept. `pinned`: further versions that are.
    A file from before the horizon that such a version has was in the table at the horizon, or is there now.
    """
    stored = stored_files(path)
    total = sum(file.size for file in stored)
    old = [file for file in stored if not file.hidden and file.modified < horizon]
    kept = _kept(path, [*pinned, _version_at(path, horizon), None]) if old else set()
    going = [file for file in old if _name(file.name) not in kept and not file.name.endswith(_VECTOR)]
    return Waste(going, total)


def vacuum(spark: SparkSession, path: str, retention: timedelta, pinned: Collection[int]) -> None:
    """Remove the files that no version within the retention has, and no pinned one.

    Raises `LakeInconsistent` where a pinned version cannot be read: then nothing is removed.
    """
    kept = _kept(path, [*pinned, _version_at(path, datetime.now(UTC) - retention)])
    state_retention(spark, path, retention)
    hours = retention.total_seconds() / 3600
    found = spark.sql(f"VACUUM delta.{quoted(path)} RETAIN {hours:.6f} HOURS DRY RUN")
    listed = [row["path"] for row in found.collect()]  # names of files
    old_vectors = not _is_current(path, pinned)
    going = [
        file
        for file in listed
        if _name(file) not in kept and not (old_vectors and _name(file).endswith(_VECTOR))
    ]
    remove(spark, going)


def _kept(path: str, versions: Collection[int | None]) -> set[str]:
    return {_name(file.name) for version in set(versions) for file in live_files(path, version)}


def _is_current(path: str, pinned: Collection[int]) -> bool:
    """Whether the pinned versions have no other files than the current one, and so no other deletion vectors."""
    now = {(file.name, file.deleted) for file in live_files(path)}
    return all({(file.name, file.deleted) for file in live_files(path, version)} == now for version in pinned)


def _version_at(path: str, time: datetime) -> int | None:
    """The version that was current at a time; None, the newest, for a table that is younger."""
    table = DeltaTable(quoted_uri(path))
    try:
        table.load_as_version(time)
    except DeltaError:
        return None
    return table.version()


def _name(file: str) -> str:
    """The name of a data file, without the folders of a partitioned table: no two files have the same."""
    return PurePosixPath(unquote(file)).name
