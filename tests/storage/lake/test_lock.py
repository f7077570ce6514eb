"""One writer at a time works on a lake, and says so where it cannot."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from lakejoin.storage.errors import LakeBusy, LakeUnusable
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing

HOLD = """
import sys
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
with writing(Lake(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.failure(12)
@pytest.mark.failure(13)
def test_lake_that_another_process_writes_is_busy(lake: Path) -> None:
    """The message names the process; once it ended, however it did, the lake is free."""
    command = [sys.executable, "-c", HOLD, str(lake)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"

        with pytest.raises(LakeBusy, match=f"{lake} is being written by process {other.pid}; .* run again"):
            writing(Lake(str(lake))).__enter__()

        other.kill()
    with writing(Lake(str(lake))):
        assert (lake / "_lock").read_text() == str(os.getpid())


def test_lake_is_made_with_the_directories_above_it(tmp_path: Path) -> None:
    """Nobody has to prepare a place."""
    with writing(Lake(f"{tmp_path}/a/b/lake")):
        assert (tmp_path / "a/b/lake").is_dir()


def test_lake_that_cannot_be_made_is_not_writable(tmp_path: Path) -> None:
    """The message says where, why, and what to do."""
    (tmp_path / "file").touch()

    with (
        pytest.raises(
            LakeUnusable, match=f"{tmp_path}/file/lake: the lake cannot be written .*Not a dir.*right"
        ),
        writing(Lake(f"{tmp_path}/file/lake")),
    ):
        pytest.fail("held")


def test_lake_without_the_right_to_write_is_not_writable(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that was made by another user does not make the tables beside it ours."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    with pytest.raises(LakeUnusable, match="Permission denied"), writing(Lake(str(lake))):
        pytest.fail("held")


def test_batch_waits_for_a_step_of_maintenance_and_goes_before_the_next(lake: Path) -> None:
    """Maintenance that comes while the batch works is turned away, and so is a second batch."""
    script = HOLD.replace("writing(Lake(sys.argv[1]))", "writing(Lake(sys.argv[1]), maintenance=True)")
    command = [sys.executable, "-c", script, str(lake)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as step:
        assert step.stdout is not None
        assert step.stdout.readline() == "held\n"
        held, done = threading.Event(), threading.Event()

        def batch() -> None:
            with writing(Lake(str(lake))):
                held.set()
                done.wait(60)

        waiting = threading.Thread(target=batch)
        waiting.start()
        assert not held.is_set()
        step.kill()
        assert held.wait(60)
        for maintenance in (True, False):
            with pytest.raises(LakeBusy, match=f"process {os.getpid()};"):
                writing(Lake(str(lake)), maintenance=maintenance).__enter__()
        done.set()
        waiting.join()
    with writing(Lake(str(lake)), maintenance=True):
        assert (lake / "_lock").read_text() == f"{os.getpid()} (maintenance)"
