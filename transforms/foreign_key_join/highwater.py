"""Tells late answers by the highwater mark, as the first draft of KIP-213 does.

The adopted design compares hashes. The draft's remedy was "to propagate the offset of the original update along with
the payload of the message". So the mark of a left change travels with its messages, is stored with the subscription and
comes back in the answers. An answer below the highest mark of its key is stale.

A mark is the batch of a change, then its position. The position alone does not always rise: a record of one day may
arrive after a record of a later day. It stands before that record, and is accepted if its sequence is greater.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from lakejoin.transforms.model.schemas import BATCH, POSITION, POSITION_TYPE

MARK = "mark"
MARK_TYPE = StructType([StructField("batch", LongType()), StructField("position", POSITION_TYPE)])
"""A mark without a batch belongs to the batch under way."""


def mark() -> Column:
    """The mark of a message, from its batch and position."""
    return _mark(F.col(BATCH))


def new_mark() -> Column:
    """The mark of a change of the batch under way, from its position."""
    return _mark(F.lit(None).cast("bigint"))


def _mark(batch: Column) -> Column:
    return F.struct(batch.alias("batch"), F.col(POSITION).alias("position"))


def highwater(messages: DataFrame) -> DataFrame:
    """The highest mark of each left key.

    `messages`: of the subscription log and store, all that bear on the keys in question. Returns primary_key and
    highwater.
    """
    return messages.groupBy("primary_key").agg(F.max(_order(mark())).alias("highwater"))


def is_below(mark: Column, highwater: Column) -> Column:
    """Whether a mark is below the highest one of its key; no mark is where none is known."""
    return F.coalesce(_order(mark) < highwater, F.lit(False))


def _order(mark: Column) -> Column:
    under_way = mark["batch"].isNull()
    return F.struct(
        under_way.alias("under_way"), mark["batch"].alias("batch"), mark["position"].alias("position")
    )
