"""One writer at a time works on a lake, and says so where it cannot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import LakeBusy, LakeUnusable
from storage.lake import Lake
from storage.lock import writing

HOLD = """
import sys
from storage.lake import Lake
from storage.lock import writing
with writing(Lake(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


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
