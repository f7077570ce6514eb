"""Reads ORC files: columns by name, numbered by their place in the file.

A time without a zone is read by Spark as if it were of the JVM's, which is UTC in every session that Lakejoin starts.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.storage.errors import SourceBroken, SourceUnreadable
from lakejoin.storage.filesystem import spark_path
from lakejoin.storage.sources.orc.orc_size import columns_in
from lakejoin.storage.sources.planned.planned_file import PlannedFile, sizes
from lakejoin.storage.sources.rows.line_numbers import number_lines
from lakejoin.storage.sources.rows.splits import in_one_task
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

_SPARK_TYPE, _NO_ZONE = b"spark.sql.catalyst.type", b"timestamp_ntz"
"""What Spark says of a column of whole numbers that are times without a zone."""
_UNNAMED = "_col"


def orc_names(path: str) -> list[str]:
    """Names of a file's columns. Raises `SourceBroken`."""
    return list(columns_in(path).names)


def orc_schema(path: str, declared: Sequence[str]) -> Mapping[str, DataType | None]:
    """Types of the declared columns that a file has, and names of its others. Raises `SourceBroken`."""
    schema = columns_in(path)
    return types_of(schema.names, _columns(schema, path, declared))


def parse_orc(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[PlannedFile]
) -> list[DataFrame]:
    """Read ORC files into records, one frame for each schema that they have. Raises `SourceBroken`."""
    return parse_files(
        table,
        options,
        ranges,
        lambda path, names: _columns(columns_in(path), path, names),
        partial(_rows, spark),
    )


def _columns(schema: pa.Schema, path: str, names: Sequence[str]) -> Columns:
    """Types of those of the named columns that a file has."""
    if schema.names and all(name.startswith(_UNNAMED) for name in schema.names):
        raise SourceBroken(
            f"{path}: its columns are called {schema.names[0]} and so on, as old versions of Hive write them, so that "
            "Spark takes them by their places; write the file again with names"
        )
    stored = [_stored(field, path) for field in schema]
    return {name: stored[schema.names.index(name)] for name in found_in(path, schema.names, names)}


def _stored(field: pa.Field, path: str) -> Stored:
    try:
        return Stored(_type(field, TimestampType()), _type(field, TimestampNTZType()))
    except TypeError as error:  # PySpark's own is one, too
        raise SourceBroken(
            f"{path}: column {field.name} is of type {field.type}, and Spark cannot read a file with that, even if it "
            "is not declared; write another type"
        ) from error


def _type(field: pa.Field, no_zone: DataType) -> DataType:
    """The type of a column or of what is in it. `no_zone`: what a time without a zone is."""
    kind = field.type
    if (field.metadata or {}).get(_SPARK_TYPE) == _NO_ZONE:
        return TimestampNTZType()
    if pa.types.is_timestamp(kind):
        return no_zone if kind.tz is None else TimestampType()
    if pa.types.is_map(kind):
        return MapType(_type(kind.key_field, no_zone), _type(kind.item_field, no_zone))
    if pa.types.is_list(kind):
        return ArrayType(_type(kind.value_field, no_zone))
    if pa.types.is_struct(kind):
        return StructType([StructField(inner.name, _type(inner, no_zone)) for inner in kind])
    return from_arrow_type(kind)


def _rows(spark: SparkSession, columns: Columns, ranges: Sequence[PlannedFile]) -> DataFrame:
    if any(stored.read != stored.meant for stored in columns.values()):
        _check_zone(spark, ranges[0].path)
    scan = spark.read.option("recursiveFileLookup", "true").schema(read_as(columns))
    rows = scan.orc([spark_path(part.path) for part in ranges])
    return number_lines(rows, ranges, one_task=in_one_task(spark, sizes(ranges)))


def _check_zone(spark: SparkSession, path: str) -> None:
    """Refuse times without a zone in a session that somebody else started. Raises `SourceUnreadable`."""
    java = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way to ask
    assert java is not None  # there is a session
    zone = java.java.util.TimeZone.getDefault()
    if zone.getRawOffset() or zone.useDaylightTime():
        raise SourceUnreadable(
            f"{path}: times without a zone are read by that of the JVM, and found {zone.getID()}, expected UTC. Stop "
            "the Spark session that runs already, or start it with `-Duser.timezone=UTC` in "
            "`spark.driver.extraJavaOptions` and `spark.executor.extraJavaOptions`"
        )
