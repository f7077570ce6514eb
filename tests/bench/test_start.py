"""Whether a process starts a JVM is seen, and one that fails is no measurement."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.contest.start import StartFailed, _Watch, empty_run

pytestmark = pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux has /proc")


def test_watch_sees_a_program_below_a_process_that_has_ended_since(tmp_path: Path) -> None:
    """A process is known by the name of its program."""
    java = tmp_path / "java"
    sleep = shutil.which("sleep")
    assert sleep is not None
    java.symlink_to(sleep)
    with _Watch(os.getpid()) as watch:
        subprocess.run(["sh", "-c", f"{java} 0.3; true"], check=True)

    assert {"sh", "java"} <= watch.seen


def test_run_that_fails_is_no_measurement(tmp_path: Path) -> None:
    """The message has its exit code."""
    with pytest.raises(StartFailed, match="exit code 2, expected 0 and nothing pending"):
        empty_run(tmp_path / "missing.yaml")
