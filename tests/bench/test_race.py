"""Small races: every contender's answers are right, with a hot customer, with a lake that was kept."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from bench.contest.check import WrongAnswer
from bench.contest.entry import Track, run_race
from bench.contest.race import Course
from bench.targets.results import read_results
from bench.targets.table import rows
from bench.tpch.answers import answer_file
from bench.workload import Size, make

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux has /proc")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workload whose second batch changes nothing but a customer with a tenth of all orders."""
    folder = tmp_path_factory.mktemp("workload")
    size = Size(0.001, 2, left_changes=20, right_changes=3, seed=1, hot_share=0.1, hot_every=2)
    with duckdb.connect() as connection:
        for _ in make(folder, size, connection):
            pass
    return folder


@pytest.mark.spark
@pytest.mark.slow
def test_race_is_right_for_all_and_goes_on_with_a_lake_that_was_kept(
    spark: SparkSession, workload: Path, tmp_path: Path
) -> None:
    """Answers are checked after each turn; who recomputes may sit out; a kept lake stays as it is."""
    kept = tmp_path / "kept"
    course = Course(2, keep=kept, rivals_every=2, maintain_every=2)
    names = ("ours", "spark", "duckdb", "merge")
    first = list(run_race(Track(spark, tmp_path / "first", "1g"), workload, names, course))
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*")}
    course = Course(1, lake=kept)
    again = list(run_race(Track(spark, tmp_path / "again", "1g"), workload, ["ours", "changelog"], course))

    turns = {(turn.batch, turn.contender) for turn in first}
    assert turns == {
        *[(0, name) for name in names if name != "merge"],
        *[(1, name) for name in ("ours", "merge")],
        *[(2, name) for name in names],
    }
    assert {(turn.batch, turn.contender) for turn in again} == {(1, "ours"), (1, "changelog")}
    assert {path: path.stat().st_mtime_ns for path in kept.rglob("*")} == before
    stored = {turn.contender: turn.stored for turn in first}
    assert set(stored["spark"]) == set(stored["duckdb"]) == {"left", "right", "joined"}
    assert stored["ours"]["joins/orders_with_customers/joined"] > 0
    changelogs = {
        turn.contender: turn.stored.get("joins/orders_with_customers/changelog", 0) for turn in again
    }
    assert changelogs["changelog"] > changelogs["ours"] == 0


@pytest.mark.spark
@pytest.mark.slow
def test_wrong_answer_ends_the_race(spark: SparkSession, workload: Path, tmp_path: Path) -> None:
    """It has no speed."""
    wrong = tmp_path / "workload"
    wrong.mkdir()
    for side in ("left", "right"):
        (wrong / side).symlink_to(workload / side)
    (wrong / "expected").mkdir()
    answer = answer_file(workload, 0).read_text().replace("left_count=1500", "left_count=1499")
    answer_file(wrong, 0).write_text(answer)

    with pytest.raises(WrongAnswer, match=r"1,500 rows .* expected 1,499"):
        list(run_race(Track(spark, tmp_path / "race", "1g"), wrong, ["ours"], Course(1)))


@pytest.mark.slow
def test_every_row_of_the_targets_is_measured_at_a_thousandth(tmp_path: Path) -> None:
    """Workloads, lakes, races and starts of all rows; what is wrong with one of them ends the command."""
    results = tmp_path / "results"
    subprocess.run(
        [
            sys.executable, ROOT / "bench/row.py", *map(str, range(1, 11)), "--size", "0.001", "--batches", "2",
            "--no-warm-up", "--driver-memory", "1g", "--data", tmp_path / "data", "--results", results,
        ],
        check=True,
    )  # fmt: skip

    found = rows(read_results(results), 0.001)
    assert len(found) == 12
    assert [cells[1] for cells in found if cells[4] == "not measured"] == []
    starts = next(results.glob("*-starts.json"))
    assert json.loads(starts.read_text())["java_in_empty_run"] is False
