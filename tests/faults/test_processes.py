"""Real processes: killed at any moment, two at once, out of disk; and readers beside them.

`LAKEJOIN_KILLS` says how many runs are killed, each at a moment of its own.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.market import DAYS, JOINS, make_market
from faults.processes import Process, lakejoin, wait_for
from faults.shop import Content, content, copy_of, run, texts
from orchestration.config import Pipeline
from orchestration.spark_failures import BatchFailed
from storage.errors import LakeUnusable
from storage.lake import PLAN, PUBLISHED, Lake, joined_of
from storage.plan import Journal

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux has /proc"),
]

KILLS = int(os.environ.get("LAKEJOIN_KILLS", "3"))
ROUNDS = int(os.environ.get("LAKEJOIN_ROUNDS", "2"))
SEED = 20130107
MIB = 1 << 20


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with one finished batch and input for two more."""
    pipeline = make_market(tmp_path_factory.mktemp("market") / "market", DAYS[:1])
    run(pipeline, spark)
    return make_market(pipeline.path.parent)


@pytest.fixture(scope="module")
def undisturbed(market: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what the lake holds in the end."""
    pipeline = copy_of(market, tmp_path_factory.mktemp("undisturbed") / "market")
    assert run(pipeline, spark) == 2
    return content(pipeline, spark)


def commits_of(pipeline: Pipeline, table: str) -> int:
    """How many commits a table has."""
    return len(list((Path(pipeline.lake) / table / "_delta_log").glob("*.json")))


def started(pipeline: Pipeline, process: Process) -> bool:
    """Wait until a run has planned its first batch."""
    before = 1
    return wait_for(lambda: commits_of(pipeline, PLAN) > before, process)


def finish(pipeline: Pipeline) -> None:
    """Run to the end."""
    code, said = lakejoin(pipeline.path.parent, "run").end()
    assert code == 0, said


@pytest.mark.failure(19)
def test_run_that_is_killed_at_any_moment_is_finished_by_the_next(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """SIGKILL to the process and its JVM, between the first plan and the end: every table as if undisturbed."""
    moments, wrong = random.Random(SEED), []
    whole = copy_of(market, tmp_path / "whole")
    process = lakejoin(whole.path.parent, "run")
    assert started(whole, process)
    begun = time.monotonic()
    assert process.end()[0] == 0
    length = time.monotonic() - begun
    in_batches = 0
    for number in range(KILLS):
        pipeline = copy_of(market, tmp_path / f"killed-{number}")
        process = lakejoin(pipeline.path.parent, "run")
        assert started(pipeline, process), process.log.read_text()
        moment = moments.uniform(0, length)
        time.sleep(moment)
        process.kill()
        in_batches += commits_of(pipeline, PUBLISHED) < 3
        finish(pipeline)
        if content(pipeline, spark) != undisturbed:
            wrong.append((number, moment))
    with capsys.disabled():
        print(f"\n{KILLS} runs killed within {length:.1f} s, {in_batches} of them in a batch (seed {SEED})")  # noqa: T201
    assert wrong == []


@pytest.mark.failure(19)
def test_run_whose_jvm_is_killed_says_so_and_is_finished_by_the_next(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """As the kernel does when memory runs out: one line, no traceback."""
    pipeline = copy_of(market, tmp_path / "market")
    process = lakejoin(pipeline.path.parent, "run")
    assert started(pipeline, process), process.log.read_text()
    java = process.java()
    assert java is not None
    os.kill(java, signal.SIGKILL)

    code, said = process.end()

    assert code == 1, said
    assert "the JVM that Spark runs in ended in the middle" in said
    assert "then run again: it begins with this batch" in said
    assert "Traceback" not in said
    finish(pipeline)
    assert content(pipeline, spark) == undisturbed


@pytest.mark.failure(12)
@pytest.mark.failure(13)
@pytest.mark.parametrize(
    "options", [(), ("--from", "2024-01-03", "--to", "2024-01-03")], ids=["run", "backfill"]
)
def test_of_two_runs_at_once_one_says_who_works(
    options: tuple[str, ...], market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """The one that comes second ends with the other's process and what to do; both together do what one does."""
    pipeline = copy_of(market, tmp_path / "market")
    folder = pipeline.path.parent
    first = lakejoin(folder, "run")
    wait_for((folder / "lake" / "_lock").exists, first)
    second = lakejoin(folder, "run", *options)
    ends = {process.process.pid: process.end() for process in (first, second)}

    assert sorted(code for code, _ in ends.values()) == [0, 1], ends
    (winner,) = [pid for pid, (code, _) in ends.items() if code == 0]
    (said,) = [said for code, said in ends.values() if code == 1]
    assert f"is being written by process {winner}; one run at a time works on a lake" in said
    assert "Traceback" not in said
    finish(pipeline)
    found = content(pipeline, spark)
    if winner == first.process.pid:
        assert found == undisturbed
    assert {table: rows_of(found, table) for table in map(joined_of, JOINS)} == {
        table: rows_of(undisturbed, table) for table in map(joined_of, JOINS)
    }


def rows_of(found: Content, table: str) -> set[str]:
    """Rows of a joined table without the batch that wrote them, which other orders of days change."""
    return {row.partition('"_lj_batch"')[0] for row in found[table]}


@pytest.mark.failure(18)
def test_maintenance_beside_runs_changes_no_row(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Both at the same time, some rounds: neither fails, and every row is where it would be without maintenance."""
    wrong = []
    for number in range(ROUNDS):
        pipeline = copy_of(market, tmp_path / f"market-{number}")
        folder = pipeline.path.parent
        both = [lakejoin(folder, "maintain", "--all"), lakejoin(folder, "run")]
        ends = [process.end() for process in both]
        assert [code for code, _ in ends] == [0, 0], ends
        finish(pipeline)
        found = content(pipeline, spark)
        kept = {name: rows for name, rows in undisturbed.items() if found.get(name) != rows}
        if kept:
            wrong.append((number, sorted(kept)))
    assert wrong == []


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a file system of so many bytes on a folder; the test is skipped where that is not allowed."""
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
            check=False,
            capture_output=True,
        ).returncode
    ):
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.failure(19)
def test_batch_that_finds_the_disk_full_is_finished_when_there_is_room(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Whichever commit it hits: the message says so, no commit is half made, and what is there is built upon."""
    disk = tmp_path / "disk"
    said: list[str] = []
    with small_disk(disk, 16 * MIB):
        for room in range(0, 160, 16):
            pipeline = copy_of(market, disk / "market")
            free = shutil.disk_usage(disk).free
            filler = disk / "filler"
            filler.write_bytes(bytes(max(0, free - room * 1024)))
            try:
                run(pipeline, spark)
            except (BatchFailed, LakeUnusable) as error:
                said.append(str(error))
            filler.unlink()
            run(pipeline, spark)
            assert Journal(Lake(pipeline.lake)).unfinished is None
            assert content(pipeline, spark) == undisturbed, room
            shutil.rmtree(disk / "market")
    assert len(said) > 3
    assert all("No space left" in message or "disk" in message for message in said), said


@pytest.mark.failure(7)
def test_reader_sees_whole_batches_only(market: Pipeline, tmp_path: Path, spark: SparkSession) -> None:
    """Plain Delta readers of joined tables, over and over while batches run: each sees the rows after some batch."""
    pipeline = copy_of(market, tmp_path / "market")
    whole = copy_of(market, tmp_path / "whole")
    allowed: dict[str, list[list[str]]] = {join: [reading(whole, spark, join)] for join in JOINS}
    while run(whole, spark, batches=1):
        for join in JOINS:
            allowed[join].append(reading(whole, spark, join))
    process = lakejoin(pipeline.path.parent, "run")
    seen: dict[str, list[int]] = {join: [] for join in JOINS}
    while process.process.poll() is None:
        for join in JOINS:
            found = reading(pipeline, spark, join)
            assert found in allowed[join], (join, found)
            seen[join].append(allowed[join].index(found))
    assert process.end()[0] == 0
    for join in JOINS:
        seen[join].append(allowed[join].index(reading(pipeline, spark, join)))
        assert seen[join] == sorted(seen[join])
        assert (seen[join][0], seen[join][-1]) == (0, len(allowed[join]) - 1)


def reading(pipeline: Pipeline, spark: SparkSession, join: str) -> list[str]:
    """The rows of a joined table as Delta has them at this moment."""
    return texts(spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join))))


@pytest.mark.failure(7)
def test_show_reads_the_published_cut_while_a_batch_runs(market: Pipeline, tmp_path: Path) -> None:
    """Tables and joins fit together: every joined row shown has the customer that is shown."""
    pipeline = copy_of(market, tmp_path / "market")
    folder = pipeline.path.parent
    process = lakejoin(folder, "run")
    found: set[tuple[str, str]] = set()
    while process.process.poll() is None:
        ends = [lakejoin(folder, "show", name, "--limit", "100").end() for name in ("left", "customers")]
        assert [code for code, _ in ends] == [0, 0], ends
        found.add((ends[0][1], ends[1][1]))
    assert process.end()[0] == 0
    whole = copy_of(market, tmp_path / "whole")
    allowed = set()
    for batch in (1, 2, 3):
        if batch > 1:
            code, said = lakejoin(whole.path.parent, "run", "--batches", "1").end()
            assert code == 0, said
        ends = [
            lakejoin(whole.path.parent, "show", name, "--limit", "100").end()
            for name in ("left", "customers")
        ]
        allowed.add((ends[0][1], ends[1][1]))
    lefts, customers = ({pair[number] for pair in allowed} for number in (0, 1))
    assert {left for left, _ in found} <= lefts
    assert {customer for _, customer in found} <= customers
    assert found
