"""What waits to be worked off, told from file names, sizes, times and the plan: quick, and without a JVM."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from orchestration.config import Pipeline
from orchestration.lake_state.active_joins import kept_joins
from orchestration.planning.delta_versions import waiting_versions
from orchestration.planning.pending_input import Dates, blamed, is_known, is_wanted, list_files, settle_of
from storage.lake.journal import Journal
from storage.lake.layout import Lake
from storage.lake.plan import Plan, PlannedFile
from storage.sources.change_data_feed_log import FEED
from storage.sources.files import FoundFile, has_settled

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
    """Unread files, a batch that was cut off, joins that were added to the configuration."""

    files: tuple[WaitingFile, ...]
    unfinished: Plan | None
    new_joins: tuple[str, ...]
    found: Mapping[str, int] = field(default_factory=dict)
    """How many files each table's source has, read or not; a Delta table has one."""
    young: int = 0
    """How many more files wait, but changed too short a time ago to be read."""

    @property
    def is_empty(self) -> bool:
        """Whether a run would find nothing to do."""
        return not self.files and self.unfinished is None and not self.new_joins

    @property
    def dates(self) -> tuple[date, ...]:
        """Every `{date}` there is something to do for."""
        days = {waiting.file.date for waiting in self.files if waiting.file.date is not None}
        return tuple(sorted(days.union(self.unfinished.dates if self.unfinished else ())))

    @property
    def batches(self) -> int:
        """How many batches a run by dates makes: undated files go with the first date."""
        days = {waiting.file.date for waiting in self.files if waiting.file.date is not None}
        of_files = max(len(days), 1) if self.files else 0
        return of_files + (self.unfinished is not None) + bool(self.new_joins)


def unasked_settle(pipeline: Pipeline) -> timedelta:
    """How long files rest before a run that nobody asked for reads them: as the slowest table wants."""
    declared = [table.source.settle for table in pipeline.inputs.values()]
    return max(SETTLE if settle is None else settle for settle in declared)


def backlog(
    pipeline: Pipeline, now: datetime, *, settle: timedelta | None = None, dates: Dates | None = None
) -> Backlog:
    """List the sources and hold them against the plan; no file is opened.

    `settle`: only count files that changed less than this ago, by default as a run does that is told nothing.
    `dates` (inclusive): leave out dated files beyond them; files from before a source's `start` never wait. A file that
    was only touched, or a new one without records, does: reading it will tell. Raises `SourceError` for a source that
    cannot be listed.
    """
    journal, files, found, young = Journal(Lake(pipeline.lake)), list[WaitingFile](), dict[str, int](), 0
    for name, table in pipeline.inputs.items():
        if table.source.format == "delta":
            with blamed(table):
                versions = waiting_versions(table, journal.known_files(name).get(FEED))
            files += [WaitingFile(name, version) for version in versions]
            found[name] = 1
            continue
        listed = list_files(table, settle=timedelta(0), now=now, since=table.source.start)
        known, found[name] = journal.known_files(name), len(listed)
        wanted = [file for file in listed if is_wanted(file, table, dates)]
        unread = [file for file in wanted if not _is_read(file, known.get(file.name))]
        settled = [file for file in unread if has_settled(file.modified, settle_of(table, settle), now)]
        files += [WaitingFile(name, file) for file in settled]
        young += len(unread) - len(settled)
    new_joins = tuple(name for name in pipeline.joins if name not in kept_joins(pipeline, journal))
    return Backlog(tuple(files), journal.unfinished, new_joins, found, young)


def _is_read(file: FoundFile, planned: PlannedFile | None) -> bool:
    return is_known(file, planned) and (planned is None or planned.to_line >= planned.lines)
