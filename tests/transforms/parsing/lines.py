"""Numbers lines for the tests of parsers, as files are read."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW


def numbered(spark: SparkSession, lines: Sequence[str]) -> DataFrame:
    """Lines as they are read: position, context, raw."""
    frame = spark.createDataFrame(list(enumerate(lines, start=1)), "line BIGINT, text STRING")
    place = F.struct(F.lit(None).cast("date").alias("date"), F.lit("x").alias("file"), "line")
    return frame.select(place.alias(POSITION), F.lit(False).alias(CONTEXT), F.col("text").alias(RAW))
