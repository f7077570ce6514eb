"""Reads ranges of source files with Spark and has them parsed into records."""

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from storage.filesystem import file_info, spark_path
from storage.sources.change_data_feed import parse_feed
from storage.sources.csv_files import count_records, parse_csv
from storage.sources.files import FileCounter, FileRange
from storage.sources.line_numbers import number_lines
from storage.sources.parquet_files import parse_parquet
from storage.spark.kept_frames import empty
from transforms.model.schemas import CONTEXT, POSITION, RAW
from transforms.model.specs import TableSpec
from transforms.parsing.debezium import parse_debezium
from transforms.parsing.flat_rows import parse_jsonl
from transforms.parsing.options import ParseOptions, records_schema

__all__ = ["FileRange", "csv_counter", "read_lines", "read_records"]

_UNITS = "bkmgtp"


def read_records(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[FileRange]
) -> DataFrame:
    """Read the lines of a table's files that a batch works on, as `transforms.parsing.options.records_schema` says.

    Every line in the ranges gives one record that is not derived, and the line before each range one more as
    context; what versions of a Delta table give, `storage.sources.change_data_feed` says. Raises `SourceError` for a
    file that is gone, shorter than planned or not of the format.
    """
    if not ranges:
        return empty(spark, records_schema(table))
    if options.format == "delta":
        return reduce(DataFrame.unionByName, parse_feed(spark, table, options, ranges))
    match options.format:
        case "debezium":
            return parse_debezium(read_lines(spark, ranges), table, options)
        case "jsonl":
            return parse_jsonl(read_lines(spark, ranges), table, options)
        case "csv":
            _sizes(ranges)
            return reduce(DataFrame.unionByName, parse_csv(spark, table, options, ranges))
        case "parquet":
            _sizes(ranges)
            return reduce(DataFrame.unionByName, parse_parquet(spark, table, options, ranges))


def csv_counter(spark: SparkSession) -> FileCounter:
    """Return what counts the records of a CSV file for `storage.sources.files.measure_file`."""
    return lambda found: count_records(spark, found.path)


def read_lines(spark: SparkSession, ranges: Sequence[FileRange]) -> DataFrame:
    """Read the lines of text files as they are: position, context, raw. Raises `SourceError`."""
    sizes = _sizes(ranges)
    limit = min(_bytes(spark, "maxPartitionBytes"), _bytes(spark, "openCostInBytes"))
    one_task = all(path.endswith(".gz") or size <= limit for path, size in sizes.items())
    # Hadoop would end a line at a carriage return as well, and take directories like `day=1` for columns
    reader = spark.read.options(lineSep="\n", recursiveFileLookup="true")
    scan = reader.text([spark_path(part.path) for part in ranges])
    return number_lines(scan, ranges, one_task=one_task).select(POSITION, CONTEXT, F.col("value").alias(RAW))


def _sizes(ranges: Sequence[FileRange]) -> dict[str, int]:
    """Sizes of files by path; of one that is gone Spark says nothing that a person could use."""
    return {part.path: file_info(part.path).size for part in ranges}


def _bytes(spark: SparkSession, setting: str) -> int:
    """A size of `spark.sql.files`, written as Spark allows: `134217728b`, `64MB`."""
    text = spark.conf.get(f"spark.sql.files.{setting}") or ""
    size = re.fullmatch(r"\s*([0-9]+)([bkmgtp]?)b?\s*", text.lower())
    if size is None:
        raise ValueError(f"spark.sql.files.{setting} is {text!r}, expected a size such as 64m")
    return int(size[1]) << 10 * (_UNITS.index(size[2]) if size[2] else 0)
