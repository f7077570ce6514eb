"""Lets one run at a time write a lake: by a lock of the operating system in a local lake, by a lease at a URI.

In a directory the lock keeps order, and safety does not depend on it: of two runs that both commit, the transaction
identifiers let one through. On S3 Spark's commits need it: docs/decisions/0007 says why.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from lakejoin.storage.errors import LakeBusy, LakeUnusable
from lakejoin.storage.lake.layout import LEASE, Lake
from lakejoin.storage.lake.lease import leased
from lakejoin.storage.lake.symlinks import check_links

_FILE = "_lock"
_TURN = "_lock_turn"
"""Lock of the next writer: a batch that waits for maintenance holds it; maintenance takes it before each step."""
_MAINTENANCE = " (maintenance)"


@contextmanager
def writing(lake: Lake, *, maintenance: bool = False) -> Iterator[None]:
    """Hold the lake for writing.

    Batches go first: `maintenance` holds the lake for a short step at a time, whose end a batch waits for beside a
    local lake, and is let in again when no batch waits. Raises `LakeBusy` where another run holds it, and
    `LakeUnusable`.
    """
    directory = lake.local
    if directory is None:
        with leased(lake.path(LEASE)):
            yield
        return
    check_links(lake)
    with _open(directory, _FILE) as file:
        if maintenance:
            with _turn(directory):
                _take(file, directory, _MAINTENANCE)
        else:
            _take_or_wait(file, directory)
        yield


def _take_or_wait(file: TextIO, directory: Path) -> None:
    """Take the lock; where maintenance has it, wait for the end of its step."""
    try:
        _take(file, directory)
    except LakeBusy:
        if not _holder(file).endswith(_MAINTENANCE):
            raise
        # whoever is next says so before the turn is another's, who would take it for maintenance and wait for its end
        with _turn(directory):
            _take(file, directory, wait=_holder(file).endswith(_MAINTENANCE))


def _take(file: TextIO, directory: Path, work: str = "", *, wait: bool = False) -> None:
    """Take the lock and say who has it. Raises `LakeBusy`."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        file.truncate(0)
        file.write(f"{os.getpid()}{work}")
        file.flush()
    except BlockingIOError:
        raise LakeBusy(
            f"{directory} is being written by process {_holder(file)}; one run at a time works on a lake. "
            "Wait for it to end, or end it, then run again."
        ) from None


def _holder(file: TextIO) -> str:
    file.seek(0)
    return file.read().strip() or "unknown"


@contextmanager
def _turn(directory: Path) -> Iterator[None]:
    with _open(directory, _TURN) as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _open(directory: Path, name: str) -> TextIO:
    """Open a file that carries a lock, and make the lake's directory where there is none."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / name).open("a+")
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    else:
        if os.access(directory, os.W_OK | os.X_OK):
            return file
        file.close()
        reason = os.strerror(errno.EACCES)
    raise LakeUnusable(
        f"{directory}: the lake cannot be written ({reason}); the user that runs Lakejoin needs the right to write "
        "there, or point `lake` at another directory"
    )
