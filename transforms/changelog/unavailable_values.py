"""Restores values that a record left out because they did not change (Debezium's `__debezium_unavailable_value`).

Such a value is the one that the key has at that place. Where the key has none, the record is quarantined.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.changelog.key_order import (
    CANDIDATE,
    COUNTS,
    LAST,
    STORED,
    KeyOrder,
    beside,
    is_delete,
    key_columns,
)
from lakejoin.transforms.model.schemas import DELETED, DETAIL, POSITION, REASON, SEQUENCE, UNAVAILABLE, named

_UNKNOWN = "_lj_unknown"  # the record left out a value which its key does not have
_DOUBTFUL = "_lj_doubtful"  # a record of this key left out a value
_START, _STEPS, _MARKS = "_lj_start", "_lj_steps", "_lj_marks"  # what follows a key record by record


def quarantine_unknown(placed: DataFrame, order: KeyOrder, floor: Column) -> DataFrame:
    """Set aside the records that left out a value which their key does not have, or had at another time.

    Whether one is set aside depends on the records before it, and decides what those after it are compared with. That
    is a chain of any length, which no fixed number of windows resolves. So such keys are followed record by record.

    Returns the records with `REASON` and `DETAIL`, and without `COUNTS` where they are set; as they are where the
    format leaves nothing out.
    """
    if UNAVAILABLE not in placed.columns:
        return placed
    unknown = _unknown_values(placed, order, floor).withColumn(_UNKNOWN, F.lit(True))
    found = F.coalesce(_UNKNOWN, F.lit(False))
    return beside(placed, unknown, (*order.table.key, POSITION)).withColumns(
        {
            REASON: F.when(found, F.lit("unavailable_value")),
            DETAIL: F.when(found, F.array_join(UNAVAILABLE, ", ")),
            COUNTS: F.col(COUNTS) & ~found,
        }
    )


def _unknown_values(placed: DataFrame, order: KeyOrder, floor: Column) -> DataFrame:
    """Key and position of the records to set aside."""
    table = order.table
    stored = F.col(STORED)
    at = F.struct(stored[SEQUENCE].alias(SEQUENCE), stored[POSITION].alias(POSITION))
    start = F.struct(
        F.when(stored.isNotNull(), at).alias("at"),
        F.coalesce(~stored[DELETED], F.lit(False)).alias("exists"),
        F.lit("").alias("marks"),
    )
    left_out = F.col(UNAVAILABLE).isNotNull()
    step = F.struct(POSITION, SEQUENCE, is_delete().alias("deletes"), left_out.alias("left_out"))
    followed = F.aggregate(
        _STEPS,
        F.col(_START),
        lambda key, record: _follow(key, record, floor, has_history=table.history_retention is not None),
        lambda key: key["marks"],
    )
    set_aside = F.filter(_STEPS, lambda _, number: F.get(_MARKS, number) == "?")
    return (
        placed.withColumn(_DOUBTFUL, order.whole(F.bool_or, left_out))
        .where(F.col(_DOUBTFUL) & F.col(COUNTS))
        .groupBy(*key_columns(table))
        .agg(F.first(start).alias(_START), F.sort_array(F.collect_list(step)).alias(_STEPS))
        .withColumn(_MARKS, F.split(followed, ""))
        .select(*key_columns(table), F.explode(set_aside[POSITION]).alias(POSITION))
    )


def _follow(key: Column, record: Column, floor: Column, *, has_history: bool) -> Column:
    """What is known of a key after a record: where it stands, if it has a row, and a mark for each record so far.

    `has_history`: a record that comes late enters the history, where the key may have had another value than now.
    """
    sequence = F.coalesce(record[SEQUENCE], key["at"][SEQUENCE])
    at = F.struct(sequence.alias(SEQUENCE), record[POSITION].alias(POSITION))
    is_new = F.coalesce(sequence > floor, sequence.isNotNull())
    in_order = F.when(key["at"].isNull(), is_new).otherwise(at >= key["at"])
    unknown = in_order & record["left_out"] & ~key["exists"]
    if has_history:
        unknown |= F.coalesce(record["left_out"] & (sequence < key["at"][SEQUENCE]), F.lit(False))
    counts = in_order & ~unknown
    return F.struct(
        F.when(counts, at).otherwise(key["at"]).alias("at"),
        F.when(counts, ~record["deletes"]).otherwise(key["exists"]).alias("exists"),
        # a text, for appending to an array is so slow that a key with many records would stop the batch
        F.concat(key["marks"], F.when(unknown, "?").otherwise(".")).alias("marks"),
    )


def fill_unavailable(ordered: DataFrame, order: KeyOrder) -> DataFrame:
    """Put the key's value at this place where the source sent none because it had not changed. Needs `CANDIDATE`."""
    if UNAVAILABLE not in ordered.columns:
        return ordered
    filled = {}
    for name in [name for name in order.table.columns.names if name not in order.table.key]:
        left_out = F.coalesce(F.array_contains(UNAVAILABLE, name), F.lit(False))
        # within a struct, for the last value may be null
        known = F.when(F.col(CANDIDATE) & ~left_out, F.struct(named(name).alias("value")))
        stored = F.when(F.col(STORED).isNotNull(), F.struct(F.col(STORED)[name].alias("value")))
        last = F.coalesce(order.before(LAST, known), stored)
        filled[name] = F.when(left_out, last["value"]).otherwise(named(name))
    return ordered.withColumns(filled)
