"""Refuses records that could be parsed, with a reason, what is wrong, and the row as text."""

from collections.abc import Collection, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import CONTEXT, DETAIL, OP, POSITION, RAW, REASON, named

BY_HAND = "by_hand"
"""Reason of a record that somebody put into quarantine."""


def refuse(records: DataFrame, names: Sequence[str], reason: Column, detail: Column) -> DataFrame:
    """Give records a reason and a detail; those whose `reason` is null keep what they have.

    `names`: the declared columns, which make the text of a record that has none.
    """
    refused = reason.isNotNull()
    row = F.to_json(F.struct(*map(named, names)))
    return records.withColumns(
        {
            REASON: F.coalesce(reason, REASON),
            DETAIL: F.when(refused, detail).otherwise(F.col(DETAIL)),
            RAW: F.when(refused, F.coalesce(RAW, row)).otherwise(F.col(RAW)),
        }
    )


def judged_once(records: DataFrame) -> DataFrame:
    """The same records; what asks whether they have a reason is not asked before the reason is known.

    Else Spark moves such a condition down to the files. It says there what the reason is made of, all checks of all
    columns within each other: of three columns more than the JVM compiles into one method, and evaluated for each
    record again on the way up. Nothing is moved beyond what only a task knows.
    """
    is_known = F.spark_partition_id() >= 0
    return records.withColumn(REASON, F.when(is_known, F.col(REASON)))


def refuse_places(records: DataFrame, names: Sequence[str], places: Collection[tuple[str, int]]) -> DataFrame:
    """Give the records of some lines, by file and line, the reason `BY_HAND`, whatever else is wrong with them."""
    if not places:
        return records
    lines: dict[str, list[int]] = {}
    for file, line in places:
        lines.setdefault(file, []).append(line)
    position = F.col(POSITION)
    stands_there = [
        (position["file"] == file) & position["line"].isin(*found) for file, found in lines.items()
    ]
    reason = F.when(~F.col(CONTEXT) & reduce(or_, stands_there), F.lit(BY_HAND))
    return refuse(records, names, reason, F.lit("put here by `lakejoin quarantine add`"))


def is_by_hand() -> Column:
    """Whether somebody put a record into quarantine."""
    return F.coalesce(F.col(REASON) == BY_HAND, F.lit(False))


def with_refused_deletes(good: DataFrame, records: DataFrame, refused: Column) -> DataFrame:
    """Put refused deletes beside good records as context: the tombstone line after one deletes nothing either."""
    deletes = records.where(refused & (F.col(OP) == "delete")).withColumn(CONTEXT, F.lit(True))
    return good.unionByName(deletes.select(*map(named, good.columns)))
