"""What is measured of whom: the processes of a contender, and none of another's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.contest.cost import Scope, is_commit, measure
from bench.contest.processes import family

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux has /proc")


@pytest.fixture
def child() -> Iterator[int]:
    """Yield the process identifier of a child that waits."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.communicate()


def test_family_leaves_out_the_branch_of_another_contender(child: int) -> None:
    """A process that works for somebody else is not charged to us."""
    assert child in family(os.getpid())
    assert child not in family(os.getpid(), without=[child])


def test_measure_counts_only_what_the_work_did(tmp_path: Path) -> None:
    """Files that were there before are not counted; new ones are, and commits among them."""
    (tmp_path / "before").write_text("12345")
    log = tmp_path / "_delta_log"
    log.mkdir()

    def work() -> str:
        (log / f"{0:020}.json").write_text("{}")
        (tmp_path / "after").write_text("123")
        return "done"

    result, cost = measure(work, Scope(os.getpid(), (), tmp_path, jobs=iter([4, 6]).__next__))

    assert result == "done"
    assert (cost.files_written, cost.file_bytes, cost.delta_commits, cost.spark_jobs) == (2, 5, 1, 2)
    assert cost.written_bytes >= 5
    assert cost.peak_python_bytes > 0
    assert cost.peak_java_bytes == 0 or cost.peak_java_bytes < cost.peak_memory_bytes


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("t/_delta_log/00000000000000000007.json", True),
        ("t/_delta_log/00000000000000000010.checkpoint.parquet", False),
        ("t/_delta_log/00000000000000000007.crc", False),
        ("t/00000000000000000007.json", False),
    ],
)
def test_commit_is_a_numbered_json_file_of_a_log(path: str, expected: bool) -> None:
    """Checkpoints and checksums are files, but no commits."""
    assert is_commit(Path(path)) is expected
