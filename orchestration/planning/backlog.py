"""Lists what waits to be worked off, by file names, sizes, times and the plan: quick, and without a JVM."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import kept_joins
from lakejoin.orchestration.planning.pending_input import blamed
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.files.source_files import Dates, FoundFile
from lakejoin.storage.sources.formats.source_format import Dumped, Look, Reached

SETTLE = timedelta(seconds=30)
"""A file that changed less than this ago may still be being written; tables may declare another time."""


@dataclass(frozen=True)
class WaitingFile:
    """A file of a table that no batch has read as it is now, or not to its end; or a version of a Delta table."""

    table: str
    file: FoundFile

    @property
    def identity(self) -> str:
        """The same for the same file in the same state."""
        return f"{self.table}:{self.file.name}:{self.file.size}:{self.file.modified}"


@dataclass(frozen=True)
class Backlog:
    """Unread files, a batch that was interrupted, joins that were added to the configuration."""

    files: tuple[WaitingFile, ...]
    unfinished: Plan | None
    new_joins: tuple[str, ...]
    found: Mapping[str, int] = field(default_factory=dict)
    """How many files each table's source has, read or not; a Delta table has one."""
    young: int = 0
    """How many more files wait, but changed too short a time ago to be read."""
    reached: Mapping[str, tuple[Reached, ...]] = field(default_factory=dict)
    """How far the partitions are read of each table or stream whose source is a topic."""
    dumped: Mapping[str, Dumped] = field(default_factory=dict)
    """When dumps are taken of each table that is asked of a database."""
    newest: Mapping[str, FoundFile | None] = field(default_factory=dict)
    """The last file of each table's source, as far as it was looked at."""

    @property
    def is_empty(self) -> bool:
        """Whether a run that is told nothing would find nothing to do."""
        return not self.files and self.unfinished is None and not self.new_joins

    @property
    def dates(self) -> tuple[date, ...]:
        """Every `{date}` there is something to do for."""
        days = {waiting.file.date for waiting in self.files if waiting.file.date is not None}
        return tuple(sorted(days.union(self.unfinished.dates if self.unfinished else ())))

    def lag(self, table: str, now: datetime) -> timedelta | None:
        """How long the oldest of what waits of a table has waited, zero for nothing; None where no time is known."""
        waiting = [waits.file.modified for waits in self.files if waits.table == table]
        times = [modified for modified in waiting if modified]
        if waiting and not times:
            return None
        return max(now - datetime.fromtimestamp(min(times) / 1e9, UTC), timedelta()) if times else timedelta()

    @property
    def batches(self) -> int:
        """How many batches a run by dates makes: undated files go with the first date."""
        days = {waiting.file.date for waiting in self.files if waiting.file.date is not None}
        of_files = max(len(days), 1) if self.files else 0
        return of_files + (self.unfinished is not None) + bool(self.new_joins)


def unasked_backlog(pipeline: Pipeline, now: datetime) -> Backlog:
    """List what a run would find that is told nothing. Raises `SourceError`."""
    return backlog(pipeline, now, settle=unasked_settle(pipeline))


def unasked_settle(pipeline: Pipeline) -> timedelta:
    """How long files rest before a scheduled run reads them: the longest `settle` of all tables."""
    declared = [table.source.settle for table in pipeline.inputs.values()]
    return max(SETTLE if settle is None else settle for settle in declared)


def backlog(
    pipeline: Pipeline, now: datetime, *, settle: timedelta | None = None, dates: Dates | None = None
) -> Backlog:
    """List the sources and compare them with the plan; no file is opened.

    `settle`: only count files that were left alone for this long, by default as a run does that is told nothing.
    `dates` (inclusive): leave out dated files beyond them; files from before a source's `start` never wait. A file that
    was only touched, or a new one without records, does: reading it will tell. Raises `SourceError` for a source that
    cannot be listed.
    """
    journal, look = Journal(Lake(pipeline.lake)), Look(now, settle, dates)
    files, found, young = list[WaitingFile](), dict[str, int](), 0
    reached, dumped = dict[str, tuple[Reached, ...]](), dict[str, Dumped]()
    newest = dict[str, FoundFile | None]()
    for name, table in pipeline.inputs.items():
        with blamed(table):
            waiting = table.source_format.waiting(table.source_spec, journal.known_files(name), look)
        files += [WaitingFile(name, file) for file in waiting.parts]
        found[name], newest[name] = waiting.held, waiting.newest
        young += waiting.young
        if waiting.reached:
            reached[name] = waiting.reached
        if waiting.dumped is not None:
            dumped[name] = waiting.dumped
    new_joins = tuple(name for name in pipeline.joins if name not in kept_joins(pipeline, journal))
    return Backlog(tuple(files), journal.unfinished, new_joins, found, young, reached, dumped, newest)
