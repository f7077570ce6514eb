"""Rows that are held against keys: each that has one of them, once."""

import pytest
from pyspark.sql import SparkSession

from lakejoin.transforms.model.keys import Keys, restrict

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("few", [True, False], ids=["broadcast", "shuffled"])
def test_rows_of_some_keys_are_found_by_the_whole_key(spark: SparkSession, few: bool) -> None:
    """Each once, however often its key is asked for, with no column of the keys' own."""
    rows = spark.createDataFrame(
        [(no, region, "x") for no in (1, 2) for region in ("EU", "US")], "no int, r string, v string"
    )
    keys = spark.createDataFrame([("EU", 1), ("EU", 1), ("US", 2), ("US", 3)], "r string, no int")

    found = restrict(rows, Keys(keys, few=few), ("r", "no"))

    assert sorted(found.columns) == sorted(rows.columns)
    assert sorted((row["no"], row["r"], row["v"]) for row in found.collect()) == [
        (1, "EU", "x"),
        (2, "US", "x"),
    ]
