"""One writer at a time: an operating system lock beside a local lake, a lease in a lake at a URI.

On a directory it is a matter of order, not of safety: two runs that both commit are told apart by their transaction
identifiers. On S3 Spark's commits need it: docs/decisions/0007 says why.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from storage.errors import LakeBusy, LakeUnusable
from storage.lake import LEASE, Lake
from storage.lease import leased

_FILE = "_lock"


@contextmanager
def writing(lake: Lake) -> Iterator[None]:
    """Hold the lake for writing.

    Raises `LakeBusy` where another run holds it, and `LakeUnusable`.
    """
    directory = lake.local
    if directory is None:
        with leased(lake.path(LEASE)):
            yield
        return
    with _open(directory) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise LakeBusy(
                f"{directory} is being written by process {holder}; one run at a time works on a lake. "
                "Wait for it to end, or end it, then run again."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _open(directory: Path) -> TextIO:
    """Open the file that carries the lock, and make the lake's directory where there is none."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / _FILE).open("a+")
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
