"""Ends a batch, or maintenance, at one of its commits: they are found by counting them as they happen."""

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from delta.tables import DeltaMergeBuilder
from delta.tables import DeltaTable as SparkTable
from deltalake import DeltaTable
from deltalake.table import TableOptimizer
from pyspark.sql.readwriter import DataFrameWriter

from faults.halfway import leave_files, leave_files_of_command
from lakejoin.orchestration.maintenance import steps as maintenance_steps
from lakejoin.orchestration.runs import abandon
from lakejoin.storage.delta_table import alignment
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.delta_table.uncommitted_files import Written
from lakejoin.storage.lake import bookkeeping
from lakejoin.storage.state import joined_table, result_histories

When = Literal["before", "during", "after"]
"""Before anything of the commit is written, when its data files are and the log is not, when it is made."""
WHEN: tuple[When, ...] = ("before", "during", "after")
Point = int | str
"""The number of a commit, from 0, or the table that it is the first one to."""
Call = Callable[..., Any]


class Crash(BaseException):
    """The process ends here; nothing may catch it and go on."""


class Commits:
    """Counts the commits of whatever runs, and at a chosen one does something else.

    Log entries take turns, and with a process all its threads end at one point: none comes after it.
    """

    def __init__(self, point: Point | None, when: When, act: Callable[[], None]) -> None:
        self.made: list[str] = []
        """Tables of the commits, in their order; the last one is that of the point, made or not."""
        self.reached = False
        """Whether the point was reached."""
        self._over = False
        """Whether the process has ended at the point."""
        self._apart = False
        """Whether what runs now is not to be counted."""
        self._point, self._when, self._act = point, when, act
        self._turn = threading.RLock()
        self._mine = threading.local()
        self._unwritten: list[Path] = []
        """Files that would not be there, had the process ended where it did."""
        self._files: dict[DeltaTransaction, list[Path]] = {}
        """What transactions have written, perhaps in another thread than commits it."""

    def whole(self, commit: Call, name: Callable[..., str], part: Call | None = None) -> Call:
        """A call that makes one commit, counted. `part`: leaves what the call has written before its log entry."""

        def counted(*args: Any, **options: Any) -> Any:
            if not self._begin(name(*args, **options)):
                return commit(*args, **options)
            with self._ending():
                if self._is_point("during"):
                    if part is not None:
                        part(*args, **options)
                    self._do()
                return commit(*args, **options)

        return counted

    def written(self, write: Call) -> Call:
        """`DeltaTransaction.write`: may come long before the commit that its files are for, or without one."""

        def counted(delta: DeltaTransaction, rows: Any) -> Any:
            if self._over:
                raise Crash
            actions = write(delta, rows)
            self._files[delta] = [Path(delta.path, name) for name in delta.names(actions)]
            return actions

        return counted

    def removed(self, remove: Call) -> Call:
        """`Written.remove`: a process that has ended removes nothing."""

        def counted(written: Written) -> None:
            if not self._over:
                remove(written)

        return counted

    def remove_unwritten(self) -> None:
        """Remove the files that would not be there; only now, for threads of the run may have been reading them."""
        for file in self._unwritten:
            file.unlink()

    def committed(self, commit: Call) -> Call:
        """`DeltaTransaction._commit`: its data files are written, and go again where it ends before them."""

        def counted(delta: DeltaTransaction, *args: Any) -> Any:
            if not self._begin(_table(delta.path), self._files.get(delta, ())):
                return commit(delta, *args)
            with self._ending():
                if self._is_point("during"):
                    self._do()
                return commit(delta, *args)

        return counted

    def told(self, call: Call) -> Call:
        """A call with a `path`, which Delta's commands within it do not tell."""
        signature = inspect.signature(call)

        def telling(*args: Any, **options: Any) -> Any:
            self._mine.path = signature.bind(*args, **options).arguments["path"]
            try:
                return call(*args, **options)
            finally:
                del self._mine.path

        return telling

    def command(self, execute: Call) -> Call:
        """A command of Delta's public API that makes one commit, within a call that is `told`."""

        def path() -> str:
            return getattr(self._mine, "path", "")

        def part(*args: Any) -> None:
            leave_files_of_command(path(), lambda: execute(*args))

        return self.whole(execute, lambda *_: _table(path()), part)

    def _begin(self, name: str, files: Sequence[Path] = ()) -> bool:
        """Enter a commit, of which these files are written already; returns whether it counts."""
        if self._apart:
            return False
        self._turn.acquire()
        if self._over:
            self._turn.release()
            raise Crash
        self._mine.point = not self.reached and self._point in {len(self.made), name}
        self.reached |= self._mine.point
        self.made.append(name)
        if self._is_point("before"):
            self._unwritten += files
            try:
                self._do()
            except BaseException:
                self._leave()
                raise
        return True

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """The end of a commit: it is made when the block is over."""
        try:
            yield
            if self._is_point("after"):
                self._do()
        finally:
            self._leave()

    def _is_point(self, when: When) -> bool:
        return bool(self._mine.point) and self._when == when

    def _leave(self) -> None:
        self._mine.point = False
        self._turn.release()

    def _do(self) -> None:
        """Do at the point what was asked for."""
        self._apart = True
        try:
            self._act()
        except Crash:
            self._over = True
            raise
        finally:
            self._apart = False


def _crash() -> None:
    raise Crash


@contextmanager
def commits(
    point: Point | None = None, when: When = "after", act: Callable[[], None] = _crash
) -> Iterator[Commits]:
    """Count every commit to Delta in this process; crash, or `act`, before, in or after the one at `point`.

    What `act` commits is not counted; where it does not crash, what it came into goes on.
    """
    counting = Commits(point, when, act)
    calls: tuple[tuple[Any, str, Call], ...] = (
        (DataFrameWriter, "save", counting.whole(DataFrameWriter.save, _saved, _part_of_save)),
        (DeltaTransaction, "write", counting.written(DeltaTransaction.write)),
        (DeltaTransaction, "_commit", counting.committed(DeltaTransaction._commit)),
        (Written, "remove", counting.removed(Written.remove)),
        (bookkeeping, "write_deltalake", counting.whole(_RECORD, _recorded, _part_of_record)),
        (joined_table, "merge", counting.told(joined_table.merge)),
        (result_histories, "merge", counting.told(result_histories.merge)),
        (DeltaMergeBuilder, "execute", counting.command(DeltaMergeBuilder.execute)),
        (alignment, "_alter", counting.whole(alignment._alter, lambda _, path, __: _table(path))),
        (abandon, "remove_batch", counting.told(abandon.remove_batch)),
        (SparkTable, "delete", counting.command(SparkTable.delete)),
    )
    with ExitStack() as patches:
        for module, name, call in calls:
            patches.enter_context(mock.patch.object(module, name, call))
        patches.callback(counting.remove_unwritten)
        yield counting


@contextmanager
def all_commits(lake: str) -> Iterator[Commits]:
    """Count the commits of what nothing disturbs; those and no others are in the logs of the lake's tables then.

    So none is made in another way than those that are counted, and crashed at.
    """
    before = _versions(lake)
    with commits() as counting:
        yield counting
    made = Counter(_versions(lake))
    made.subtract(before)
    assert Counter(counting.made) == +made, "a commit was made elsewhere than where they are counted"


def _versions(lake: str) -> Counter[str]:
    """How many versions each table of a lake has had."""
    last = Counter[str]()
    for file in Path(lake).rglob("_delta_log/*.json"):
        table = str(file.parent.parent.relative_to(lake))
        last[table] = max(last[table], int(file.stem) + 1)
    return last


@contextmanager
def steps(last: int | None = None, when: When = "after") -> Iterator[Commits]:
    """Count, beside the commits, whatever else maintenance changes on disk; crash as `commits` does."""
    with commits(last, when) as counting, ExitStack() as patches:
        for module, name in (
            (TableOptimizer, "compact"), (DeltaTable, "create_checkpoint"),
            (maintenance_steps, "state_retention"), (maintenance_steps, "vacuum"),
            (maintenance_steps, "checkpoint"), (maintenance_steps, "clear"),
        ):  # fmt: skip
            counted = counting.whole(getattr(module, name), _named(name))
            patches.enter_context(mock.patch.object(module, name, counted))
        yield counting


def _named(name: str) -> Callable[..., str]:
    """Steps of Spark's tables have the path as second argument."""
    return lambda *arguments, **_: " ".join(
        [name, *[_table(a) for a in arguments[1:2] if isinstance(a, str)]]
    )


def _saved(_: DataFrameWriter, path: str, **__: Any) -> str:
    return _table(path)


def _recorded(place: str | DeltaTable, *_: Any, **__: Any) -> str:
    return _table(_path(place))


_SAVE, _RECORD = DataFrameWriter.save, bookkeeping.write_deltalake


def _part_of_save(writer: DataFrameWriter, path: str, **_: Any) -> None:
    leave_files(path, lambda scratch: _SAVE(writer, scratch))


def _part_of_record(place: str | DeltaTable, rows: Any, **options: Any) -> None:
    leave_files(_path(place), lambda scratch: _RECORD(scratch, rows, **options))


def _path(place: str | DeltaTable) -> str:
    return place if isinstance(place, str) else place.table_uri.removeprefix("file://").rstrip("/")


def _table(path: str) -> str:
    return path.rpartition("lake/")[2]
