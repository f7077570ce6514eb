"""Two runs of one lake in one process, and commits whose answer is lost."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import RLock
from unittest import mock

from deltalake.exceptions import CommitFailedError
from pyspark.errors import PySparkException

from lakejoin.storage.lake.layout import MAINTENANCE, PLAN, PUBLISHED


@contextmanager
def unlocked() -> Iterator[None]:
    """Let two runs of this process have one lake, as those of two machines may whose lease was lost."""
    with (
        mock.patch("lakejoin.orchestration.runs.run.writing", return_value=nullcontext()),
        # the session's settings belong to two processes, not to two threads
        mock.patch("lakejoin.storage.delta_table.commits._SESSION", RLock()),
    ):
        yield


def lost(table: str) -> Exception:
    """What a client gets instead of the answer to a commit that was made."""
    if table in {PLAN, PUBLISHED, MAINTENANCE}:
        return CommitFailedError("connection reset by peer")
    return PySparkException("java.io.IOException: connection reset by peer")
