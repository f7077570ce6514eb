"""Ends a batch, or maintenance, at one of its commits: they are found by counting them as they happen."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal
from unittest import mock

from deltalake import DeltaTable
from deltalake.table import TableOptimizer
from pyspark.sql.readwriter import DataFrameWriter

from orchestration import upkeep
from storage import bookkeeping
from storage.delta import DeltaTransaction

When = Literal["before", "after"]


class Crash(BaseException):
    """The process ends here; nothing may catch it and go on."""


class Commits:
    """Counts the commits of whatever runs, and refuses them from a chosen one on."""

    def __init__(self, last: int | None = None, when: When = "after") -> None:
        self.made: list[str] = []
        self._last, self._when = last, when
        self._lock = threading.Lock()

    def wrap(self, commit: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        """Return the commit, counted. Commits take turns: with the process, all its threads end at one point."""

        def counted(*args: Any, **options: Any) -> Any:
            with self._lock:
                if self._last is not None and len(self.made) > self._last:
                    raise Crash
                self.made.append(name(*args, **options))
                reached = len(self.made) - 1 == self._last
                if reached and self._when == "before":
                    raise Crash
                result = commit(*args, **options)
                if reached:
                    raise Crash
                return result

        return counted


@contextmanager
def commits(last: int | None = None, when: When = "after") -> Iterator[Commits]:
    """Count every commit to Delta in this process; crash before or after the one with the number `last`, from 0."""
    counting = Commits(last, when)
    with (
        mock.patch.object(
            DataFrameWriter, "save", counting.wrap(DataFrameWriter.save, lambda _, path, **__: _table(path))
        ),
        mock.patch.object(
            DeltaTransaction,
            "_commit",
            counting.wrap(DeltaTransaction._commit, lambda delta, *_: _table(delta.path)),
        ),
        mock.patch.object(
            bookkeeping,
            "write_deltalake",
            counting.wrap(bookkeeping.write_deltalake, lambda path, *_, **__: _table(path)),
        ),
    ):
        yield counting


@contextmanager
def steps(last: int | None = None, when: When = "after") -> Iterator[Commits]:
    """Count, beside the commits, whatever else maintenance changes on disk; crash as `commits` does."""
    with commits(last, when) as counting, ExitStack() as patches:
        for module, name in (
            (TableOptimizer, "compact"), (DeltaTable, "create_checkpoint"),
            (upkeep, "state_retention"), (upkeep, "vacuum"), (upkeep, "checkpoint"), (upkeep, "clear"),
        ):  # fmt: skip
            counted = counting.wrap(getattr(module, name), _named(name))
            patches.enter_context(mock.patch.object(module, name, counted))
        yield counting


def _named(name: str) -> Callable[..., str]:
    """Steps of Spark's tables have the path as second argument."""
    return lambda *arguments, **_: " ".join(
        [name, *[_table(a) for a in arguments[1:2] if isinstance(a, str)]]
    )


def _table(path: str) -> str:
    return path.rpartition("lake/")[2]
