"""Runs in processes of their own that end in the middle: killed at any moment, without their JVM, out of disk.

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

from engines import own_cache
from faults.processes import DAILY, commits_of, finish, lakejoin, started
from faults.shop import Content, content, copy_of, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.spark_errors import WorkFailed
from lakejoin.storage.errors import LakeUnusable
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PUBLISHED, Lake
from lakejoin.storage.spark.engine.sockets import answers, engine_folder

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux has /proc"),
]

KILLS = int(os.environ.get("LAKEJOIN_KILLS", "3"))
SEED = 20130107
MIB = 1 << 20


@pytest.fixture(params=["a JVM of its own", "a JVM that stays"])
def jvm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands have JVMs that end with them, or an engine."""
    if request.param == "a JVM of its own":
        yield
        return
    with own_cache() as home:
        monkeypatch.delenv("CI")
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        yield
        assert len(list(answers(engine_folder(home / "lakejoin"), "status"))) == 1


@pytest.mark.failure(19)
@pytest.mark.bad_input(40)
@pytest.mark.usefixtures("jvm")
def test_run_that_is_killed_at_any_moment_is_finished_by_the_next(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """SIGKILL to the process and its JVM, between the first plan and the end: every table as if undisturbed."""
    moments, wrong = random.Random(SEED), []
    whole = copy_of(market, tmp_path / "whole")
    process = lakejoin(whole.path.parent, *DAILY)
    assert started(whole, process)
    begun = time.monotonic()
    assert process.end()[0] == 0
    length = time.monotonic() - begun
    in_batches = 0
    for number in range(KILLS):
        pipeline = copy_of(market, tmp_path / f"killed-{number}")
        process = lakejoin(pipeline.path.parent, *DAILY)
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
@pytest.mark.bad_input(40)
@pytest.mark.usefixtures("jvm")
def test_run_whose_jvm_is_killed_says_so_and_is_finished_by_the_next(
    market: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """As the kernel does when memory runs out: one line, no traceback."""
    pipeline = copy_of(market, tmp_path / "market")
    process = lakejoin(pipeline.path.parent, *DAILY)
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
@pytest.mark.bad_input(39)
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
            except (WorkFailed, LakeUnusable) as error:
                said.append(str(error))
            filler.unlink()
            run(pipeline, spark)
            assert Journal(Lake(pipeline.lake)).unfinished is None
            assert content(pipeline, spark) == undisturbed, room
            shutil.rmtree(disk / "market")
    assert len(said) > 3
    assert all("No space left" in message or "disk" in message for message in said), said
