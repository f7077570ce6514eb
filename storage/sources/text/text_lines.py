"""Reads the lines of text files as they are, each with its position."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.filesystem import spark_path
from lakejoin.storage.sources.files.compression import codec_of
from lakejoin.storage.sources.planned.planned_file import PlannedFile, sizes
from lakejoin.storage.sources.rows.line_numbers import number_lines
from lakejoin.storage.sources.rows.splits import in_one_task
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW


def read_lines(spark: SparkSession, ranges: Sequence[PlannedFile]) -> DataFrame:
    """Read lines: position, context, raw. Raises `SourceError`."""
    found = sizes(ranges)
    one_task = in_one_task(spark, {path: size for path, size in found.items() if not _is_whole(path)})
    # Hadoop would end a line at a carriage return as well, and take directories like `day=1` for columns
    reader = spark.read.options(lineSep="\n", recursiveFileLookup="true")
    scan = reader.text([spark_path(part.path) for part in ranges])
    return number_lines(scan, ranges, one_task=one_task).select(POSITION, CONTEXT, F.col("value").alias(RAW))


def _is_whole(path: str) -> bool:
    """Whether one task reads a file, however large it is: Spark takes only plain text and bzip2 apart."""
    codec = codec_of(path)
    return codec is not None and codec.name != "bzip2"
