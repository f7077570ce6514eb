"""Replaces rows by Delta's own MERGE, which writes files anew where rows may not be marked as deleted."""

from collections.abc import Sequence

from delta.tables import DeltaMergeBuilder, DeltaTable
from pyspark.sql import DataFrame

from lakejoin.transforms.model.schemas import quoted


def replacing(
    rows: DataFrame, columns: Sequence[str], key: Sequence[str], gone: str, path: str, *, null_matches: bool
) -> DeltaMergeBuilder:  # fmt: skip
    """Return the MERGE that puts rows in the place of those with their keys, or takes these away.

    `rows`: the columns, and `gone`: true where a key has no row any more; at most one of each key. `null_matches`:
    whether a null in a key is a value like others.
    """
    every = {quoted(name): f"new.{quoted(name)}" for name in columns}
    return (
        DeltaTable.forPath(rows.sparkSession, path)
        .alias("old")
        .merge(rows.alias("new"), same_key(key, null_matches=null_matches))
        .whenMatchedDelete(f"new.{quoted(gone)}")
        .whenMatchedUpdate(set=dict(every))
        .whenNotMatchedInsert(f"NOT new.{quoted(gone)}", values=dict(every))
    )


def same_key(key: Sequence[str], *, null_matches: bool) -> str:
    """Return the condition that `old` and `new` have the same key."""
    equal = "<=>" if null_matches else "="
    return " AND ".join(f"old.{name} {equal} new.{name}" for name in map(quoted, key))
