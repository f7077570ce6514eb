"""Recomputing: both sides are read, joined, and written over what was there. By Spark, and by DuckDB."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contest.contender import NOTHING_TOLD, PREFIX, Contender, Work
from bench.contest.current import KEYS, CurrentRows, right_columns
from bench.contest.duck import Duck
from bench.contest.live import live_bytes
from bench.tpch.answers import change_file
from lakejoin.storage.spark.session import changed_settings

_OF_SPARK = {"spark.sql.files.openCostInBytes": "4194304", "spark.sql.maxSinglePartitionBytes": "128m"}
"""Where our session differs from Spark's defaults in what the plan of a large join depends on."""


def recompute_first(spark: SparkSession, workload: Path, table: Path) -> None:
    """Join the files of a workload's first load and write the rows as a Delta table."""
    left, right = (spark.read.parquet(str(change_file(workload, side, 0))).drop("op") for side in KEYS)
    _recompute(spark, left, right, table)


def _recompute(spark: SparkSession, left: DataFrame, right: DataFrame, table: Path) -> None:
    with changed_settings(spark, _OF_SPARK):
        renamed = right.select([F.col(name).alias(f"{PREFIX}{name}") for name in right.columns])
        joined = left.join(renamed, left["o_custkey"] == renamed[f"{PREFIX}c_custkey"], "left")
        joined.write.format("delta").mode("overwrite").save(str(table))


class SparkRecompute(Contender):
    """Joins two compacted Delta tables and writes over a third, in the session that also works for us."""

    name = "spark"
    recomputes = True

    def __init__(self, spark: SparkSession, workload: Path, current: CurrentRows, folder: Path) -> None:
        self._spark, self._workload, self._current = spark, workload, current
        self._sides = folder / "sides"
        self.folder = folder / "joined"

    def prepare(self, batch: int) -> None:
        """Make the Delta tables of current rows, and remove what is left of earlier ones and of earlier results."""
        if batch == 0:
            return
        self._current.write()
        shutil.rmtree(self._sides, ignore_errors=True)
        for side in KEYS:
            rows = self._spark.read.parquet(str(self._current.file(side)))
            rows.write.format("delta").save(str(self._sides / f"{side}-{batch}"))
        _remove_replaced(self.folder)

    def run(self, batch: int) -> Work:
        """Join and write; the first time from the files of the workload."""
        if batch == 0:
            recompute_first(self._spark, self._workload, self.folder)
        else:
            sides = [str(self._sides / f"{side}-{batch}") for side in KEYS]
            left, right = (self._spark.read.format("delta").load(side) for side in sides)
            _recompute(self._spark, left, right, self.folder)
        return NOTHING_TOLD

    def joined(self) -> DataFrame:
        """The table that was written last."""
        return self._spark.read.format("delta").load(str(self.folder))

    def stored(self) -> Mapping[str, int]:
        """Both sides as they were joined last, and the result: the least that a lake with the join holds."""
        sides = {table.name.partition("-")[0]: live_bytes(table) for table in self._sides.glob("*")}
        return {**sides, "joined": live_bytes(self.folder)}


class DuckRecompute(Contender):
    """Joins two Parquet files and writes over a third, in a process that stays warm."""

    name = "duckdb"
    recomputes = True

    def __init__(
        self,
        spark: SparkSession,
        workload: Path,
        current: CurrentRows,
        folder: Path,
        settings: Mapping[str, str | int],
    ) -> None:
        self._spark, self._workload, self._current = spark, workload, current
        self._duck = Duck(None, {**settings, "preserve_insertion_order": "false"})
        self.pid = self._duck.pid
        self.folder = folder

    def prepare(self, batch: int) -> None:
        """Have the current rows written, and remove the earlier result: so the new one counts as a new file."""
        if batch > 0:
            self._current.write()
        self._result.unlink(missing_ok=True)

    def run(self, batch: int) -> Work:
        """Join and write; the first time from the files of the workload."""
        left, right = (
            change_file(self._workload, side, 0) if batch == 0 else self._current.file(side) for side in KEYS
        )
        op = "exclude (op)" if batch == 0 else ""
        self._duck.execute(
            f"""copy (
                select * {op} from read_parquet('{left}')
                left join (select {right_columns()} from read_parquet('{right}')) on o_custkey = {PREFIX}c_custkey
            ) to '{self._result}' (format parquet)"""
        )
        return NOTHING_TOLD

    def joined(self) -> DataFrame:
        """The file that was written last."""
        return self._spark.read.parquet(str(self._result))

    def stored(self) -> Mapping[str, int]:
        """Files that were joined last, those of the base where there are no others, and the result."""
        files = {side: self._current.file(side) for side in KEYS} | {"joined": self._result}
        return {name: file.stat().st_size for name, file in files.items() if file.exists()}

    def close(self) -> None:
        """End DuckDB's process."""
        self._duck.close()

    @property
    def _result(self) -> Path:
        return self.folder / "joined.parquet"


def _remove_replaced(table: Path) -> None:
    """Remove the files of a Delta table that its newest version no longer has."""
    if not table.exists():
        return
    kept = {Path(uri.removeprefix("file://")).name for uri in DeltaTable(str(table)).file_uris()}
    for file in table.glob("*.parquet"):
        if file.name not in kept:
            file.unlink()
