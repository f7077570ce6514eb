"""The rules as one native query: for each rule how many rows offend it, and a few of them.

With `small` frames the query is one Spark job: on frames of one partition and with hash joins it needs
neither a shuffle nor a broadcast, each of which adaptive execution runs as a job of its own. That holds
while `spark.sql.maxSinglePartitionBytes` is out of the way, for a join of a join is estimated at the
product of its sides.
"""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from expectations.rules import Kind, Rule, frames_for, rules_for

SAMPLES = 5
"""How many offending rows a verdict shows."""


def gate(frames: Mapping[str, DataFrame], kind: Kind, *, small: bool = False) -> DataFrame:
    """Hold frames against every rule of a join of this `how`, or of a table; nothing is run here.

    `frames`: those of `frames_for(kind)` with at least its columns, full or restricted to touched keys as
    `expectations.rules` says. Frames that the caller keeps persisted stay so. `small`: they fit in one task.
    Returns one row for each rule: `rule`, `offending` (how many rows) and `sample` (the first of them as JSON
    texts, an empty array when none). Raises `ValueError` for a missing frame.
    """
    wanted = frames_for(kind)
    if missing := wanted.keys() - frames.keys():
        found = ", ".join(sorted(frames)) or "none"
        needed = ", ".join(sorted(missing))
        raise ValueError(f"The rules of kind {kind!r} also need the frames {needed}; found: {found}.")
    read: dict[str, Any] = {
        name: _frame(frames[name], columns, small=small) for name, columns in wanted.items()
    }
    text = "\nUNION ALL\n".join(verdict_sql(rule) for rule in rules_for(kind))
    # Spark names a temporary view for each frame by a random UUID, so that threads do not meet.
    session: SparkSession = next(iter(read.values())).sparkSession
    return session.sql(text, **read)


def verdict_sql(rule: Rule) -> str:
    """Return the query that counts and samples a rule's offending rows; it reads frames as `{name}`."""
    return f"""
SELECT '{rule.name}' AS rule, count(*) AS offending,
  coalesce(min_by(line, line, {SAMPLES}), array()) AS sample
FROM (SELECT to_json(struct(*), map('ignoreNullFields', 'false')) AS line FROM ({rule.sql}))"""


def _frame(frame: DataFrame, columns: tuple[str, ...], *, small: bool) -> DataFrame:
    """Pick the columns that rules read.

    The idle constant guards the caller's cache: dropping its temporary view, as `sql` does in the end, would
    unpersist a persisted frame whose plan differs from the view's by no more than a choice of columns.
    """
    picked = frame.select(*columns, F.lit(None).alias("_"))
    return picked.coalesce(1).hint("shuffle_hash") if small else picked
