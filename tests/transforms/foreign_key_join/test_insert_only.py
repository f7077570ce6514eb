"""Plain inserts end as they would by the other steps of a join."""

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.emissions import emit_pairs, emit_results
from lakejoin.transforms.foreign_key_join.highwater import highwater
from lakejoin.transforms.foreign_key_join.insert_only import applied_answers, pair, subscribe
from lakejoin.transforms.foreign_key_join.resolution import resolve_responses
from lakejoin.transforms.foreign_key_join.responses import (
    answer_right_changes,
    answer_subscriptions,
    response_schema,
)
from lakejoin.transforms.foreign_key_join.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    with_previous,
)
from lakejoin.transforms.model.schemas import BATCH, HASH_TYPE, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import How, JoinSpec, ResolvedBy, ResultKey

pytestmark = pytest.mark.spark

_LEFT = StructType([StructField("id", StringType()), StructField("fk", StringType())])
_RIGHT = StructType([StructField("code", StringType()), StructField("name", StringType())])
_ROW = [StructField("hash", HASH_TYPE), StructField("position", POSITION_TYPE)]

INSERTS = {
    "to a changed row": "changed",
    "to a row as it was": "kept",
    "to a row that the batch deletes": "gone",
    "to a row deleted before": "was gone",
    "to a row that never was": "unknown",
    "to none": None,
    "to a changed row as well": "changed",
}
"""Left rows by key, each with its foreign key."""
RIGHT = {"changed": "new", "kept": "old", "gone": None, "was gone": None}
"""Right rows after the batch by key, each with its name; None is a tombstone."""
CHANGED = ("changed", "gone")
NAMES = ("subscription log", "answers", "emissions")


@pytest.mark.parametrize(
    ("how", "resolution", "result_key"),
    [("inner", "hash", "left"), ("left", "highwater", "left"), ("inner", "highwater", "combined")],
)
def test_plain_inserts_end_as_by_the_steps_of_other_changes(
    how: How, resolution: ResolvedBy, result_key: ResultKey, spark: SparkSession
) -> None:
    """The same messages, answers and emissions, whatever the right side has for them."""
    join = JoinSpec(
        "joined", "orders", "customers", _LEFT, ("id",), _RIGHT, ("code",), ("fk",), how,
        resolution=resolution, result_key=result_key,
    )  # fmt: skip
    inserts, right = _inserts(spark, join), _right(spark, join)
    changed = right.where(F.col("primary_key")["code"].isin(*CHANGED)).drop("value")

    one_way = _by_all_steps(inserts, right, changed, join)
    log, pairs = subscribe(inserts, how), pair(inserts, right, changed, how)
    other_way = (log, applied_answers(pairs, join), emit_pairs(pairs, join))

    for name, wanted, found in zip(NAMES, one_way, other_way, strict=True):
        assert _rows(found.select(wanted.columns)) == _rows(wanted), name
    # each kind of foreign key leaves its mark, or both ways could be empty
    expected = {"inner": (6, 4, 4), "left": (7, 7, 7)}[how]
    assert tuple(sum(_rows(frame).values()) for frame in other_way) == expected


def _by_all_steps(
    inserts: DataFrame, right: DataFrame, changed: DataFrame, join: JoinSpec
) -> tuple[DataFrame, DataFrame, DataFrame]:
    left = inserts.withColumnRenamed(POSITION, "position")
    before = inserts.limit(0).select("primary_key", "foreign_key")
    log = send_subscriptions(with_previous(inserts, before), join.how)
    sent = log.withColumn(BATCH, F.lit(None).cast("bigint")).select(*subscription_schema(join).names)
    answers = answer_subscriptions(sent, right).unionByName(
        answer_right_changes(changed, live_subscriptions(sent))
    )
    current = left if join.resolution == "hash" else highwater(sent)
    resolved = resolve_responses(answers, current, join.resolution)
    resolved = resolved.withColumn(BATCH, F.lit(None).cast("bigint"))
    emissions = emit_results(resolved, left, right, join, before)
    return log, resolved.select(*response_schema(join).names), emissions


def _inserts(spark: SparkSession, join: JoinSpec) -> DataFrame:
    schema = StructType([
        StructField("primary_key", join.primary_key_type),
        StructField("foreign_key", join.foreign_key_type),
        StructField("hash", HASH_TYPE),
        StructField(POSITION, POSITION_TYPE),
        StructField("value", join.left_columns),
    ])  # fmt: skip
    return spark.createDataFrame(
        [
            ((key,), foreign and (foreign,), (1, number, 0), (None, "left", number), (key, foreign))
            for number, (key, foreign) in enumerate(INSERTS.items())
        ],
        schema,
    )


def _right(spark: SparkSession, join: JoinSpec) -> DataFrame:
    schema = StructType([
        StructField("primary_key", join.foreign_key_type),
        *_ROW,
        StructField("value", join.right_columns),
    ])  # fmt: skip
    return spark.createDataFrame(
        [
            ((key,), name and (1, number, 1), (None, "right", number), (key, name))
            for number, (key, name) in enumerate(RIGHT.items())
        ],
        schema,
    )


def _rows(frame: DataFrame) -> Counter[str]:
    return Counter(repr(row) for row in frame.collect())
