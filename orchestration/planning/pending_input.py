"""Which input is not read yet, and how it is cut into batches."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from orchestration.config import Input, Pipeline
from orchestration.planning.delta_versions import check_feed, together, unread_versions, versions_between
from storage.errors import SourceChanged, SourceError
from storage.lake.journal import Journal
from storage.lake.plan import Plan, PlannedFile, dates_of
from storage.sources.change_data_feed_log import FEED
from storage.sources.files import FileCounter, FoundFile, MeasuredFile, find_files, measure_file, stat_file

BatchBy = Literal["date", "all"]
Dates = tuple[date, date]


@dataclass(frozen=True)
class Group:
    """Parts of files that belong to one batch, unless it is cut by rows."""

    dates: tuple[date, ...]
    files: tuple[PlannedFile, ...]

    @property
    def records(self) -> int:
        """How many lines wait in the group, and about how many rows of Delta tables."""
        return sum(file.records for file in self.files)


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

    Files without a date, and those of days without new records, go with the first group. `dates` (inclusive) leaves
    out dated files beyond them, a source's `start` those before it. Raises `SourceError` for a file that changed
    after it was read, or that cannot be read.
    """
    found = [
        file
        for table in pipeline.inputs.values()
        for file in _unread(table, journal, now=now, counter=counter, dates=dates, settle=settle)
    ]
    waiting = [file for file in found if file.records]
    days = sorted({file.date for file in waiting if file.date is not None})
    if batch_by == "all" or not days:
        return [Group(tuple(days), tuple(found))] if waiting else []
    groups = [Group((day,), tuple(file for file in found if file.date == day)) for day in days]
    beside = [file for file in found if file.date not in days]
    groups[0] = replace(groups[0], files=(*beside, *groups[0].files))
    return groups


def _unread(
    table: Input,
    journal: Journal,
    *,
    now: datetime,
    counter: FileCounter | None,
    dates: Dates | None,
    settle: timedelta | None,
) -> Iterable[PlannedFile]:
    known = journal.known_files(table.name)
    if table.source.format == "delta":
        with blamed(table):
            yield from unread_versions(table, known.get(FEED))
        return
    for file in list_files(table, settle=settle_of(table, settle), now=now, since=table.source.start):
        if not is_wanted(file, table, dates):
            continue
        before = known.get(file.name)
        with blamed(table):
            part = measured_before(before) if before else None
            measured = measure_file(file, table.source.format, part, counter, table.source.file_limits)
        start = before.to_line if before else 0
        # A file without new records goes with a batch of others: so it is known next time, and need not wait.
        if measured.lines > start or not is_known(file, before):
            yield planned(table.name, measured, from_line=start)


def settle_of(table: Input, settle: timedelta | None) -> timedelta:
    """How long a run leaves a source's files alone: as it was told to, or else as the source declares."""
    return settle if settle is not None else table.source.settle or timedelta(0)


def planned(table: str, measured: MeasuredFile, *, from_line: int) -> PlannedFile:
    """The part of a file behind a line, as a plan has it."""
    return PlannedFile(table=table, **asdict(measured), from_line=from_line, to_line=measured.lines)


def is_known(file: FoundFile, before: PlannedFile | None) -> bool:
    """Whether the plan has the file as it is now; an empty one it need not have, for there is nothing to wait for."""
    if before is None:
        return file.size == 0
    return (file.size, file.modified) == (before.size, before.modified)


def list_files(
    table: Input, *, settle: timedelta, now: datetime, since: date | None = None
) -> list[FoundFile]:
    """List the files of a table's source, as `find_files` does. Raises `SourceError` with the table's name."""
    with blamed(table):
        return find_files(table.source.path, settle=settle, now=now, since=since)


@contextmanager
def blamed(table: Input) -> Iterator[None]:
    """Put the table's name before what is wrong with its source."""
    try:
        yield
    except SourceError as error:
        raise type(error)(f"table {table.name}: {error}") from error


def is_wanted(file: FoundFile, table: Input, dates: Dates | None) -> bool:
    """Whether a run over `dates` reads a file: undated ones always, dated ones from the source's `start` on."""
    if file.date is None:
        return True
    start = table.source.start
    return (start is None or start <= file.date) and (dates is None or dates[0] <= file.date <= dates[1])


def measured_before(file: PlannedFile) -> MeasuredFile:
    """What a plan says of the whole file that a part is of, to hold the file against."""
    return MeasuredFile(
        path=file.path, name=file.name, date=file.date, size=file.size, modified=file.modified,
        fingerprint=file.fingerprint, lines=file.lines, complete=file.complete, stray_quotes=file.stray_quotes,
        returns=file.returns,
    )  # fmt: skip


def check_unchanged(pipeline: Pipeline, plan: Plan) -> None:
    """Refuse to finish a batch whose input is no longer what was planned. Raises `SourceError`."""
    try:
        check_same(pipeline, plan)
    except SourceError as error:
        raise type(error)(
            f"{error}\nBatch {plan.batch} is under way and was planned with it. Where that cannot be had any more, "
            f"give the batch up: `lakejoin repair {pipeline.path} --replan`."
        ) from error


def check_same(pipeline: Pipeline, plan: Plan) -> None:
    """Refuse input that is no longer what a plan says of it. Raises `SourceError`."""
    for name, table in pipeline.inputs.items():
        _check_same(table, plan.files_of(name), thoroughly=True)


def check_read(table: Input, files: Sequence[PlannedFile], records: int | None) -> None:
    """Refuse what was read of planned files unless it is what was planned. Raises `SourceError`.

    A file may be cut, replaced or continued between its measuring and its reading. `records`: how many were read, None
    where not all of them were wanted.
    """
    _check_same(table, files, thoroughly=False)
    planned = sum(file.records for file in files)
    if records not in {None, planned} and table.source.format != "delta":
        raise SourceChanged(
            f"table {table.name}: {records:,} records were read of {_files(files)}, expected {planned:,} as planned; "
            "a file was changed while it was read. Put back what it had, then run again."
        )


def _check_same(table: Input, files: Iterable[PlannedFile], *, thoroughly: bool) -> None:
    for file in files:
        with blamed(table):
            if file.is_feed:
                check_feed(file, thoroughly=thoroughly)
                continue
            found = stat_file(file.path, file.name, file.date)
            measure_file(found, table.source.format, measured_before(file), None, table.source.file_limits)


def _files(files: Sequence[PlannedFile]) -> str:
    others = len(files) - 1
    return files[0].path + (f" and {others} more" if others else "")


def cut(group: Group, rows: int | None) -> list[Group]:
    """Cut a group into batches of about `rows` records, each with its share of every table's backlog.

    A version of a Delta table is never cut, and so is none that stands for a whole table.
    """
    if rows is None or group.records <= rows:
        return [Group(group.dates, together(group.files))]
    parts = -(-group.records // rows)
    tables = list(dict.fromkeys(file.table for file in group.files))
    pieces: list[list[PlannedFile]] = [[] for _ in range(parts)]
    for table in tables:
        files = [file for file in group.files if file.table == table]
        total = sum(file.records for file in files)
        bounds = [total * part // parts for part in range(parts + 1)]
        for part in range(parts):
            start, end = bounds[part], bounds[part + 1]
            if files[0].is_feed:
                pieces[part] += together(list(versions_between(files, start if part else -1, end)))
            else:
                pieces[part] += _between(files, start, end)
    pieces[0] += [file for file in group.files if file.from_line == file.to_line]
    return [Group(dates_of(piece), tuple(piece)) for piece in pieces if piece]


def _between(files: Sequence[PlannedFile], start: int, end: int) -> Iterable[PlannedFile]:
    """The parts of files that hold the records from `start` (exclusive) to `end` of their common count."""
    passed = 0
    for file in files:
        length = file.records
        first, last = max(start - passed, 0), min(end - passed, length)
        if first < last:
            yield replace(file, from_line=file.from_line + first, to_line=file.from_line + last)
        passed += length
