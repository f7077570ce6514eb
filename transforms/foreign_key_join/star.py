"""Brings a left row together with its several right rows: the emissions of a star.

Each right side of a star is asked and answers as in a join of its own. What their answers name is emitted once, with
all right rows as they are after the batch. So a star has the rows of the chain of joins that it stands for. It emits
them for the same changes, too; only retractions of what was not there differ: in a chain they depend on the order of
its joins.
"""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.foreign_key_join.emissions import TOLD, emit_pairs
from lakejoin.transforms.model.join_sides import same_fields, with_foreign_keys
from lakejoin.transforms.model.selection import WITHHELD
from lakejoin.transforms.model.specs import JoinSpec, StarSpec


def emit_star(
    answers: Sequence[DataFrame], left: DataFrame, rights: Sequence[DataFrame], star: StarSpec
) -> DataFrame:
    """Emit the left rows that an applied answer of any right side names, each once.

    `answers`: of each right side, with their resolution. `left`: primary_key, hash and value of the left rows after the
    batch. `rights`: the same of the right rows, of all that these left rows point at. Returns what `emit_pairs` does.
    """
    named = [
        applied.select("primary_key", _tells_loss(part).alias(TOLD))
        for part, rows in zip(star.parts, answers, strict=True)
        for applied in [rows.where(F.col("resolution") == "applied")]
    ]
    keys = reduce(DataFrame.unionByName, named).groupBy("primary_key").agg(F.bool_or(TOLD).alias(TOLD))
    there = with_foreign_keys(left, star).withColumnRenamed("primary_key", "left_key")
    return emit_pairs(
        _meet(keys.join(there, F.col("primary_key") == F.col("left_key"), "left"), rights, star), star
    )


def _tells_loss(part: JoinSpec) -> Column:
    """Whether an answer without a right value retracts the row; that of a left join leaves it without right columns."""
    return F.col("right_hash").isNull() if part.how == "inner" else F.lit(False)


def emit_inserts(
    inserts: DataFrame, rights: Sequence[DataFrame], changed: Sequence[DataFrame], star: StarSpec
) -> DataFrame:
    """Emit left rows that were not there before and change once in the batch.

    `inserts`: as `transforms.foreign_key_join.batch.Inserts` has them. `rights`: as for `emit_star`. `changed`:
    primary_key and hash of the right rows that changed. Returns what `emit_pairs` does.
    """
    rows = inserts.withColumnsRenamed({"hash": "left_hash", "value": "left_value"})
    told = F.lit(False)
    for part, right in zip(star.parts, changed, strict=True):
        if part in star.needed:
            went, key = part.of_side("went"), F.col(part.of_side("foreign_key"))
            gone = right.where(F.col("hash").isNull()).select(F.col("primary_key").alias(went))
            rows = rows.join(gone, same_fields(key, F.col(went), part.right_key), "left")
            told |= F.col(went).isNotNull()
    return emit_pairs(_meet(rows.withColumn(TOLD, told), rights, star), star)


def emitted_and_withheld(made: DataFrame, star: StarSpec) -> tuple[DataFrame, DataFrame | None]:
    """Tell the emissions of a star from left rows that it emits nothing for; None where there can be none."""
    if not star.needed:
        return made, None
    return made.where(~F.col(WITHHELD)), made.where(WITHHELD)


def _meet(rows: DataFrame, rights: Sequence[DataFrame], star: StarSpec) -> DataFrame:
    """Put the right rows beside left rows that have their foreign keys."""
    for part, right in zip(star.parts, rights, strict=True):
        of_side = right.select(
            *[
                F.col(name).alias(part.of_side(f"right_{called}"))
                for name, called in (("primary_key", "key"), ("hash", "hash"), ("value", "value"))
            ]
        )
        key, right_key = F.col(part.of_side("foreign_key")), F.col(part.of_side("right_key"))
        rows = rows.join(of_side, same_fields(key, right_key, part.right_key), "left")
    return rows
