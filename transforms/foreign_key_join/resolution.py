"""Decides which answers are applied to the left side, and which are stale or superseded (KIP-213)."""

from typing import Literal, get_args

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.transforms.foreign_key_join.highwater import MARK, is_below
from lakejoin.transforms.model.guards import guarded
from lakejoin.transforms.model.join_sides import beside
from lakejoin.transforms.model.schemas import POSITION
from lakejoin.transforms.model.specs import ResolvedBy

Resolution = Literal["applied", "superseded", "stale", "contradictory"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)


_CURRENT: dict[ResolvedBy, tuple[str, ...]] = {"hash": ("hash", "position"), "highwater": ("highwater",)}
"""Columns that identify the current left value."""


def resolve_responses(responses: DataFrame, left: DataFrame, by: ResolvedBy = "hash") -> DataFrame:
    """Say for each answer of a batch what becomes of it.

    `responses`: answers of the right side. `left`: what identifies the current left values of at least the keys that
    the answers name. By `hash`: primary_key, hash (null for a deleted row) and position of the left rows as they are
    after the batch; a missing row counts as deleted, and an answer with another hash was given to a value that has
    changed since: it is stale. If it answers the very change that the row is from, hash and position disagree: it is
    contradictory. By `highwater`: the marks of `transforms.foreign_key_join.highwater.highwater`; an answer below
    its key's is stale. Of several valid answers for a key the one with the newest right value is applied. Returns
    `responses` with `resolution`.
    """
    current = beside(left, "left", *_CURRENT[by])
    checked = responses.join(current, F.col("primary_key") == F.col("left_key"), "left").withColumn(
        "valid", _is_valid(by)
    )
    newest_first = Window.partitionBy("primary_key", "valid").orderBy(
        F.col("right_position").desc_nulls_last(), F.col(POSITION).desc(), F.col("cause")
    )
    resolution = (
        F.when(_is_contradictory() if by == "hash" else F.lit(False), "contradictory")
        .when(~F.col("valid"), "stale")
        .when(F.row_number().over(newest_first) == 1, "applied")
        .otherwise("superseded")
    )
    return checked.withColumn("resolution", resolution).drop(
        "left_key", *[f"left_{name}" for name in _CURRENT[by]], "valid"
    )


def _is_valid(by: ResolvedBy) -> Column:
    if by == "hash":
        if not guarded("hash_check"):
            return F.lit(True)
        return F.col("hash").eqNullSafe(F.col("left_hash"))
    return ~is_below(F.col(MARK), F.col("left_highwater"))


def _is_contradictory() -> Column:
    """An answer to a subscription stands where the left change stood that sent it."""
    # answers to a right change are compared with their left rows by the rules of the gate
    same_change = (F.col("cause") == "subscription") & (F.col(POSITION) == F.col("left_position"))
    return ~F.col("valid") & F.coalesce(same_change, F.lit(False))
