"""Resolve: which answers are applied to the left side, and what the join emits for them (KIP-213)."""

from typing import Literal, get_args

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms.foreign_key_join.emissions import GONE, retract_and_add
from transforms.foreign_key_join.highwater import MARK, is_below
from transforms.model.guards import stands
from transforms.model.hashing import value_hash
from transforms.model.join_sides import beside
from transforms.model.schemas import HASH, POSITION, PRIMARY_KEY, named
from transforms.model.specs import JoinSpec, ResolvedBy

Resolution = Literal["applied", "superseded", "stale", "contradictory"]
RESOLUTIONS: tuple[Resolution, ...] = get_args(Resolution)

_STORED = "_lj_stored"
REDUNDANT = "redundant"
"""A column of the changelog, which so has none of its own of this name."""
TOMBSTONE = "_lj_tombstone"
"""True for an emission that deletes its key from the joined table."""
LEFT_HASH = "_lj_left_hash"
RIGHT_HASH = "_lj_right_hash"

_CURRENT: dict[ResolvedBy, tuple[str, ...]] = {"hash": ("hash", "position"), "highwater": ("highwater",)}
"""What tells the current left value."""


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
        if not stands("hash_check"):
            return F.lit(True)
        return F.col("hash").eqNullSafe(F.col("left_hash"))
    return ~is_below(F.col(MARK), F.col("left_highwater"))


def _is_contradictory() -> Column:
    """An answer to a subscription stands where the left change stood that sent it."""
    # what a right change makes the store answer is held against its left row by the rules of the gate
    same_change = (F.col("cause") == "subscription") & (F.col(POSITION) == F.col("left_position"))
    return ~F.col("valid") & F.coalesce(same_change, F.lit(False))


def emit_results(
    resolved: DataFrame, left: DataFrame, right: DataFrame, join: JoinSpec, before: DataFrame | None = None
) -> DataFrame:
    """Join each applied answer's left row with its right row: the emissions of a batch, one for each key.

    `resolved`: answers with their resolution. `left`: primary_key, hash and value of the left rows after the batch.
    `right`: primary_key and value of the right rows likewise. `before`: for a combined key, primary_key and foreign_key
    of the live left rows before the batch, of the keys that it changed.
    Returns the columns of the joined table, the left key as `PRIMARY_KEY`, left and right hash, and `TOMBSTONE`: left
    row gone, or right value null in an inner join. A tombstone carries the key and no other value.
    """
    applied = resolved.where(F.col("resolution") == "applied").select(
        "primary_key", "foreign_key", "right_hash", "cause"
    )
    if before is not None:
        stored = beside(before, "before", "foreign_key")
        applied = applied.join(stored, F.col("primary_key") == F.col("before_key"), "left")
    left, right = beside(left, "left", "hash", "value"), beside(right, "right", "value")
    pairs = applied.join(left, F.col("primary_key") == F.col("left_key"), "left").join(
        right, F.col("foreign_key") == F.col("right_key"), "left"
    )
    return emit_pairs(pairs, join)


def emit_pairs(pairs: DataFrame, join: JoinSpec) -> DataFrame:
    """Make emissions of answers that have their two rows beside them.

    `pairs`: primary_key, left_hash, left_value, right_hash, right_value; for a combined key foreign_key, cause and
    before_foreign_key as well. Returns what `emit_results` does.
    """
    return _with_tombstone(pairs, join).select(
        F.col("primary_key").alias(PRIMARY_KEY),
        TOMBSTONE,
        *_columns(join),
        F.when(~F.col(TOMBSTONE), F.col("left_hash")).alias(LEFT_HASH),
        F.when(~F.col(TOMBSTONE), F.col("right_hash")).alias(RIGHT_HASH),
    )


def with_joined_hash(rows: DataFrame, join: JoinSpec) -> DataFrame:
    """Rows of the joined table, or emissions, with their `HASH`; of a tombstone it is null.

    Only a join of this one asks for it, so it is not stored, but made of the columns.
    """
    hashed = value_hash(join.columns)
    return rows.withColumn(HASH, F.when(~F.col(TOMBSTONE), hashed) if TOMBSTONE in rows.columns else hashed)


def _with_tombstone(pairs: DataFrame, join: JoinSpec) -> DataFrame:
    if join.result_key == "combined":
        return retract_and_add(pairs).withColumnRenamed(GONE, TOMBSTONE)
    gone = F.col("left_hash").isNull()
    return pairs.withColumn(TOMBSTONE, gone | F.col("right_hash").isNull() if join.how == "inner" else gone)


def _columns(join: JoinSpec) -> list[Column]:
    """The joined row; the right key is null where nothing matched, for a foreign key may point nowhere.

    A combined key holds the right key, so that stands there in any case.
    """
    kept = ~F.col(TOMBSTONE)
    columns: list[Column] = []
    for name in join.left_columns.names:
        if name in join.left_key:
            columns.append(F.col("primary_key")[name].alias(name))
        else:
            columns.append(F.when(kept, F.col("left_value")[name]).alias(name))
    matched = kept & F.col("right_hash").isNotNull()
    for name in join.right_columns.names:
        if join.prefix + name in join.joined_key:
            columns.append(F.col("foreign_key")[name].alias(join.prefix + name))
        else:
            columns.append(F.when(matched, F.col("right_value")[name]).alias(join.prefix + name))
    return columns


def redundant(emissions: DataFrame, before: DataFrame) -> DataFrame:
    """Mark the emissions that leave the joined table as it was.

    `emissions`: of one batch, with `PRIMARY_KEY`, left and right hash. `before`: primary_key, left_hash, right_hash of
    the joined rows before it, at least those of the emissions' keys: a joined row is all that its two rows hold, so
    these tell it. Returns `emissions` with a boolean `REDUNDANT`.
    """
    stored = beside(before, _STORED, "left_hash", "right_hash")
    same_left = named(LEFT_HASH).eqNullSafe(F.col(f"{_STORED}_left_hash"))
    same_right = named(RIGHT_HASH).eqNullSafe(F.col(f"{_STORED}_right_hash"))
    return (
        emissions.join(stored, F.col(PRIMARY_KEY) == F.col(f"{_STORED}_key"), "left")
        .withColumn(REDUNDANT, same_left & same_right)
        .drop(*[f"{_STORED}_{name}" for name in ("key", "left_hash", "right_hash")])
    )
