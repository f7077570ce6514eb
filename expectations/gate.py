"""Finds which rules are broken, by how many keys, with a few of these keys, in one native query.

With `small` frames the query is one Spark job: on frames of one partition it needs neither a shuffle nor a broadcast,
each of which adaptive execution runs as a job of its own. For that `spark.sql.maxSinglePartitionBytes` must be large:
Spark estimates a join of a join at the product of its sides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from lakejoin.expectations.keys import Kind, frames_for, keys_sql
from lakejoin.expectations.rules import Rule, rules_for

SAMPLES = 5
"""How many offending keys a result shows."""
# Each frame has few rows of a key: grouped before they meet, they would be sorted twice for nothing.
_BY_KEY = "/*+ REPARTITION(primary_key) */"
_ONE_PARTITION = "/*+ COALESCE(1) */"


def gate(
    frames: Mapping[str, DataFrame], kind: Kind, *, small: bool = False, digests: bool = False
) -> DataFrame:
    """Return the query that checks frames against every rule of a kind of join or table; nothing is run here.

    `frames`: those of `frames_for(kind)` with at least its columns, full or restricted to touched keys as
    `expectations.rules` says. Frames that the caller keeps persisted stay so. `small`: they fit in one task. `digests`:
    hashes and foreign keys are compared by 64 bits of them, which Spark groups by hashing where it has to sort structs;
    what is found is to be asked for once more without, for samples that say something.
    Returns one row for each broken rule: `rule`, `offending` (how many keys) and `sample` (the first of them as JSON
    texts). Raises `ValueError` for a missing frame.
    """
    wanted = frames_for(kind)
    if missing := wanted.keys() - frames.keys():
        found = ", ".join(sorted(frames)) or "none"
        needed = ", ".join(sorted(missing))
        raise ValueError(f"The rules of kind {kind!r} also need the frames {needed}; found: {found}.")
    read: dict[str, Any] = {
        name: to_view(
            frames[name], _digests(name, frames[name], columns) if digests else columns, small=small
        )
        for name, columns in wanted.items()
    }
    # Spark names a temporary view for each frame by a random UUID, so that threads do not meet.
    session: SparkSession = next(iter(read.values())).sparkSession
    return session.sql(results_sql(kind, _ONE_PARTITION if small else _BY_KEY), **read)


def broken_rules(frames: Mapping[str, DataFrame], kind: Kind, *, small: bool) -> list[Row]:
    """The rows of `gate`, for whose sake jobs are run: first by digests where there are many rows."""
    found = gate(frames, kind, small=small, digests=not small).collect()
    return found if small or not found else gate(frames, kind).collect()


def results_sql(kind: Kind, hint: str = "") -> str:
    """Return the query that counts and samples what offends each rule of a kind; it reads frames as `{name}`."""
    rules = rules_for(kind)
    broken = ",\n    ".join(_offence(rule) for rule in rules)
    any_broken = "\n    OR ".join(f"({rule.where})" for rule in rules)
    return f"""
WITH keys AS (
{keys_sql(kind, hint)}
)
SELECT offence.rule, count(*) AS offending, min_by(offence.line, offence.line, {SAMPLES}) AS sample
FROM (
  SELECT explode(array_compact(array(
    {broken}))) AS offence
  FROM keys
  WHERE {any_broken}
)
GROUP BY offence.rule"""


def _offence(rule: Rule) -> str:
    line = f"to_json(struct(primary_key, {rule.shows}), map('ignoreNullFields', 'false'))"
    return f"CASE WHEN {rule.where} THEN struct('{rule.name}' AS rule, {line} AS line) END"


def _digests(name: str, frame: DataFrame, columns: tuple[str, ...]) -> list[Column]:
    """Columns of a frame with a number in the place of each struct, but for the key that the query groups by."""
    grouped = () if name == "right_rows" else ("primary_key",)
    return [
        F.when(F.col(c).isNotNull(), _digest(c, frame.schema[c].dataType)).alias(c)
        if c not in grouped and isinstance(frame.schema[c].dataType, StructType)
        else F.col(c)
        for c in columns
    ]


def _digest(column: str, dtype: DataType) -> Column:
    """Of a struct; a null in it counts, which `xxhash64` passes over: a group may have such a key."""
    assert isinstance(dtype, StructType)
    return F.xxhash64(column, *[F.col(column)[name].isNull() for name in dtype.names])


def to_view(frame: DataFrame, columns: Sequence[str | Column], *, small: bool) -> DataFrame:
    """Pick the columns that a query reads, for a view of its own.

    The idle constant guards the caller's cache: dropping its temporary view, as `sql` does in the end, would
    unpersist a persisted frame whose plan differs from the view's by no more than a choice of columns.
    """
    picked = frame.select(*columns, F.lit(None).alias("_"))
    return picked.coalesce(1).hint("shuffle_hash") if small else picked
