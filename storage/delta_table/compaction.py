"""Compacts tables: small files, and files with many deleted rows, are written anew as few large ones.

Each batch leaves one more small file in each log and in each joined table, where it also marks rows as deleted. A
compaction changes no row, and its commit says so: a reader of changes sees nothing of it.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession

from lakejoin.storage.delta_log.live_files import LiveFile, live_files
from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import rewrite as commit_rewrite
from lakejoin.storage.spark.session import changed_settings

SMALL_FILES = 50
"""A table is compacted when it has so many small files,"""
SHARE_DELETED = 0.1
"""or when files of which this share is marked as deleted"""
ROWS_DELETED = 100_000
"""hold so many such rows: each scan of the keys reads them."""
SMALL_FILE = 16 * 1024 * 1024
"""A file below this size is small."""
LARGE_FILE = 128 * 1024 * 1024
"""About the size of files that a compaction writes."""
_LARGEST = "spark.databricks.delta.optimize.maxFileSize"
COMPRESSION = {"spark.sql.parquet.compression.codec": "zstd", "parquet.compression.codec.zstd.level": "9"}
"""What is written once and read for long is worth the better compression: a level of 9 instead of 3 spares 4 % of a
table and takes up to a good third longer to write, one of 12 spares 6 % and takes six times as long
(docs/decisions/0019)."""


@dataclass(frozen=True)
class SmallFiles:
    """The files of a table that a compaction would write anew."""

    files: Sequence[LiveFile]

    @property
    def deleted(self) -> int:
        """Rows that are marked as deleted."""
        return sum(file.deleted for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)

    @property
    def due(self) -> bool:
        """Whether there is enough to gain from a compaction."""
        return (
            len([f for f in self.files if f.size < SMALL_FILE]) >= SMALL_FILES or self.deleted >= ROWS_DELETED
        )

    @property
    def any(self) -> bool:
        """Whether a compaction would leave fewer files or rows at all."""
        return len(self.files) > 1 or self.deleted > 0

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        marked = f", {self.deleted:,} rows marked as deleted" if self.deleted else ""
        return f"{len(self.files):,} files to put together{marked}"


def small_files(path: str, through: int | None = None) -> SmallFiles:
    """Find what a compaction of a table would write anew.

    `through`: only files that hold no batch after it. Of a log these are the folded ones, which no batch reads: to
    put others with them would make a batch read all.
    """
    files = [
        file
        for file in live_files(path)
        if through is None or (file.last is not None and file.last <= through)
    ]
    return SmallFiles([f for f in files if f.size < SMALL_FILE or f.deleted > SHARE_DELETED * f.rows])


def compressing(spark: SparkSession) -> AbstractContextManager[None]:
    """Have what is written while the block runs compressed for a long life."""
    return changed_settings(spark, COMPRESSION)


def has_many_small_files(path: str) -> bool:
    """Whether a table is due for its small files alone: told from its log, at once."""
    with reading_table(path):
        sizes = pa.table(opened(path).get_add_actions())["size_bytes"].to_pylist()
    small: int = sum(size < SMALL_FILE for size in sizes)
    return small >= SMALL_FILES


def compact(
    spark: SparkSession, path: str, found: SmallFiles, order: Sequence[Column], transaction: Transaction
) -> None:
    """Write files anew, their rows in an order, in a commit that changes no row."""
    count = max(1, -(-found.size // LARGE_FILE))
    arrange = partial(_arranged, count=count, order=order)
    with compressing(spark):
        commit_rewrite(spark, path, [file.name for file in found.files], arrange, transaction)


def optimize(spark: SparkSession, path: str) -> None:
    """Have Delta put small files together: it clusters rows, and keeps the identifiers of tracked ones."""
    with compressing(spark), changed_settings(spark, {_LARGEST: str(LARGE_FILE)}):
        DeltaTable.forPath(spark, path).optimize().executeCompaction()


def _arranged(rows: DataFrame, count: int, order: Sequence[Column]) -> DataFrame:
    """So many files: ranges of the order, sorted within, by which lookups skip files and equal values compress."""
    return rows.repartitionByRange(count, *order).sortWithinPartitions(*order)
