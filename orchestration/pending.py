"""Which input is not read yet, and how it is cut into batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from orchestration.config import Pipeline, Table
from storage.files import FileCounter, MeasuredFile, find_files, measure_file, stat_file
from storage.plan import Journal, Plan, PlannedFile

BatchBy = Literal["date", "all"]
Dates = tuple[date, date]


@dataclass(frozen=True)
class Group:
    """Parts of files that belong to one batch, unless it is cut by rows."""

    dates: tuple[date, ...]
    files: tuple[PlannedFile, ...]

    @property
    def records(self) -> int:
        """How many lines wait in the group."""
        return sum(file.to_line - file.from_line for file in self.files)


def pending_groups(  # noqa: PLR0913 - the options of a run that choose its input
    pipeline: Pipeline,
    journal: Journal,
    *,
    now: datetime,
    counter: FileCounter | None,
    dates: Dates | None = None,
    batch_by: BatchBy = "date",
    settle: timedelta | None = None,
) -> list[Group]:
    """Unread input in the order in which it is to be worked off: one group a `{date}`, or one for all.

    Files without a date are read whole in the first group. `dates` (inclusive) leaves out dated files beyond them.
    Raises `SourceError` for a file that changed after it was read, or that cannot be read.
    """
    found = [
        file
        for table in pipeline.tables.values()
        for file in _unread(table, journal, now=now, counter=counter, dates=dates, settle=settle)
    ]
    undated = [file for file in found if file.date is None]
    days = sorted({file.date for file in found if file.date is not None})
    if batch_by == "all" or not days:
        return [Group(tuple(days), tuple(found))] if found else []
    groups = [Group((day,), tuple(file for file in found if file.date == day)) for day in days]
    groups[0] = replace(groups[0], files=(*undated, *groups[0].files))
    return groups


def _unread(
    table: Table,
    journal: Journal,
    *,
    now: datetime,
    counter: FileCounter | None,
    dates: Dates | None,
    settle: timedelta | None,
) -> Iterable[PlannedFile]:
    known = journal.known_files(table.name)
    wait = settle if settle is not None else table.source.settle or timedelta(0)
    for file in find_files(table.source.path, settle=wait, now=now):
        if dates and file.date is not None and not dates[0] <= file.date <= dates[1]:
            continue
        before = known.get(file.name)
        measured = measure_file(file, table.source.format, _measured(before) if before else None, counter)
        start = before.to_line if before else 0
        if measured.lines > start:
            yield PlannedFile(
                table=table.name, path=measured.path, name=measured.name, date=measured.date, size=measured.size,
                modified=measured.modified, fingerprint=measured.fingerprint, lines=measured.lines,
                complete=measured.complete, from_line=start, to_line=measured.lines,
            )  # fmt: skip


def _measured(file: PlannedFile) -> MeasuredFile:
    return MeasuredFile(
        path=file.path, name=file.name, date=file.date, size=file.size, modified=file.modified,
        fingerprint=file.fingerprint, lines=file.lines, complete=file.complete,
    )  # fmt: skip


def check_unchanged(pipeline: Pipeline, plan: Plan) -> None:
    """Refuse to finish a batch whose input is no longer what was planned. Raises `SourceError`."""
    for file in plan.files:
        source = pipeline.tables[file.table].source
        found = stat_file(file.path, file.name, file.date)
        measure_file(found, source.format, _measured(file), None)


def cut(group: Group, rows: int | None) -> list[Group]:
    """Cut a group into batches of about `rows` records, each with its share of every table's backlog."""
    if rows is None or group.records <= rows:
        return [group]
    parts = -(-group.records // rows)
    tables = list(dict.fromkeys(file.table for file in group.files))
    pieces: list[list[PlannedFile]] = [[] for _ in range(parts)]
    for table in tables:
        files = [file for file in group.files if file.table == table]
        total = sum(file.to_line - file.from_line for file in files)
        bounds = [total * part // parts for part in range(parts + 1)]
        for part in range(parts):
            pieces[part] += _between(files, bounds[part], bounds[part + 1])
    return [Group(_dates(piece), tuple(piece)) for piece in pieces if piece]


def _between(files: Sequence[PlannedFile], start: int, end: int) -> Iterable[PlannedFile]:
    """The parts of files that hold the records from `start` (exclusive) to `end` of their common count."""
    passed = 0
    for file in files:
        length = file.to_line - file.from_line
        first, last = max(start - passed, 0), min(end - passed, length)
        if first < last:
            yield replace(file, from_line=file.from_line + first, to_line=file.from_line + last)
        passed += length


def _dates(files: Iterable[PlannedFile]) -> tuple[date, ...]:
    return tuple(sorted({file.date for file in files if file.date is not None}))
