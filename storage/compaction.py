"""Compaction of a joined table: each batch leaves it a small file more, and marks on those it changed."""

from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaLog
from pyspark.sql import SparkSession

from storage.lake import reading_table
from storage.session import changed_settings

SMALL_FILES = 50
"""A joined table is compacted when it has so many small files."""
_SMALL_FILE = 16 * 1024 * 1024
_SETTINGS = {
    # larger files are left alone, unless a twentieth of their rows is marked as deleted (Delta's default)
    "spark.databricks.delta.optimize.minFileSize": str(_SMALL_FILE),
    "spark.databricks.delta.optimize.maxFileSize": str(8 * _SMALL_FILE),
}


def needs_compaction(path: str) -> bool:
    """Whether so many small files make the scan of a table's keys slow."""
    with reading_table(path):
        sizes = DeltaLog(path).get_add_actions().column("size_bytes").to_pylist()
    small: int = sum(size < _SMALL_FILE for size in sizes)
    return small >= SMALL_FILES


def compact(spark: SparkSession, path: str) -> None:
    """Put small files together in a commit that changes no row: a reader of changes sees nothing of it."""
    with changed_settings(spark, _SETTINGS):
        DeltaTable.forPath(spark, path).optimize().executeCompaction()
