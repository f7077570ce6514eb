"""Says which files Spark does not take apart, by its settings."""

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession

_UNITS = "bkmgtp"


def in_one_task(spark: SparkSession, sizes: Mapping[str, int]) -> bool:
    """Whether each of some files, with their sizes by path, is so small that one task reads it in any case."""
    limit = min(_bytes(spark, "maxPartitionBytes"), _bytes(spark, "openCostInBytes"))
    return all(size <= limit for size in sizes.values())


def _bytes(spark: SparkSession, setting: str) -> int:
    """A size of `spark.sql.files`, written as Spark allows: `134217728b`, `64MB`."""
    text = spark.conf.get(f"spark.sql.files.{setting}") or ""
    size = re.fullmatch(r"\s*([0-9]+)([bkmgtp]?)b?\s*", text.lower())
    if size is None:
        raise ValueError(f"spark.sql.files.{setting} is {text!r}, expected a size such as 64m")
    return int(size[1]) << 10 * (_UNITS.index(size[2]) if size[2] else 0)
