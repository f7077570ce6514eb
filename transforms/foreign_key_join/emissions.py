"""Emits joined rows and tombstones for the answers that are applied, keyed by left key or by both keys (KIP-213).

A join with a combined key is Jan Filipiak's one-to-many join, in the second half of KIP-213. There a change of the
foreign key is "forward(key, null) for old", "forward(key, b) for new", and "skip old if A's key didn't change". So an
applied answer emits up to two rows: it retracts the pair that its left row was part of, and adds the pair that it is
part of now. His join is an inner one: "B records with a 'null' A-key value would be silently dropped".
"""

from functools import reduce
from operator import and_, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType

from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.join_sides import beside
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    BATCH,
    HASH,
    LEFT_HASH,
    LEFT_SEQUENCE,
    PRIMARY_KEY,
    RIGHT_HASH,
    RIGHT_KEY,
    RIGHT_SEQUENCE,
    SEQUENCE,
    key_struct,
    named,
    no_batch,
)
from lakejoin.transforms.model.selection import FAILED, FILTERED, LACKS, WITHHELD, judged, marks_of, selected
from lakejoin.transforms.model.specs import JoinSpec

GONE = "gone"
"""True for the retraction of a pair, false for its addition."""
_STORED = "_lj_stored"
REDUNDANT = "redundant"
"""Column of the changelog: true for an emission that changes nothing. So no declared column may have this name."""
TOMBSTONE = "_lj_tombstone"
"""True for an emission that deletes its key from the joined table."""
TOLD = "told"
"""True for a left row of a star that an answer said to have lost a right row, or never to have had one."""


def joined_schema(join: ResultSpec) -> StructType:
    """Schema of `joins/J/joined`: its columns, internal columns."""
    return StructType([*join.columns, StructField(BATCH, LongType()), *join.internal_columns])


def changelog_schema(join: ResultSpec) -> StructType:
    """Schema of `joins/J/changelog`: an emission, and whether it changed anything."""
    own = [StructField(name, BooleanType()) for name in (TOMBSTONE, REDUNDANT)]
    return StructType([*joined_schema(join), *own])


def retract_and_add(pairs: DataFrame) -> DataFrame:
    """Make of each applied answer its retraction and its addition, as far as there is one.

    `pairs`: primary_key, foreign_key and cause of the answer, left_hash, right_hash (null: no such row), and
    before_foreign_key: of the left row before the batch, null if the batch did not change it or there was none.
    Returns `pairs` with `GONE`, and as foreign_key that of the pair that goes or comes.
    """
    adds = F.col("left_hash").isNotNull() & F.col("right_hash").isNotNull()
    # a right row only answers those that still point at it: they were part of its pair, if there was one
    answered = F.when(F.col("cause") == "right_change", F.col("foreign_key"))
    former = F.coalesce(F.col("before_foreign_key"), answered)
    stays = adds & (former == F.col("foreign_key"))
    retraction = F.struct(former.alias("foreign_key"), F.lit(True).alias(GONE))
    addition = F.struct(F.col("foreign_key").alias("foreign_key"), F.lit(False).alias(GONE))
    steps = F.array_compact(F.array(F.when(former.isNotNull() & ~stays, retraction), F.when(adds, addition)))
    step = "_lj_pair_step"
    return (
        pairs.withColumn(step, F.explode(steps))
        .withColumns({"foreign_key": F.col(step)["foreign_key"], GONE: F.col(step)[GONE]})
        .drop(step)
    )


def emit_results(
    resolved: DataFrame, left: DataFrame, right: DataFrame, join: JoinSpec, before: DataFrame | None = None
) -> DataFrame:
    """Join each applied answer's left row with its right row: the emissions of a batch, one for each key.

    `resolved`: answers with their resolution. `left`: primary_key, hash and value of the left rows after the batch.
    `right`: primary_key and value of the right rows likewise. `before`: for a combined key, primary_key and foreign_key
    of the live left rows before the batch, of the keys that it changed.
    Returns the columns of `joined_schema`, the left key as `PRIMARY_KEY`, and `TOMBSTONE`: left row gone, or right
    value null in an inner join. A tombstone carries the key and no other value. The emissions have no batch yet.
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


def emit_pairs(pairs: DataFrame, join: ResultSpec, *beside: str) -> DataFrame:
    """Make emissions of answers that have their rows beside them.

    `pairs`: primary_key, left_hash, left_value; of each right side, by `JoinSpec.of_side`, foreign_key, right_hash and
    right_value; for a combined key cause and before_foreign_key as well; of a star `TOLD`. Returns what `emit_results`
    does, `ResultSpec.sequences`, and the columns of `marks_of`; of a star also left rows for which nothing is emitted,
    as `WITHHELD`. `beside`: other columns of the pairs, which stay beside them.
    """
    kept = ~F.col(TOMBSTONE)
    of_star = [name for name in marks_of(join) if name not in {FILTERED, FAILED}]
    rows = _with_tombstone(pairs, join).select(
        F.col("primary_key").alias(PRIMARY_KEY),
        TOMBSTONE,
        *of_star,
        *_columns(join),
        F.col("left_hash").alias(LEFT_HASH),
        *[F.col(part.of_side("right_hash")).alias(part.of_side(RIGHT_HASH)) for part in join.parts],
        *[_right_key(part).alias(part.of_side(RIGHT_KEY)) for part in join.parts],
        *_sequences(join),
        *beside,
    )
    rows = judged(rows, join, kept)
    if join.where is not None:
        rows = rows.withColumn(TOMBSTONE, F.col(TOMBSTONE) | F.col(FILTERED))
    return rows.select(
        PRIMARY_KEY,
        TOMBSTONE,
        *marks_of(join),
        *selected(join, kept, _keys(join)),
        no_batch(),
        *[F.when(kept, F.col(field.name)).alias(field.name) for field in join.internal_columns],
        *[field.name for field in join.sequences],
        *beside,
    )


def _sequences(join: ResultSpec) -> list[Column]:
    """Those of the rows of a pair, as its history says them."""
    rows = {part.of_side(RIGHT_SEQUENCE): part.of_side("right_value") for part in join.parts}
    rows[LEFT_SEQUENCE] = "left_value"
    return [F.col(rows[field.name])[SEQUENCE].alias(field.name) for field in join.sequences]


def with_joined_hash(rows: DataFrame, columns: StructType) -> DataFrame:
    """Rows of the joined table, or emissions, with their `HASH`; of a tombstone it is null.

    `columns`: those that a join of this one reads. Only that asks for the hash, so it is not stored, but made of them.
    """
    hashed = value_hash(columns)
    return rows.withColumn(HASH, F.when(~F.col(TOMBSTONE), hashed) if TOMBSTONE in rows.columns else hashed)


def _with_tombstone(pairs: DataFrame, join: ResultSpec) -> DataFrame:
    if join.result_key == "combined":
        return retract_and_add(pairs).withColumnRenamed(GONE, TOMBSTONE)
    gone = F.col("left_hash").isNull()
    lacking = [
        (part, F.col(part.of_side("right_hash")).isNull()) for part in join.parts if part.how == "inner"
    ]
    incomplete = reduce(or_, [lacks for _, lacks in lacking], F.lit(False))
    pairs = pairs.withColumn(TOMBSTONE, gone | incomplete)
    if not join.needed:
        return pairs
    marks = {part.of_side(LACKS): ~gone & lacks for part, lacks in lacking}
    return pairs.withColumns(marks | {WITHHELD: ~gone & incomplete & ~F.col(TOLD)})


def _keys(join: ResultSpec) -> set[str]:
    """The columns of a pair that hold the key of the joined row: a tombstone has them, too."""
    right = [part.prefix + name for part in join.parts for name in part.right_key]
    return {*join.left_key, *(right if join.result_key == "combined" else ())}


def _right_key(part: JoinSpec) -> Column:
    """The key of the right row, null where there is none."""
    return F.when(F.col(part.of_side("right_hash")).isNotNull(), F.col(part.of_side("foreign_key")))


def _columns(join: ResultSpec) -> list[Column]:
    """The rows of a pair; the right key is null where nothing matched, for a foreign key may point nowhere.

    A combined key holds the right key, so that stands there in any case.
    """
    keys = _keys(join)
    left = [
        (F.col("primary_key") if name in keys else F.col("left_value"))[name].alias(name)
        for name in join.left_columns.names
    ]
    return left + [
        _right_column(part, name, keys) for part in join.parts for name in part.right_columns.names
    ]


def _right_column(part: JoinSpec, name: str, keys: set[str]) -> Column:
    shown, matched = part.prefix + name, F.col(part.of_side("right_hash")).isNotNull()
    value, key = F.col(part.of_side("right_value"))[name], F.col(part.of_side("foreign_key"))
    return (key[name] if shown in keys else F.when(matched, value)).alias(shown)


def changelog_rows(emissions: DataFrame, before: DataFrame, join: ResultSpec) -> DataFrame:
    """Rows of `changelog`: each emission, and whether it leaves the joined table as it was.

    `before`: as `redundant` wants it.
    """
    keyed = emissions.withColumn(PRIMARY_KEY, key_struct(join.joined_key))
    return redundant(keyed, before, join).select(*map(named, changelog_schema(join).names))


def redundant(emissions: DataFrame, before: DataFrame, join: ResultSpec) -> DataFrame:
    """Mark the emissions that leave the joined table as it was.

    `emissions`: of one batch, with `PRIMARY_KEY` and the hashes of their rows. `before`: primary_key and the same
    hashes of the joined rows before it, at least those of the emissions' keys: a joined row is all that its rows hold,
    so these tell it. Returns `emissions` with a boolean `REDUNDANT`.
    """
    hashes = [field.name for field in join.hashes]
    stored = beside(before, _STORED, *hashes)
    same = [named(name).eqNullSafe(F.col(f"{_STORED}_{name}")) for name in hashes]
    return (
        emissions.join(stored, F.col(PRIMARY_KEY) == F.col(f"{_STORED}_key"), "left")
        .withColumn(REDUNDANT, reduce(and_, same))
        .drop(*[f"{_STORED}_{name}" for name in ("key", *hashes)])
    )
