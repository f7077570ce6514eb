"""Reads Parquet files: columns by name, each as the file has it and then converted to the declared type."""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.filesystem import open_file_system, spark_path
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.rows.line_numbers import number_rows
from lakejoin.storage.sources.rows.typed_columns import (
    Columns,
    Stored,
    found_in,
    parse_files,
    read_as,
    types_of,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions

_UNSIGNED: dict[pa.DataType, DataType] = {
    pa.uint8(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
}
_UNREADABLE = (pa.types.is_float16, pa.types.is_time, pa.types.is_duration)


def parse_parquet(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[PlannedFile]
) -> list[DataFrame]:
    """Read Parquet files into records, one frame for each schema that they have. Raises `SourceBroken`."""
    return parse_files(
        table, options, ranges, lambda path, names: _columns(_open(path), path, names), partial(_rows, spark)
    )


def parquet_schema(path: str, declared: Sequence[str]) -> dict[str, DataType | None]:
    """Types of the declared columns that a file has, and names of its others. Raises `SourceBroken`."""
    file = _open(path)
    return types_of(file.schema_arrow.names, _columns(file, path, declared))


def _open(path: str) -> pq.ParquetFile:
    system, inner = open_file_system(path)
    return pq.ParquetFile(inner, filesystem=system)


def _columns(file: pq.ParquetFile, path: str, names: Sequence[str]) -> Columns:
    """Types of those of the named columns that a file has."""
    arrow, stored = file.schema_arrow, file.schema
    int96 = {stored.column(i).path for i in range(len(stored)) if stored.column(i).physical_type == "INT96"}
    instant = Stored(TimestampType(), TimestampType())
    return {
        name: instant if name in int96 else _stored(arrow.field(name), path)
        for name in found_in(path, arrow.names, names)
    }


def _stored(field: pa.Field, path: str) -> Stored:
    arrow = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_timestamp(arrow) and arrow.unit == "ns":
        return Stored(LongType(), TimestampNTZType() if arrow.tz is None else TimestampType())
    if arrow in _UNSIGNED:
        return Stored(_UNSIGNED[arrow], _UNSIGNED[arrow])
    try:
        if any(unreadable(arrow) for unreadable in _UNREADABLE):
            raise TypeError
        found = from_arrow_type(arrow, prefer_timestamp_ntz=True)
    except TypeError as error:  # PySpark's own is one, too
        raise SourceBroken(
            f"{path}: column {field.name} is of type {arrow}, which Spark cannot read; write another type"
        ) from error
    return Stored(found, found)


def _rows(spark: SparkSession, columns: Columns, ranges: Sequence[PlannedFile]) -> DataFrame:
    scan = spark.read.option("recursiveFileLookup", "true").schema(read_as(columns))
    return number_rows(scan.parquet(*[spark_path(part.path) for part in ranges]), ranges)
