"""Values of a batch in the code that Spark generates."""

from collections.abc import Callable

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import by_reference

pytestmark = pytest.mark.spark


def compiled(spark: SparkSession, value: Column) -> tuple[int, set[int]]:
    """How many pieces of code Spark compiles to put a value on rows, and the values that they have then."""
    metric = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()  # type: ignore[union-attr]
    before = metric.getCount()
    number = value.cast("bigint").alias("number")
    rows = spark.range(4, numPartitions=2).select((F.col("id") + 1).alias("next"), number).collect()
    return metric.getCount() - before, {row["number"] for row in rows}


@pytest.mark.parametrize(
    ("literal", "one", "another"),
    [(F.lit, 7, 8), (lambda seconds: F.timestamp_seconds(F.lit(seconds)), 17, 18)],
)
def test_code_that_refers_to_a_value_is_compiled_once(
    spark: SparkSession, literal: Callable[[int], Column], one: int, another: int
) -> None:
    """A number or a time; code that contains one is compiled for each."""
    compiled(spark, by_reference(literal(one)))
    compiled(spark, literal(one))

    assert compiled(spark, by_reference(literal(another))) == (0, {another})
    assert compiled(spark, literal(another))[0] > 0
