"""A result keyed by foreign key and primary key: Jan Filipiak's one-to-many join, in the second half of KIP-213.

There a change of the foreign key is "forward(key, null) for old", "forward(key, b) for new", and "skip old if A's key
didn't change". So an applied answer emits up to two rows: the retraction of the pair that its left row was part of,
and the addition of the pair that it is part of now. His join is an inner one: "B records with a 'null' A-key value
would be silently dropped".
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

GONE = "gone"
"""True for the retraction of a pair, false for its addition."""


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
