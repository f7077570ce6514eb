"""Records that somebody names by file and line are refused, whatever else is wrong with them, and no others."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.transforms.model.refused_records import BY_HAND, is_by_hand, refuse_places
from lakejoin.transforms.model.schemas import CONTEXT, DETAIL, POSITION, POSITION_TYPE, RAW, REASON

pytestmark = pytest.mark.spark

_COLUMNS = (
    f"id int, `{POSITION}` {POSITION_TYPE.simpleString()}, `{CONTEXT}` boolean, `{REASON}` string, "
    f"`{DETAIL}` string, `{RAW}` string"
)


def test_records_are_refused_by_their_place(spark: SparkSession) -> None:
    """A line of another file stays, and so does a line that is only read to know what was before it."""
    records = spark.createDataFrame(
        [
            (1, (None, "a", 1), False, None, None, None),
            (2, (None, "a", 2), False, "cannot_be_read", "not a number", "the line"),
            (3, (None, "a", 3), True, None, None, None),
            (4, (None, "b", 1), False, "cannot_be_read", "not a number", "the line"),
            (5, (None, "b", 3), False, None, None, None),
        ],
        _COLUMNS,
    )

    refused = refuse_places(records, ["id"], [("a", 1), ("a", 2), ("a", 3), ("b", 3)])

    reasons = {row["id"]: row[REASON] for row in refused.select("id", REASON).collect()}
    assert reasons == {1: BY_HAND, 2: BY_HAND, 3: None, 4: "cannot_be_read", 5: BY_HAND}
    raw = {
        row["id"]: row["raw"]
        for row in refused.where(is_by_hand()).select("id", F.col(RAW).alias("raw")).collect()
    }
    assert raw == {1: '{"id":1}', 2: "the line", 5: '{"id":5}'}


def test_without_places_records_stay_as_they_are(spark: SparkSession) -> None:
    """Where nothing was put into quarantine by hand, no plan grows."""
    records = spark.createDataFrame([(1, (None, "a", 1), False, None, None, None)], _COLUMNS)

    assert refuse_places(records, ["id"], []) is records
