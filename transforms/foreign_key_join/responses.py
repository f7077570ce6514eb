"""Answers the subscriptions of a batch, and the subscribers of each right row that changed (KIP-213).

In a batch the store first takes the subscriptions. Then each subscription looks up the right value as it is after the
batch, and each changed right row finds its subscribers. So no pair is missed.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.highwater import MARK, MARK_TYPE, mark
from lakejoin.transforms.foreign_key_join.subscriptions import DELETE_AND, DELETE_NO, NULL_IF_NO
from lakejoin.transforms.model.join_sides import beside
from lakejoin.transforms.model.schemas import BATCH, HASH_TYPE, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import JoinSpec

_RIGHT = ("right", "hash", "position")
_COLUMNS = ("primary_key", "foreign_key", "hash", MARK, "right_hash", "right_position", "cause", POSITION)


def response_schema(join: JoinSpec) -> StructType:
    """Schema of `response_log`: an answer, which version of the right row it carries, and what became of it."""
    marks = [StructField(MARK, MARK_TYPE)] if join.resolution == "highwater" else []
    return StructType(
        [
            StructField("primary_key", join.primary_key_type),
            StructField("foreign_key", join.foreign_key_type),
            StructField("hash", HASH_TYPE),
            *marks,
            StructField("right_hash", HASH_TYPE),
            StructField("right_position", POSITION_TYPE),
            StructField("cause", StringType()),
            StructField(POSITION, POSITION_TYPE),
            StructField("resolution", StringType()),
            StructField(BATCH, LongType()),
        ]
    )


def answer_subscriptions(log: DataFrame, right: DataFrame) -> DataFrame:
    """Answer the subscription messages of a batch.

    `log`: rows of the subscription log. `right`: primary_key, hash (null for a tombstone) and position of the right
    rows as they are after the batch, at least those the messages name.
    Returns primary_key, foreign_key, hash and mark (the message's), right_hash (null: no right value),
    right_position, cause and position.
    """
    looked_up = log.where(F.col("instruction") != DELETE_NO).join(
        beside(right, *_RIGHT), F.col("foreign_key") == F.col("right_key"), "left"
    )
    retracts = F.col("instruction") == DELETE_AND
    always = F.col("instruction").isin(DELETE_AND, NULL_IF_NO)
    return (
        looked_up.withColumn("right_hash", F.when(~retracts, F.col("right_hash")))
        .where(always | F.col("right_hash").isNotNull())
        .withColumns({"cause": F.lit("subscription"), MARK: mark()})
        .select(*_COLUMNS)
    )


def answer_right_changes(changed: DataFrame, store: DataFrame) -> DataFrame:
    """Answer the subscribers of each changed right key, tombstones included.

    `changed`: primary_key, hash (null for a tombstone) and position of the right rows that changed, after the batch.
    `store`: live subscriptions after the batch. One that the batch itself sent was answered with the same right value
    already, unless it asks for none and there is none. Returns the same columns as `answer_subscriptions`, with the
    hash and the mark that the subscriber left behind.
    """
    answered = F.col(BATCH).isNull() & (
        (F.col("instruction") == NULL_IF_NO) | F.col("right_hash").isNotNull()
    )
    return (
        store.join(beside(changed, *_RIGHT), F.col("foreign_key") == F.col("right_key"))
        .where(~answered)
        .withColumns({"cause": F.lit("right_change"), MARK: mark()})
        .withColumn(POSITION, F.col("right_position"))
        .select(*_COLUMNS)
    )


def last_changes(right: DataFrame) -> DataFrame:
    """The last change of each right key in a batch, as primary_key, hash and position: what subscribers are told."""
    last = F.max_by(F.struct("hash", "position"), F.col("position")).alias("last")
    return right.groupBy("primary_key").agg(last).select("primary_key", "last.*")
