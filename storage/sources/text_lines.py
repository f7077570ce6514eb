"""Reads the lines of text files as they are, each with its position."""

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from storage.filesystem import spark_path
from storage.sources.compression import codec_of
from storage.sources.line_numbers import number_lines
from storage.sources.planned_file import PlannedFile, sizes
from transforms.model.schemas import CONTEXT, POSITION, RAW

_UNITS = "bkmgtp"


def read_lines(spark: SparkSession, ranges: Sequence[PlannedFile]) -> DataFrame:
    """Read lines: position, context, raw. Raises `SourceError`."""
    found = sizes(ranges)
    limit = min(_bytes(spark, "maxPartitionBytes"), _bytes(spark, "openCostInBytes"))
    one_task = all(_is_whole(path) or size <= limit for path, size in found.items())
    # Hadoop would end a line at a carriage return as well, and take directories like `day=1` for columns
    reader = spark.read.options(lineSep="\n", recursiveFileLookup="true")
    scan = reader.text([spark_path(part.path) for part in ranges])
    return number_lines(scan, ranges, one_task=one_task).select(POSITION, CONTEXT, F.col("value").alias(RAW))


def _is_whole(path: str) -> bool:
    """Whether one task reads a file, however large it is: Spark takes only plain text and bzip2 apart."""
    codec = codec_of(path)
    return codec is not None and codec.name != "bzip2"


def _bytes(spark: SparkSession, setting: str) -> int:
    """A size of `spark.sql.files`, written as Spark allows: `134217728b`, `64MB`."""
    text = spark.conf.get(f"spark.sql.files.{setting}") or ""
    size = re.fullmatch(r"\s*([0-9]+)([bkmgtp]?)b?\s*", text.lower())
    if size is None:
        raise ValueError(f"spark.sql.files.{setting} is {text!r}, expected a size such as 64m")
    return int(size[1]) << 10 * (_UNITS.index(size[2]) if size[2] else 0)
