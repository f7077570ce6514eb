"""Joins versions with versions: which row a join has at each moment, of sides that say what was true when.

A version of the left side meets one after the other of its right key, each for as long as both are valid. How many
pairs there are follows from that alone: the versions of a right key are numbered, those that a left version meets stand
beside each other in that order, and each is looked up by its number.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.transforms.foreign_key_join.emissions import TOLD, TOMBSTONE, emit_pairs
from lakejoin.transforms.model.join_sides import inserted, right_valued
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import DELETED, HASH_TYPE, VALID_FROM, VALID_TO, VALIDITY, named
from lakejoin.transforms.model.specs import JoinSpec

SPAN = "_lj_span"
"""Since when and until when something is valid, as a struct of `VALIDITY`."""
_BEFORE, _AT, _AFTER = 0, 1, 2
"""At one moment: the end of a left version, which is exclusive; the beginning of a right one; that of a left one."""


def left_versions(versions: DataFrame, join: ResultSpec) -> DataFrame:
    """Versions of the left side in which its row lives: primary_key, left_hash, left_value, foreign keys, `SPAN`.

    `versions`: columns of `versions_schema` with their ends. The foreign keys are called by `JoinSpec.of_side`.
    """
    live = versions.where(~named(DELETED)).withColumn(SPAN, F.struct(*VALIDITY))
    return (
        inserted(live, join, SPAN)
        .withColumnsRenamed({"hash": "left_hash", "value": "left_value"})
        .select(
            "primary_key", "left_hash", "left_value", SPAN,
            *[part.of_side("foreign_key") for part in join.parts],
        )
    )  # fmt: skip


def temporal_join(left: DataFrame, rights: Sequence[DataFrame], join: ResultSpec) -> DataFrame:
    """Return the row of the join at each moment: columns of the result, `ResultSpec.sequences`, `SPAN`.

    `left`: of `left_versions`. `rights`: for each of `ResultSpec.parts` versions of the right side with their ends, of
    at least the keys that `left` refers to. There is no row where the join has none. Two that follow each other may be
    the same.
    """
    pairs = left
    for part, right in zip(join.parts, rights, strict=True):
        pairs = _with_right(pairs, right, part)
    return made_of(pairs, join, SPAN)


def made_of(pairs: DataFrame, join: ResultSpec, *beside: str) -> DataFrame:
    """Return what a join makes of left rows beside their right ones: columns of the result, `ResultSpec.sequences`.

    `pairs`: as `emit_pairs` wants them, of live left rows; `beside`: columns of theirs that stay. What makes no row of
    the result is left out.
    """
    rows = emit_pairs(pairs.withColumns(_as_answers(join)), join, *beside).where(~named(TOMBSTONE))
    names = [*join.columns.names, *[field.name for field in join.sequences], *beside]
    return rows.select(*map(named, names))


def _as_answers(join: ResultSpec) -> dict[str, Column]:
    """What emissions are asked for beside both rows: nothing was there before."""
    if join.result_key == "combined":
        (part,) = join.parts
        before = F.lit(None).cast(part.foreign_key_type)
        return {"cause": F.lit("subscription"), "before_foreign_key": before}
    return {TOLD: F.lit(True)} if join.needed else {}


def _with_right(pieces: DataFrame, right: DataFrame, part: JoinSpec) -> DataFrame:
    """Put beside each piece of time what its foreign key refers to then: right_hash and right_value, null for nothing.

    A piece in which that changes becomes several.
    """
    key, names = part.of_side("foreign_key"), pieces.columns
    met = [part.of_side(name) for name in ("right_hash", "right_value")]
    versions = right_valued(right.withColumn(SPAN, F.struct(*VALIDITY)), part, SPAN).select(
        F.col("primary_key").alias("at"), F.struct("hash", "value", SPAN).alias("version")
    )
    # what refers to nothing would come together at one place
    alone = pieces.where(F.col(key).isNull())
    none = {
        met[0]: F.lit(None).cast(HASH_TYPE),
        met[1]: F.lit(None).cast(versions.schema["version"].dataType["value"].dataType),  # type: ignore[index]
    }
    refers = _numbered(pieces.where(F.col(key).isNotNull()), versions, key)
    by_key = Window.partitionBy("at").orderBy(F.col("version")[SPAN][VALID_FROM])
    ranked = versions.withColumn("number", F.row_number().over(by_key))
    found = refers.withColumn("number", F.explode(F.sequence("least", "greatest"))).join(
        ranked, ["at", "number"], "left"
    )
    span, own = F.col("piece")[SPAN], F.col("version")[SPAN]
    before_all = F.when(F.col("number") == 0, F.col("first"))
    overlap = F.struct(
        F.greatest(span[VALID_FROM], own[VALID_FROM]).alias(VALID_FROM),
        F.least(span[VALID_TO], own[VALID_TO], before_all).alias(VALID_TO),
    )
    columns = [overlap.alias(SPAN) if name == SPAN else F.col("piece")[name].alias(name) for name in names]
    beside = [F.col("version")["hash"].alias(met[0]), F.col("version")["value"].alias(met[1])]
    return found.select(*columns, *beside).unionByName(alone.withColumns(none))


def _numbered(pieces: DataFrame, versions: DataFrame, key: str) -> DataFrame:
    """Say of pieces which versions of their right key they meet, by their numbers from `least` to `greatest`.

    Number 0 is the time before there is any, which ends with `first`. Returns these, `at` (the right key) and `piece`.
    """
    span = F.col(SPAN)

    def point(time: Column, place: int) -> Column:
        return F.struct(time.alias("time"), F.lit(place).alias("place"))

    ends = F.array(point(span[VALID_FROM], _AFTER), point(span[VALID_TO], _BEFORE))
    asked = pieces.select(
        F.col(key).alias("at"), F.struct(*pieces.columns).alias("piece"), F.explode(ends).alias("point")
    ).select(
        "at",
        F.struct(F.col("piece")["primary_key"], F.col("piece")[SPAN]).alias("identity"),
        # one of the two carries it
        F.when(F.col("point")["place"] == _AFTER, F.col("piece")).alias("piece"),
        "point",
    )
    since = F.col("version")[SPAN][VALID_FROM]
    known = versions.select("at", point(since, _AT).alias("point"), since.alias("since"))
    both = asked.unionByName(known, allowMissingColumns=True)
    by_key = Window.partitionBy("at")
    # a version that goes on has its end after all others
    order = [F.col("point")["time"].asc_nulls_last(), F.col("point")["place"]]
    so_far = by_key.orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    counted = both.withColumns(
        {"number": F.count("since").over(so_far), "first": F.min("since").over(by_key)}
    )
    return (
        counted.where(F.col("identity").isNotNull())
        .groupBy("at", "identity")
        .agg(
            F.min("number").alias("least"),
            F.max("number").alias("greatest"),
            F.first("first").alias("first"),
            F.first("piece", ignorenulls=True).alias("piece"),
        )
    )
