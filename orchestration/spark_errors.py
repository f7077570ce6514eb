"""Explains failures of Spark to those who can act on them: files, disk, memory, a JVM that ended.

Only what is known by its cause is explained; anything else may be a mistake of ours and keeps its traceback. A file
that is gone or damaged becomes the error of the table or source that it belongs to.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from subprocess import TimeoutExpired
from typing import Any
from urllib.parse import unquote

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.errors import LakejoinError, SourceBroken, file_lost
from lakejoin.storage.lake.plan import Plan

_REMEDIES = {
    "java.lang.OutOfMemoryError": "Give Spark more memory (`spark: {conf: {spark.driver.memory: 8g}}`) or smaller "
    "batches (`--batch-rows`)",
    "java.io.IOException": "See that the disk has room, and that the user that runs Lakejoin may read the sources and "
    "write the lake",
}
_ENDED = (
    "the JVM that Spark runs in ended in the middle: it was killed, or the machine had no memory left for it. See what "
    "ended it (`dmesg`), or give it less (`spark: {conf: {spark.driver.memory: 2g}}`)"
)
_ENDING = 5
"""Seconds that a process may take to be gone."""
_MESSAGE = 500
"""Characters of a cause that are repeated."""
_UNREADABLE = ("FAILED_READ_FILE", "PATH_NOT_FOUND", "DELTA_FILE_NOT_FOUND")
"""What the names of Spark's and Delta's errors about files begin with."""
_FILE = re.compile(r"(?:file:/*(?=/)|(?=[a-z0-9]+://))(\S+?\.parquet|\S+?(?=\.?(?:\s|$)))")
"""A file in a message, which may be at its end."""


class WorkFailed(LakejoinError):
    """Spark could not do what was asked for, for a reason outside Lakejoin."""


class BatchFailed(WorkFailed):
    """A batch could not be worked off for such a reason; it is planned, and the next run finishes it."""


@contextmanager
def explained(pipeline: Pipeline, work: Plan | str) -> Iterator[None]:
    """Turn Spark's known errors into `WorkFailed`, `LakeInconsistent` and `SourceBroken`.

    `work`: the batch that is worked off, or in a word what else is done to the lake, such as `maintenance`.
    """
    quiet_query_context()
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        # a JVM that is killed closes its connections before its process is gone
        lost = isinstance(error, Py4JNetworkError | ConnectionError)
        if has_ended(_ENDING if lost else 0):
            raise _told_before(error) or _failed(pipeline, work, _ENDED) from error
        if not isinstance(error, Py4JJavaError | PySparkException):
            raise
        causes = _causes(error)
        planned = isinstance(work, Plan)
        messages = [reason_of(str(cause.getMessage())) for cause in causes]
        if gone := lost_file(pipeline, messages, planned=planned):
            raise gone from error
        reason = _environment(causes)
        if reason is None:
            raise
        raise _failed(pipeline, work, reason) from error


def _failed(pipeline: Pipeline, work: Plan | str, reason: str) -> WorkFailed:
    if isinstance(work, str):
        return WorkFailed(f"{work} of {pipeline.lake} failed: {reason}, then run it again.")
    return BatchFailed(
        f"batch {work.batch} of {pipeline.lake} failed: {reason}, then run again: it begins with this batch."
    )


def _told_before(error: BaseException) -> WorkFailed | None:
    """What was told of the JVM's end already, where this error is only that nothing could be freed behind it."""
    before = error.__context__
    while before is not None and not isinstance(before, WorkFailed):
        before = before.__context__
    return before


def has_ended(within: float = 0) -> bool:
    """Whether the JVM that this process started for Spark is gone, or is within so many seconds."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - PySpark has no other way to ask
    process = getattr(gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(within)
    except TimeoutExpired:
        return False
    return True


def quiet_query_context() -> None:
    """Keep PySpark from logging an error, as JSON with a traceback, that is about to be explained."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True


def _causes(error: Exception) -> list[Any]:
    """The Java exceptions behind an error, the one that began it last."""
    cause: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    causes: list[Any] = []
    while cause is not None and len(causes) < 20:
        causes.append(cause)
        cause = cause.getCause()
    return causes


def _environment(causes: list[Any]) -> str | None:
    for cause in reversed(causes):
        for kind, remedy in _REMEDIES.items():
            if _is(cause, kind):
                return f"{reason_of(cause.toString())[:_MESSAGE]}. {remedy}"
    return None


def _is(cause: Any, kind: str) -> bool:
    context = SparkSession.active().sparkContext
    return bool(is_instance_of(context._gateway, cause, kind))  # noqa: SLF001 - PySpark names no other way


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


def reason_of(error: PySparkException | str) -> str:
    """What Spark, or a message of it, says is wrong: without its code, hints and plans."""
    return str(error).split("\n", maxsplit=1)[0].partition(" SQLSTATE")[0]
