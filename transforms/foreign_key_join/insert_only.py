"""Joins new left rows that have one change each in their batch, by a single join (a short cut through KIP-213's steps).

The subscription of such a row is answered once, with the right row as it is after the batch. Nothing can make that
answer stale or supersede it. So the joins that the usual steps need (for the row before a change, the row that an
answer belongs to, the last of several answers) are left out: one join with the right side gives both answer and
emission. A first load consists of such rows. Tests compare the result with that of the usual steps.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.foreign_key_join.batch import JoinBatch, Messages
from lakejoin.transforms.foreign_key_join.emissions import emit_pairs
from lakejoin.transforms.foreign_key_join.highwater import MARK, new_mark
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.foreign_key_join.star import emit_inserts, emitted_and_withheld
from lakejoin.transforms.foreign_key_join.subscriptions import send_first_subscriptions
from lakejoin.transforms.model.join_sides import beside, of_part, same_fields
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, POSITION, no_batch
from lakejoin.transforms.model.specs import How, JoinSpec, StarSpec

_RIGHT = ("right", "hash", "position", "value")


def join_inserts(
    join: ResultSpec, inserts: DataFrame, rights: Sequence[DataFrame], changed: Sequence[DataFrame]
) -> JoinBatch:
    """What inserts lead to. `inserts`: as `Inserts.rows`. `rights` and `changed`: of each right side, as for `pair`."""
    parts = [(part, of_part(inserts, part, "foreign_key")) for part in join.parts]
    sent = [subscribe(rows, part.how) for part, rows in parts]
    pairs = [
        pair(rows, right, gone, part.how)
        for (part, rows), right, gone in zip(parts, rights, changed, strict=True)
    ]
    withheld = None
    if isinstance(join, StarSpec):
        emissions, withheld = emitted_and_withheld(emit_inserts(inserts, rights, changed, join), join)
    else:
        emissions = emit_pairs(pairs[0], join)
    messages = tuple(
        Messages(part, log, applied_answers(answered, part), right, stored(log))
        for part, log, answered, right in zip(join.parts, sent, pairs, rights, strict=True)
    )
    left = inserts.withColumnRenamed(POSITION, "position").select("primary_key", "hash", "position", "value")
    return JoinBatch(join, messages, emissions, left, withheld=withheld)


def stored(messages: DataFrame) -> DataFrame:
    """The live subscriptions of inserts: one for each message, for none deletes another."""
    return messages.where(F.col("foreign_key").isNotNull())


def subscribe(inserts: DataFrame, how: How) -> DataFrame:
    """The messages of inserts, as `send_subscriptions` returns them.

    `inserts`: primary_key, foreign_key, hash, `POSITION` and value of the rows.
    """
    alone = {
        "previous_exists": F.lit(False),
        "previous_foreign_key": F.lit(None).cast(inserts.schema["foreign_key"].dataType),
        "changes_of_key": F.lit(1),
        "last_of_key": F.lit(True),
    }
    return send_first_subscriptions(inserts.withColumns(alone), how)


def pair(inserts: DataFrame, right: DataFrame, changed: DataFrame, how: How) -> DataFrame:
    """The answer to each insert that gets one, with both rows.

    `right`: primary_key, hash (null for a tombstone), position and value of the right rows after the batch.
    `changed`: the first three of those that changed.
    Returns primary_key, foreign_key, left_hash, left_value, right_hash, right_position, right_value (null: none),
    cause, `MARK` and `POSITION` of the answer, and before_foreign_key (null, for there was no row).
    """
    key = inserts.schema["foreign_key"].dataType
    assert isinstance(key, StructType)
    left = inserts.withColumnsRenamed({"hash": "left_hash", "value": "left_value"}).withColumns(
        {MARK: new_mark(), "before_foreign_key": F.lit(None).cast(key)}
    )
    same_key = same_fields(F.col("foreign_key"), F.col("right_key"), key.names)
    subscribed = left.join(beside(right, *_RIGHT), same_key, "left").withColumn(
        "cause", F.lit("subscription")
    )
    if how == "left":
        return subscribed.drop("right_key")
    # an inner join answers a subscription that finds nothing only when it learns that its right row went
    found = subscribed.where(F.col("right_hash").isNotNull())
    gone = changed.where(F.col("hash").isNull()).withColumn(
        "value", F.lit(None).cast(right.schema["value"].dataType)
    )
    told = left.join(beside(gone, *_RIGHT), same_key).withColumns(
        {POSITION: F.col("right_position"), "cause": F.lit("right_change")}
    )
    return found.unionByName(told).drop("right_key")


def applied_answers(pairs: DataFrame, join: JoinSpec) -> DataFrame:
    """The answers of `pair` as rows of `response_schema`, of the batch under way."""
    known = {"hash": F.col("left_hash"), "resolution": F.lit("applied"), BATCH: no_batch()}
    return pairs.withColumns(known).select(*response_schema(join).names)
