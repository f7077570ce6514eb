"""Reads Avro files: of each record the fields that are declared, numbered by its place in the file."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import DataType, StructType, TimestampNTZType, TimestampType

from lakejoin.storage.errors import SourceBroken, SourceUnreadable
from lakejoin.storage.filesystem import file_info, spark_path
from lakejoin.storage.sources.avro.avro_blocks import read_header
from lakejoin.storage.sources.avro.avro_fields import field_names, nanoseconds, reader_schema
from lakejoin.storage.sources.planned.planned_file import PlannedFile, sizes
from lakejoin.storage.sources.rows.line_numbers import number_lines
from lakejoin.storage.sources.rows.splits import in_one_task
from lakejoin.storage.sources.rows.typed_columns import (
    Columns,
    Stored,
    declared_of,
    found_in,
    parse_rows,
    read_as,
    types_of,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions

_Schema = dict[str, Any]


def avro_names(path: str) -> list[str]:
    """Names of the fields of a file's records. Raises `SourceError`."""
    return field_names(_schema(path))


def avro_schema(spark: SparkSession, path: str, declared: Sequence[str]) -> Mapping[str, DataType | None]:
    """Types of the declared columns that a file has, and names of its others. Raises `SourceBroken`."""
    schema = _schema(path)
    return types_of(field_names(schema), _columns(spark, path, _read_by(path, schema, declared)))


def parse_avro(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[PlannedFile]
) -> list[DataFrame]:
    """Read Avro files into records, one frame for each schema that they have. Raises `SourceBroken`."""
    names = declared_of(table, options)
    schemas: dict[str, list[PlannedFile]] = {}
    for part in ranges:
        read_by = json.dumps(_read_by(part.path, _schema(part.path), names))
        schemas.setdefault(read_by, []).append(part)
    return [_parse(spark, table, options, schema, parts) for schema, parts in schemas.items()]


def _schema(path: str) -> _Schema:
    return dict(read_header(path, file_info(path).size).schema)


def _read_by(path: str, schema: _Schema, names: Sequence[str]) -> _Schema:
    """The schema by which records are read: no more than what is declared."""
    try:
        return reader_schema(schema, set(found_in(path, field_names(schema), names)))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SourceBroken(f"{path}: its schema is none of Avro ({error!r}); write it again") from error


def _columns(spark: SparkSession, path: str, schema: _Schema) -> Columns:
    """Types of the fields, as Spark reads them."""
    try:
        found = _types(spark, json.dumps(schema))
    except TypeError as error:  # of PySpark, where the JVM has no such class
        raise SourceUnreadable(
            f"{path}: the Spark session that runs already cannot read Avro; stop it, for Lakejoin to start another, or "
            f"start it with `spark.jars.packages` org.apache.spark:spark-avro_2.13:{spark.version}"
        ) from error
    except (PySparkException, Py4JJavaError) as error:
        said = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error).strip()
        raise SourceBroken(
            f"{path}: Spark cannot read its schema ({said.partition(chr(10))[0]}); write other types, or leave "
            "such a column undeclared"
        ) from error
    return {
        field["name"]: Stored(
            found[field["name"]].dataType, _meant(field["type"], found[field["name"]].dataType)
        )
        for field in schema["fields"]
    }


@lru_cache(maxsize=8)
def _types(spark: SparkSession, schema: str) -> StructType:
    """What Spark reads records as; of many files that have one schema it is asked once."""
    decoded = from_avro(F.lit(None).cast("binary"), schema)
    found = spark.range(0).select(decoded.alias("record")).schema["record"].dataType
    assert isinstance(found, StructType)  # a record is one
    return found


def _meant(kind: Any, read: DataType) -> DataType:
    match nanoseconds(kind):
        case None:
            return read
        case True:
            return TimestampType()
        case _:
            return TimestampNTZType()


def _parse(
    spark: SparkSession, table: TableSpec, options: ParseOptions, schema: str, ranges: Sequence[PlannedFile]
) -> DataFrame:
    columns = _columns(spark, ranges[0].path, json.loads(schema))
    reader = spark.read.format("avro").options(
        avroSchema=schema, datetimeRebaseMode="CORRECTED", recursiveFileLookup="true"
    )
    scan = reader.schema(read_as(columns)).load([spark_path(part.path) for part in ranges])
    one_task = in_one_task(spark, sizes(ranges))
    return parse_rows(number_lines(scan, ranges, one_task=one_task), table, options, columns)
