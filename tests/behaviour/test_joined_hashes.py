"""What a changelog asks the joined table for: no more than tells whether an emission changes its row."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakejoin.orchestration.demo.days import Day
from lakejoin.orchestration.demo.example import Example
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import LEFT_HASH, RIGHT_HASH

pytestmark = pytest.mark.spark


def columns_read(frame: DataFrame) -> list[set[str]]:
    """Return the columns of each scan that a frame is made by."""
    spark: Any = frame.sparkSession
    as_java = spark._jvm.scala.jdk.javaapi.CollectionConverters.asJava
    plan = frame._jdf.queryExecution().sparkPlan()
    return [{column.name() for column in as_java(leaf.output())} for leaf in as_java(plan.collectLeaves())]


@pytest.mark.parametrize("few", [True, False])
def test_of_joined_rows_only_key_and_hashes_are_read(
    tiny: Example, tiny_days: tuple[Day, ...], spark: SparkSession, *, few: bool
) -> None:
    """Every other column would be read of the whole table, in every batch; few emissions choose their rows."""
    assert len(tiny_days) == 3
    lake = Lake(tiny.pipeline.lake)
    state = State(spark, lake, published_snapshot(Journal(lake)))
    join = tiny.pipeline.join_spec("flights_with_planes")
    joined = state.joined(join)
    expected = joined.limit(3).collect() if few else joined.collect()
    emissions = spark.createDataFrame(expected, joined.schema) if few else None

    met = state.joined_hashes(join, emissions)

    assert {tuple(row) for row in met.collect()} == {
        (tuple(row[name] for name in join.joined_key), row[LEFT_HASH], row[RIGHT_HASH]) for row in expected
    }
    scans = [columns & {*join.columns.names} for columns in columns_read(met) if LEFT_HASH in columns]
    assert {*join.joined_key} in scans
