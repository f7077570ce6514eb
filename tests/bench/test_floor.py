"""The floor of a first load: the shortest program leaves the tables that the load leaves, and what all cost is kept."""

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from bench import floor
from bench.contest.check import WrongAnswer
from bench.contest.least import least_tables
from bench.contest.ours import Ours
from bench.contest.pieces import Stand, cost, pieces
from bench.targets.results import read_results
from bench.tpch.answers import answer_file, change_file
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


@pytest.mark.spark
@pytest.mark.slow
def test_run_keeps_what_each_piece_costs_in_new_processes_and_in_turn(workload: Path, tmp_path: Path) -> None:
    """Row 6 of the targets is made of it."""
    file = tmp_path / "results" / "floor.json"

    code = floor.main(["--workload", str(workload), "--times", "1", "--processes", "1", "--json", str(file)])

    (result,) = read_results(file.parent)
    assert code == 0
    assert result.has_costs("recompute", "sources", "load")
    assert result.left_rows == 1_500
    assert not list(workload.parent.glob("bench-*"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["recompute", "sources", "load"])
def test_piece_with_a_wrong_joined_table_has_no_cost(workload: Path, kind: str) -> None:
    """Each is held against the answer of the workload."""
    stand = Stand(workload, None, "local[2]", "1g")
    answer = answer_file(workload, 0)
    answer.write_text(answer.read_text().replace("left_count=", "left_count=1"))
    ((name, piece),) = pieces([kind], stand).items()

    with pytest.raises(WrongAnswer, match=kind):
        cost(name, piece, stand)


def test_pieces_of_a_kept_lake_are_refused_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what is missing."""
    with pytest.raises(SystemExit) as ended:
        floor.main(["tables", "--workload", "any"])

    assert ended.value.code == 2
    assert "name it with --lake" in capsys.readouterr().err
