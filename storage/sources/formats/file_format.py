"""Finds and measures the files of a source: what all formats share whose change data lies in files."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta

from pyspark.sql import SparkSession

from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.sources.files.fingerprint import FileContent
from lakejoin.storage.sources.files.limits import NO_LIMITS, FileLimits
from lakejoin.storage.sources.files.passed_files import Passed
from lakejoin.storage.sources.files.source_files import (
    Counted,
    Dates,
    FoundFile,
    MeasuredFile,
    by_day_and_name,
    changed,
    each_file,
    has_settled,
    names_now,
    stat_file,
)
from lakejoin.storage.sources.formats.source_format import Look, Ranges, SourceFormat, SourceSpec, Waiting
from lakejoin.storage.sources.planned.known_files import KnownFiles
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile
from lakejoin.transforms.parsing.row_ops import RowOp


class FileFormat(SourceFormat, ABC):
    """A format whose records lie in files that are listed, fingerprinted and counted."""

    is_flat: bool = True
    """A record is a row, one of whose columns says what it does."""

    def waiting(self, source: SourceSpec, known: Known, look: Look) -> Waiting:
        """List the files that no batch has read as they are now, or not to their end; none is opened.

        A file that was only touched waits, and so does a new one without records: reading it will tell.
        """
        listed = Passed(_listed(source, known, look, timedelta(0)))
        unread = [file for file in _unread(source, known, look, listed) if file.size or file.name in known]
        settled = [file for file in unread if has_settled(file.modified, _settle(source, look), look.now)]
        parts = tuple(sorted(settled, key=by_day_and_name))
        return Waiting(parts, listed.count, len(unread) - len(settled), newest=listed.newest)

    def unread(
        self, source: SourceSpec, known: Known, look: Look, spark: SparkSession | None
    ) -> Iterator[PlannedFile]:
        """Yield the part of each file behind what was read of it."""
        listed = _listed(source, known, look, _settle(source, look))
        for file in sorted(_unread(source, known, look, listed), key=by_day_and_name):
            before = known.get(file.name)
            measured = self.measure(file, before.measured if before else None, spark, source.limits)
            start = before.to_line if before else 0
            # A file without new records goes with a batch of others: so it is known next time, and need not wait.
            if measured.lines > start or not _is_known(file, before):
                yield PlannedFile.behind(start, measured, source.table)

    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """Hold the files against what was measured of them."""
        for part in parts:
            found = stat_file(part.path, part.name, part.date)
            self.measure(found, part.measured, None, source.limits)

    def paths(self, source: SourceSpec, names: Collection[str], now: datetime) -> dict[str, str]:
        """List the files: their folder may have moved."""
        found = each_file(source.path, settle=timedelta(0), now=now, order=source.order)
        return {file.name: file.path for file in found if file.name in names}

    def columns(self, source: SourceSpec, newest: FoundFile | None) -> list[str]:
        """Look at the beginning of the newest file: a source that got a new column has it there."""
        found = self.columns_of(newest, source.row_op) if newest is not None else []
        return [name for name in found if not (self.is_flat and name in source.row_op.columns)]

    @abstractmethod
    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Return the names of a file's columns, as far as its first records show; what cannot be read has none."""

    def measure(
        self,
        found: FoundFile,
        known: MeasuredFile | None = None,
        spark: SparkSession | None = None,
        limits: FileLimits = NO_LIMITS,
    ) -> MeasuredFile:
        """Fingerprint a file and count its records; hold it against what was planned of it before, if it was.

        A file with the size and time of `known` is not read. Without `spark`, a grown file whose records only Spark can
        count is checked and keeps its known lines. Raises `SourceChanged` where anything but lines behind the known
        ones changed, `SourceBroken` for a torn file, `SourceTooLarge` for one beyond its limits.
        """
        if known is not None and (found.size, found.modified) == (known.size, known.modified):
            return replace(known, **asdict(found))
        if known is not None and found.size < known.size:
            raise changed(found, f"has {found.size} bytes now, had {known.size}")
        content = self.scan(found, known, limits)
        counted = self.count(found, known, content, spark)
        return MeasuredFile(
            **asdict(found), fingerprint=content.fingerprint, lines=counted.records, complete=content.complete,
            stray_quotes=counted.stray_quotes, returns=content.returns,
        )  # fmt: skip

    @abstractmethod
    def scan(self, found: FoundFile, known: MeasuredFile | None, limits: FileLimits) -> FileContent:
        """Pass over a file's bytes. Raises `SourceChanged` where they do not begin with what is known."""

    def count(
        self, found: FoundFile, known: MeasuredFile | None, content: FileContent, spark: SparkSession | None
    ) -> Counted:
        """Say how many records a file has that was passed over."""
        return Counted(content.lines)


def _settle(source: SourceSpec, look: Look) -> timedelta:
    """How long a file is left alone: as the run was told to, or else as the source declares."""
    return look.settle if look.settle is not None else source.settle or timedelta(0)


def _listed(source: SourceSpec, known: Known, look: Look, settle: timedelta) -> Iterator[FoundFile]:
    """The files of the days that are looked at. Raises `SourceRefused` at last if known ones would now be new."""
    first, last = _days(source, look)
    yield from each_file(
        source.path, settle=settle, now=look.now, since=first, until=last, order=source.order
    )
    read = KnownFiles.of(known)
    if source.order == "number" or read.has_in_name(":"):
        _check_names(source, read)


def _unread(source: SourceSpec, known: Known, look: Look, listed: Iterable[FoundFile]) -> Iterator[FoundFile]:
    """Those of files that a run over the days reads, and no batch has read as they are and to their end."""
    return KnownFiles.of(known).unread(file for file in listed if _is_wanted(file, source, look.dates))


def _check_names(source: SourceSpec, known: KnownFiles) -> None:
    """A file that was read and has another name now would be read again."""
    for name, now in names_now(source.path, known.each("path", "name"), source.order):
        if name != now:
            declared = f"`file_order: {source.order}`" if source.order else "no `file_order`"
            raise SourceRefused(
                f"{source.place}: {name} was read, and is {now} by {declared}, so that its records would be read once "
                f"more; expected the order by {'name' if source.order == 'number' else 'number'} that this lake was "
                "begun with. Declare that, or load the sources into a new lake"
            )


def _days(source: SourceSpec, look: Look) -> tuple[date | None, date | None]:
    """The first and the last day whose directories are listed; None where there is none."""
    if look.dates is None:
        return source.start, None
    first, last = look.dates
    return max(first, source.start or first), last


def _is_wanted(file: FoundFile, source: SourceSpec, dates: Dates | None) -> bool:
    """Whether a run over `dates` reads a file: undated ones always, dated ones from the source's `start` on."""
    if file.date is None:
        return True
    start = source.start
    return (start is None or start <= file.date) and (dates is None or dates[0] <= file.date <= dates[1])


def _is_known(file: FoundFile, before: PlannedFile | None) -> bool:
    """Whether the plan has the file as it is now; an empty one it need not have, for there is nothing to wait for."""
    if before is None:
        return file.size == 0
    return (file.size, file.modified) == (before.size, before.modified)
