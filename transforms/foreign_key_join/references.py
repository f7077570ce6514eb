"""Counts where foreign keys point: the left rows of each right key, of none, and the right keys without any.

Live subscriptions say it: a left row has one as long as it lives and its foreign key is not null, whether its right row
lives or not, in an inner join as in a left one. So no left row is read, and no joined one.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.join_sides import same_fields
from lakejoin.transforms.model.specs import JoinSpec


def references(subscriptions: DataFrame) -> DataFrame:
    """Count the left rows of each foreign key: foreign_key, left_rows, and left_key, the least of their keys.

    `subscriptions`: live ones.
    """
    counts = F.count(F.lit(1)).alias("left_rows"), F.min("primary_key").alias("left_key")
    return subscriptions.groupBy("foreign_key").agg(*counts)


def dangling(referred: DataFrame, right: DataFrame, join: JoinSpec) -> DataFrame:
    """Foreign keys that point at no right row.

    `referred`: what `references` returns. `right`: right_key of the live right rows. Returns the columns of `referred`.
    """
    return referred.join(right, _meets(join), "left_anti")


def fan_out(referred: DataFrame, right: DataFrame, join: JoinSpec) -> DataFrame:
    """Right keys that are referred to, as right_key and left_rows. The arguments are those of `dangling`."""
    return right.join(referred, _meets(join)).select("right_key", "left_rows")


def unreferenced(referred: DataFrame, right: DataFrame, join: JoinSpec) -> DataFrame:
    """Right keys that no left row refers to, as right_key. The arguments are those of `dangling`."""
    return right.join(referred, _meets(join), "left_anti")


def totals(referred: DataFrame, right: DataFrame, join: JoinSpec) -> DataFrame:
    """One row: the left_rows whose foreign key is not null, and how many of them are dangling; of none both are 0."""
    left_rows = F.col("left_rows")
    found = referred.join(right, _meets(join), "left").agg(
        F.sum(left_rows).alias("left_rows"),
        F.sum(F.when(F.col("right_key").isNull(), left_rows)).alias("dangling"),
    )
    return found.na.fill(0)


def _meets(join: JoinSpec) -> Column:
    return same_fields(F.col("foreign_key"), F.col("right_key"), join.right_key)
