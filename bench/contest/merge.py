"""Who writes the changed rows of the join into it by hand: Delta's MERGE into a copy of our joined table.

It is told which rows of the join changed, and how, outside the clock: to find that out is what the rest of a batch
does. So its time is that of the last step alone, as Delta offers it.
"""

from collections.abc import Mapping
from pathlib import Path

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from bench.contest.contender import NOTHING_TOLD, Contender, Work
from bench.contest.copies import copy_linked
from bench.contest.current import GONE, KEYS, CurrentRows
from bench.contest.live import live_bytes


class Merge(Contender):
    """Merges into a table with the properties and the files that ours has after its first load."""

    name = "merge"
    loads = False

    def __init__(self, spark: SparkSession, current: CurrentRows, folder: Path, original: Path) -> None:
        self._spark, self._current, self._original = spark, current, original
        self._changed = folder / "changed.parquet"
        self.folder = folder / "joined"

    def start(self) -> None:
        """Copy our joined table as the first load left it."""
        copy_linked(self._original, self.folder)

    def prepare(self, batch: int) -> None:  # noqa: ARG002 - as every contender's
        """Write the rows of the join that the batch changes."""
        self._current.write_changed(self._changed)

    def run(self, batch: int) -> Work:  # noqa: ARG002 - as every contender's
        """Delete, update and insert by one MERGE."""
        changed, key = self._spark.read.parquet(str(self._changed)), KEYS["left"]
        rows = {name: f"changed.{name}" for name in changed.columns if name != GONE}
        (
            DeltaTable.forPath(self._spark, str(self.folder))
            .alias("joined")
            .merge(changed.alias("changed"), f"joined.{key} = changed.{key}")
            .whenMatchedDelete(f"changed.{GONE}")
            .whenMatchedUpdate(set=dict(rows))
            .whenNotMatchedInsert(f"NOT changed.{GONE}", values=dict(rows))
            .execute()
        )
        return NOTHING_TOLD

    def joined(self) -> DataFrame:
        """The copy as it is now."""
        return self._spark.read.format("delta").load(str(self.folder))

    def stored(self) -> Mapping[str, int]:
        """The copy alone."""
        return {"joined": live_bytes(self.folder)}
