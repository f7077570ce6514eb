"""What Spark's jobs are called, on its web page and in its history: without a name, by a line of code."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_NAME = "spark.job.description"


@contextmanager
def jobs_called(spark: SparkSession, name: str) -> Iterator[None]:
    """Jobs that this thread begins meanwhile go by a name."""
    context = spark.sparkContext
    before = context.getLocalProperty(_NAME)
    context.setLocalProperty(_NAME, name)
    try:
        yield
    finally:
        context.setLocalProperty(_NAME, before)  # type: ignore[arg-type] # none removes it
