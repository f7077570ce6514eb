"""Reads Parquet files: columns by name, each as the file has it and then converted to the declared type."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from storage.errors import SourceBroken
from storage.filesystem import open_file_system, spark_path
from storage.sources.line_numbers import number_rows
from storage.sources.planned_file import PlannedFile
from transforms.model.schemas import named
from transforms.model.specs import TableSpec
from transforms.parsing.flat_rows import take_rows_apart
from transforms.parsing.options import ParseOptions
from transforms.parsing.typed_values import from_nanos
from transforms.parsing.validation import finish_records

_Columns = dict[str, tuple[DataType, bool | None]]
"""What Spark reads a column as; for a count of nanoseconds, whether it has a zone."""

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
    schemas: dict[str, tuple[_Columns, list[PlannedFile]]] = {}
    for part in ranges:
        columns = _columns(
            _open(part.path), part.path, (*table.as_written.columns.names, *options.row_op.columns)
        )
        schemas.setdefault(repr(columns), (columns, []))[1].append(part)
    return [_parse(spark, table, options, columns, parts) for columns, parts in schemas.values()]


def parquet_schema(path: str, declared: Sequence[str]) -> dict[str, DataType | None]:
    """Types of the declared columns that a file has, and names of its others. Raises `SourceBroken`."""
    file = _open(path)
    found = {
        name: dtype if zoned is None else TimestampType() if zoned else TimestampNTZType()
        for name, (dtype, zoned) in _columns(file, path, declared).items()
    }
    return dict.fromkeys(file.schema_arrow.names) | found


def _open(path: str) -> pq.ParquetFile:
    system, inner = open_file_system(path)
    return pq.ParquetFile(inner, filesystem=system)


def _columns(file: pq.ParquetFile, path: str, names: Sequence[str]) -> _Columns:
    """Types of those of the named columns that a file has."""
    arrow, stored = file.schema_arrow, file.schema
    int96 = {stored.column(i).path for i in range(len(stored)) if stored.column(i).physical_type == "INT96"}
    columns: _Columns = {}
    for name in dict.fromkeys(names):
        same = [other for other in arrow.names if other.lower() == name.lower()]
        if name in same and len(same) > 1:
            raise SourceBroken(f"{path}: Spark cannot tell the columns {same} apart; rename all but one")
        if name in same:
            columns[name] = (TimestampType(), None) if name in int96 else _read_type(arrow.field(name), path)
    return columns


def _read_type(field: pa.Field, path: str) -> tuple[DataType, bool | None]:
    arrow = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_timestamp(arrow) and arrow.unit == "ns":
        return LongType(), arrow.tz is not None
    if arrow in _UNSIGNED:
        return _UNSIGNED[arrow], None
    try:
        if any(unreadable(arrow) for unreadable in _UNREADABLE):
            raise TypeError
        return from_arrow_type(arrow, prefer_timestamp_ntz=True), None
    except TypeError as error:  # PySpark's own is one, too
        raise SourceBroken(
            f"{path}: column {field.name} is of type {arrow}, which Spark cannot read; write another type"
        ) from error


def _parse(
    spark: SparkSession,
    table: TableSpec,
    options: ParseOptions,
    columns: _Columns,
    ranges: Sequence[PlannedFile],
) -> DataFrame:
    schema = StructType([StructField(name, dtype) for name, (dtype, _) in columns.items()])
    scan = spark.read.option("recursiveFileLookup", "true").schema(schema)
    rows = number_rows(scan.parquet(*[spark_path(part.path) for part in ranges]), ranges)
    row = F.struct(*[named(name) for name in columns])
    raw = F.to_json(row, {"ignoreNullFields": "false"}) if columns else F.lit("{}")
    typed = {name: _typed(name, *kind) for name, kind in columns.items()}
    return finish_records(take_rows_apart(rows, table, options, typed, raw), table)


def _typed(name: str, dtype: DataType, zoned: bool | None) -> tuple[Column, DataType]:
    column = named(name)
    if zoned is None:
        return column, dtype
    if zoned:
        return from_nanos(column), TimestampType()
    return from_nanos(column).cast("timestamp_ntz"), TimestampNTZType()
