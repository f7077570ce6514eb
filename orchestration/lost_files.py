"""Data files that Spark could not read: which table of the lake, or which source, lacks them, and the way on."""

import re
from collections.abc import Iterable
from urllib.parse import unquote

from orchestration.config import Pipeline
from storage.errors import LakejoinError
from storage.remedies import file_lost
from storage.source_errors import SourceBroken

_UNREADABLE = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "DELTA_FILE_NOT_FOUND")
"""What the names of Spark's and Delta's errors about files begin with."""
_FILE = re.compile(r"(?:file:/*(?=/)|(?=[a-z0-9]+://))(\S+?\.parquet)")


def lost_file(pipeline: Pipeline, messages: Iterable[str], *, planned: bool) -> LakejoinError | None:
    """Return the error for a file that is gone or damaged, if the messages of Spark's causes speak of one.

    `planned`: whether a batch that is planned needs it.
    """
    for message in messages:
        if any(f"[{name}" in message for name in _UNREADABLE) and (found := _FILE.search(message)):
            return _error(pipeline, unquote(found[1]), message, planned=planned)
    return None


def _error(pipeline: Pipeline, file: str, message: str, *, planned: bool) -> LakejoinError:
    table, _, name = file.rpartition("/")
    if table.startswith(f"{pipeline.lake.rstrip('/')}/"):
        return file_lost(table, name)
    if planned:
        return SourceBroken(
            f"{file}: cannot be read ({message}). Where it was whole when the batch was planned, put back what it had, "
            "then run again. Where it came so, write it anew, and give the batch up: "
            f"`lakejoin repair {pipeline.path} --replan`."
        )
    return SourceBroken(
        f"{file}: cannot be read ({message}). Nothing of it is planned yet: put back what it had, write it anew, or "
        "take it away, then run again."
    )
