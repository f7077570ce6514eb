"""Finds which input is not read yet, and splits it into batches."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Input, Pipeline
from lakejoin.orchestration.planning.file_order import check_file_order
from lakejoin.storage.errors import SourceChanged, SourceError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.plan import Plan, dates_of
from lakejoin.storage.sources.files.source_files import Dates
from lakejoin.storage.sources.formats.source_format import Look
from lakejoin.storage.sources.planned.planned_file import PlannedFile, between, side_by_side, together
from lakejoin.storage.sources.planned.snapshots import check_new, snapshots

BatchBy = Literal["size", "date", "all"]


@dataclass(frozen=True)
class Group:
    """Parts of files that belong to one batch, unless it is cut by rows."""

    dates: tuple[date, ...]
    files: tuple[PlannedFile, ...]

    @property
    def records(self) -> int:
        """How many lines wait in the group, and about how many rows of Delta tables."""
        return sum(file.records for file in self.files)

    def by_date(self) -> list["Group"]:
        """Split the group into its days. Files without a date, and those of no day of it, go with the first."""
        groups = [Group((day,), tuple(file for file in self.files if file.date == day)) for day in self.dates]
        beside = [file for file in self.files if file.date not in self.dates]
        groups[0] = replace(groups[0], files=(*beside, *groups[0].files))
        return groups


def pending_groups(  # noqa: PLR0913 - the options of a run that choose its input
    pipeline: Pipeline,
    journal: Journal,
    *,
    now: datetime,
    spark: SparkSession | None,
    dates: Dates | None = None,
    batch_by: BatchBy = "date",
    most: int = 0,
    settle: timedelta | None = None,
) -> list[Group]:
    """Unread input in the order in which it is to be worked off.

    There is one group for each `{date}`, or one for all; by size, one for days that follow each other and have at most
    `most` records together. Files without a date, and those of days without new records, go with the first group. No
    group has two snapshots of a table: each is compared with the rows that the one before it left. `dates` (inclusive)
    leaves out dated files beyond them, a source's `start` those before it. Raises `SourceError` for a file that changed
    after it was read, or that cannot be read.
    """
    look = Look(now, settle, dates)
    found = [file for table in pipeline.inputs.values() for file in _unread(table, journal, look, spark)]
    # a snapshot without records says that all rows are gone
    waiting = [file for file in found if file.waits or file.table in pipeline.snapshot_tables]
    days = sorted({file.date for file in waiting if file.date is not None})
    groups = [Group(tuple(days), tuple(found))] if waiting else []
    if batch_by != "all" and days:
        groups = groups[0].by_date()
    if batch_by == "size" and not _meets_what_is_there(pipeline):
        groups = _together(groups, most, pipeline.snapshot_tables)
    return [one for group in groups for one in _by_snapshots(pipeline, group)]


def _meets_what_is_there(pipeline: Pipeline) -> bool:
    """Whether a stream's records meet what a table has after their batch: a day's must not meet a later day's rows."""
    return any(not pipeline.stream_join_spec(name).as_of for name in pipeline.joins_of_streams)


def _together(groups: Sequence[Group], most: int, snapshots: Collection[str]) -> list[Group]:
    """Put groups that follow each other together, up to so many records, and never two snapshots of a table."""
    found: list[Group] = []
    for group in groups:
        last = found[-1] if found else None
        if last and last.records + group.records <= most and not _both_have(last, group, snapshots):
            found[-1] = Group((*last.dates, *group.dates), (*last.files, *group.files))
        else:
            found.append(group)
    return found


def _both_have(one: Group, other: Group, tables: Collection[str]) -> bool:
    return any(
        all(any(file.table == name for file in group.files) for group in (one, other)) for name in tables
    )


def _by_snapshots(pipeline: Pipeline, group: Group) -> list[Group]:
    """Split a group so that none has two snapshots of a table; the first has all that is no snapshot."""
    pieces = [[file for file in group.files if file.table not in pipeline.snapshot_tables]]
    for name in pipeline.snapshot_tables:
        own = [file for file in group.files if file.table == name]
        for number, files in enumerate(snapshots(pipeline.tables[name].source_spec.path, own)):
            pieces += [[] for _ in range(number + 1 - len(pieces))]
            pieces[number] += files
    if len(pieces) == 1:
        return [group]
    return [Group(dates_of(piece), tuple(piece)) for piece in pieces]


def _unread(table: Input, journal: Journal, look: Look, spark: SparkSession | None) -> list[PlannedFile]:
    known = journal.known_files(table.name)
    with blamed(table):
        unread = list(table.source_format.unread(table.source_spec, known, look, spark))
        check_file_order(table, known, unread)
        if table.source.is_snapshot:
            check_new(table.source_spec.path, unread, known)
        return unread


def new_parts(pipeline: Pipeline, files: Sequence[PlannedFile]) -> Iterator[tuple[Input, list[PlannedFile]]]:
    """Yield the tables and streams with the parts of files that have new records for them."""
    for name, table in pipeline.inputs.items():
        if parts := [file for file in files if file.table == name and file.records]:
            yield table, parts


@contextmanager
def blamed(table: Input) -> Iterator[None]:
    """Put the table's name before what is wrong with its source."""
    try:
        yield
    except SourceError as error:
        raise type(error)(f"table {table.name}: {error}") from error


def check_unchanged(pipeline: Pipeline, plan: Plan) -> None:
    """Refuse to finish a batch whose input is no longer what was planned. Raises `SourceError`."""
    try:
        check_same(pipeline, plan)
    except SourceError as error:
        raise type(error)(
            *error.lines,
            f"Batch {plan.batch} is under way and was planned with it. Where that cannot be had any more, "
            f"give the batch up: `lakejoin repair {pipeline.path} --replan`.",
        ) from error


def check_same(pipeline: Pipeline, plan: Plan) -> None:
    """Refuse input that is no longer what a plan says of it. Raises `SourceError`."""
    for name in pipeline.inputs:
        if files := plan.files_of(name):
            table = pipeline.read_by(plan.kind, name)
            with blamed(table):
                table.source_format.check_same(table.source_spec, files, thoroughly=True)


def check_read(table: Input, files: Sequence[PlannedFile], records: int | None) -> None:
    """Refuse what was read of planned files unless it is what was planned. Raises `SourceError`.

    A file may be truncated, replaced or continued between its measuring and its reading. `records`: how many were read,
    None where not all of them were wanted.
    """
    with blamed(table):
        table.source_format.check_same(table.source_spec, files, thoroughly=False)
    planned = sum(file.records for file in files)
    if records not in {None, planned} and table.source_format.is_dense:
        raise SourceChanged(
            f"table {table.name}: {records:,} records were read of {paths_text(files)}, expected {planned:,} as "
            "planned; a file was changed while it was read. Put back what it had, then run again."
        )


def paths_text(files: Sequence[PlannedFile]) -> str:
    """The first of some files, and how many more there are."""
    others = len(files) - 1
    return files[0].path + (f" and {others} more" if others else "")


def cut(group: Group, rows: int | None, whole: Collection[str] = ()) -> list[Group]:
    """Split a group into batches of about `rows` records, each with its share of every table's backlog.

    A version of a Delta table is never split, not even one that stands for a whole table; nor are the files of the
    tables `whole`, which go with the first batch. Of each partition of a topic a batch has its share, for their records
    came side by side.
    """
    if rows is None or group.records <= rows:
        return [Group(group.dates, together(group.files))]
    parts = -(-group.records // rows)
    tables = list(dict.fromkeys(file.table for file in group.files if file.table not in whole))
    pieces: list[list[PlannedFile]] = [[] for _ in range(parts)]
    pieces[0] += [file for file in group.files if file.table in whole and file.records]
    for table in tables:
        files = [file for file in group.files if file.table == table]
        for side in side_by_side(files):
            total = sum(file.records for file in side)
            bounds = [total * part // parts for part in range(parts + 1)]
            for part in range(parts):
                start, end = bounds[part] if part else -1, bounds[part + 1]
                pieces[part] += together(list(between(side, start, end)))
    pieces[0] += [file for file in group.files if file.from_line == file.to_line]
    return [Group(dates_of(piece), tuple(piece)) for piece in pieces if piece]
