"""One writer at a time: an operating system lock beside a local lake.

It is a matter of order, not of safety: two runs that both commit are told apart by their transaction identifiers.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from storage.errors import LakeBusy
from storage.lake import Lake

_FILE = "_lock"


@contextmanager
def writing(lake: Lake) -> Iterator[None]:
    """Hold the lake for writing. Raises `LakeBusy` where another process does; a lake at a URI has no lock."""
    directory = lake.local
    if directory is None:
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / _FILE).open("a+") as file:
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
