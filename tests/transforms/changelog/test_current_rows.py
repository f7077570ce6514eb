"""The current rows of a table: the last of each key, of a base and the changes behind it."""

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType

from lakejoin.transforms.changelog.current_rows import latest_rows, settled
from lakejoin.transforms.model.schemas import BATCH, CURRENT

pytestmark = pytest.mark.spark

_ROWS = (
    StructType()
    .add("region", "string")
    .add("v", "string")
    .add("no.", "integer")
    .add("w", "string")
    .add(BATCH, "long")
)
_KEY = ("region", "no.")


def test_last_row_of_a_key_is_the_one_of_its_last_batch(spark: SparkSession) -> None:
    """A composite key is one only as a whole, a null overwrites a value, and columns keep their order."""
    rows = spark.createDataFrame(
        [
            ("EU", "new", 1, None, 10),
            ("EU", "old", 1, "kept by nothing", 9),
            ("EU", "only", 2, "x", 1),
            ("US", "other", 1, "x", 2),
        ],
        _ROWS,
    )

    latest = latest_rows(rows, _KEY)

    assert latest.schema.names == _ROWS.names
    assert sorted(map(tuple, latest.collect())) == [
        ("EU", "new", 1, None, 10),
        ("EU", "only", 2, "x", 1),
        ("US", "other", 1, "x", 2),
    ]


def test_change_that_is_its_key_s_state_is_a_row(spark: SparkSession) -> None:
    """Others are not, whatever their verdict; columns of the record only are left out."""
    changes = spark.createDataFrame(
        [("EU", "a", 1, "x", 1, True), ("EU", "b", 1, "y", 1, False)],
        StructType([*_ROWS]).add(CURRENT, "boolean"),
    )

    assert settled(changes, ["region", "no.", "v"]).collect() == [Row(**{"region": "EU", "no.": 1, "v": "a"})]
