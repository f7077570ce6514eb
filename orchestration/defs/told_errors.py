"""Tells Dagster why work failed: of our own errors the message, of any other the traceback, in either case printable.

Dagster keeps the message of an exception and of its causes, shows it in its interface and logs it.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from dagster import Failure

from lakejoin.orchestration.spark_errors import WorkFailed
from lakejoin.storage.errors import (
    CatalogUnusable,
    LakeBusy,
    LakejoinError,
    LakeUnusable,
    SourceNotFound,
    SourceUnreadable,
)
from lakejoin.storage.spark.jars import JarsNotFound
from lakejoin.transforms.model.printable_text import printable, printable_lines

PASSING = (
    LakeBusy, LakeUnusable, CatalogUnusable, JarsNotFound, SourceNotFound, SourceUnreadable, WorkFailed
)  # fmt: skip
"""Errors that may be gone when a run is tried again; of the others somebody has to do something about the cause."""


@contextmanager
def told_errors() -> Iterator[None]:
    """Turn a `LakejoinError` into a `Failure` of the same lines; let other errors pass, if they can be shown as is."""
    try:
        yield
    except Failure:
        raise
    except LakejoinError as error:
        message = failure(type(error).__name__, error)
        raise message from (error if _is_printable(error) else None)
    except Exception as error:
        if _is_printable(error):
            raise
        raise Failure(printable_lines(_traceback(error))) from None


def failure(what: str, error: LakejoinError) -> Failure:
    """Return the failure of a piece of work with an error's lines as its description."""
    first, *more = error.lines or ("",)
    lines = "\n".join(map(printable, [f"{what}: {first}", *more]))
    return Failure(lines, allow_retries=isinstance(error, PASSING))


def _is_printable(error: BaseException) -> bool:
    shown = _traceback(error)
    return printable_lines(shown) == shown


def _traceback(error: BaseException) -> str:
    """What Dagster would show, tabs of Java's as spaces."""
    return "".join(traceback.format_exception(error)).expandtabs(4)
