"""Lists the Parquet files of a state table from Delta's log, so that Spark reads them by name.

State tables are only appended to or written anew, so their files hold exactly their rows. To read such a table through
Delta costs a batch 100 to 250 ms of planning. To read its files by name costs a tenth of that, and the files of folded
batches cost nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import compress
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakejoin.storage.delta_log.live_files import CUT_OFF
from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.delta_table.file_pruning import (
    BY_PAGES,
    Count,
    Few,
    Range,
    condition,
    holding,
    ignored,
    statistics_of,
)
from lakejoin.storage.delta_table.footer_statistics import STATISTICS
from lakejoin.storage.errors import file_lost
from lakejoin.storage.filesystem import is_local, spark_path
from lakejoin.transforms.model.event_time import moved_back
from lakejoin.transforms.model.schemas import BATCH, TIME, empty, named

ENCODING = {"parquet.writer.version": "PARQUET_2_0"}
"""Numbers as their differences, texts by what they share with the one before: up to two fifths fewer bytes, which are
read as fast. Spark's writer takes it from a table's properties (docs/decisions/0019)."""
_BY_BATCH = {STATISTICS: BATCH, "delta.checkpointInterval": "100"}
LOG_PROPERTIES = {**_BY_BATCH, **ENCODING}
"""Of a log: the files of a batch are found by its number; statistics of other columns would cost time for nothing."""
_BY_TIME = {STATISTICS: f"{BATCH},{TIME}"}
TIMED_LOG_PROPERTIES = {**LOG_PROPERTIES, **_BY_TIME}
"""Of a log that is read by time, too."""
APPENDED_PROPERTIES = {**_BY_BATCH, **_BY_TIME}
"""The same of a table for every reader, some of which do not know these encodings."""
_PLAIN, _FEATURES = 1, {"typeWidening"}
"""The protocol's reader version of a table without features such as deletion vectors or column mapping, and features
with which a table's files still hold exactly its rows: Spark reads a file's narrower values as those of the schema."""


@dataclass(frozen=True)
class _File:
    name: str
    """Its path below the table."""
    path: str
    """The same as Spark takes it."""
    size: int
    first: int | None
    """Least batch number in it; None where Delta was told to keep no statistics."""
    last: int | None
    newest: datetime | None
    """Greatest time in it; None where it is not kept."""
    timeless: bool
    """Whether none of its rows has a time."""
    keys: Range
    """What it holds of the column that was asked for."""

    def may_hold(self, after: int, later: datetime | None) -> bool:
        """Whether it may have rows of batches after this one, with times later than this."""
        in_batches, bound = self.last is None or self.last > after, moved_back(later, CUT_OFF)
        if bound is None or not in_batches:
            return in_batches
        return not self.timeless if self.newest is None else self.newest > bound


def read_table(  # noqa: PLR0913 - there are three ways to leave files out
    spark: SparkSession,
    path: str,
    version: int,
    schema: StructType,
    *,
    after: int = 0,
    later: datetime | None = None,
    few: Few | None = None,
    count: Count = ignored,
) -> DataFrame:
    """Read the columns of `schema` of a table of state at a version, rows of batches after `after` only.

    `later`, `few`: leave out files whose rows all have this time or an earlier one, or none of the keys, and pages
    without them; a caller filters the rest. `count`: told how many files are read of how many.
    """
    with reading_table(path):
        table = opened(path, version)
        protocol = table.protocol()
        plain = protocol.min_reader_version == _PLAIN or _FEATURES.issuperset(
            protocol.reader_features or ["?"]
        )
        files = _files(path, table, statistics_of(few.column, schema) if few else None) if plain else []
    columns = [named(name) for name in schema.names]
    if not plain:  # someone else changed its format: Delta knows how to read it
        reader = spark.read.format("delta").option("versionAsOf", version)
        return reader.load(path).where(named(BATCH) > after).select(*columns)
    wanted, among = [file for file in files if file.may_hold(after, later)], None
    if few is not None:
        held, among = condition(few, [file.keys for file in wanted], schema)
        wanted = list(compress(wanted, held))
    count(len(wanted), len(files))
    if not wanted:
        return empty(spark, schema)
    _check_sizes(path, wanted)
    reader = spark.read.schema(schema) if among is None else spark.read.schema(schema).options(**BY_PAGES)
    rows = reader.parquet(*[file.path for file in wanted])
    rows = rows if among is None else rows.where(among)
    # a filter is code of its own for each batch, which the JVM would compile again and again: mostly none is needed
    mixed = any(file.first is None or file.first <= after for file in wanted)
    return rows.where(named(BATCH) > after).select(*columns) if mixed and after else rows


def data_paths(path: str, version: int, key: StructType, few: Few | None, count: Count) -> list[str]:
    """Return the files of a table at a version as Spark takes them, also those that have deletion vectors.

    `key`: columns of the table; `few`, `count`: as for `read_table`. Raises `LakeInconsistent`.
    """
    files = _files(path, opened(path, version), statistics_of(few.column, key) if few else None)
    wanted = files if few is None else list(compress(files, holding(few, [file.keys for file in files])))
    count(len(wanted), len(files))
    _check_sizes(path, wanted)
    return [file.path for file in wanted]


def _check_sizes(path: str, files: Iterable[_File]) -> None:
    """Refuse a file that is gone or truncated: from an empty one Spark reads no rows, in silence.

    Not in an object store, which has objects whole or not at all; there each look would be a request.
    """
    if not is_local(path):
        return
    for file in files:
        try:
            size = (Path(path) / file.name).stat().st_size
        except FileNotFoundError as error:
            raise file_lost(path, file.name, "it is not there") from error
        if size != file.size:
            raise file_lost(path, file.name, f"{size:,} bytes, expected {file.size:,}")


def _files(path: str, table: DeltaTable, column: str | None = None) -> list[_File]:
    actions: Any = pa.table(table.get_add_actions(flatten=True))
    names, sizes = actions["path"].to_pylist(), actions["size_bytes"].to_pylist()
    # the URIs of delta-rs are encoded, and those of object stores have another scheme than Spark's
    paths = [spark_path(f"{path.rstrip('/')}/{name}") for name in names]
    least, greatest, newest, nulls, rows, *bounds = (
        actions[name].to_pylist() if name in actions.column_names else [None] * len(paths)
        for name in (
            f"min.{BATCH}", f"max.{BATCH}", f"max.{TIME}", f"null_count.{TIME}", "num_records",
            column and f"min.{column}", column and f"max.{column}",
        )
    )  # fmt: skip
    timeless = [none is not None and none == count for none, count in zip(nulls, rows, strict=True)]
    keys = [Range(count or 0, *bound) for count, *bound in zip(rows, *bounds, strict=True)]
    columns = (names, paths, sizes, least, greatest, newest, timeless, keys)
    return [_File(*file) for file in zip(*columns, strict=True)]
