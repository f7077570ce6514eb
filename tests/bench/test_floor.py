"""The floor of a first load: the shortest program leaves the tables that the load leaves."""

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from bench.contest.least import least_tables
from bench.contest.ours import Ours
from bench.tpch.answers import change_file
from bench.workload import Size, make


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """Return a workload of 1,500 orders."""
    folder = tmp_path / "workload"
    with duckdb.connect() as connection:
        for _ in make(folder, Size(0.001, 1, left_changes=1, right_changes=1, seed=1), connection):
            pass
    return folder


@pytest.mark.spark
@pytest.mark.slow
def test_shortest_program_leaves_what_a_first_load_leaves(
    spark: SparkSession, workload: Path, tmp_path: Path
) -> None:
    """Every row of the five tables, with all its columns."""
    load = Ours(spark, workload, tmp_path / "ours")
    load.prepare(0)
    load.run(0)

    tables = least_tables(spark, workload)
    assert len(tables) == 5
    for name, rows in tables.items():
        left = spark.read.format("delta").load(str(load.folder / name))
        assert rows.columns == left.columns, name
        assert rows.exceptAll(left).isEmpty(), name
        assert left.exceptAll(rows).isEmpty(), name


@pytest.mark.spark
@pytest.mark.slow
def test_shortest_program_refuses_a_key_that_comes_twice(spark: SparkSession, workload: Path) -> None:
    """Its tables would be wrong."""
    file = change_file(workload, "left", 0)
    rows = spark.read.parquet(str(file)).localCheckpoint()
    file.unlink()
    rows.unionByName(rows.limit(1)).coalesce(1).write.parquet(str(file))
    with pytest.raises(ValueError, match=r"base\.parquet: a key comes twice"):
        least_tables(spark, workload)
