"""Finds the steps that keep a lake small and fast, without a JVM, and does them one by one.

The steps are folds, table settings, compaction, vacuum, checkpoints, condensing of the bookkeeping, and clearing of
`_scratch`. Each works on finished batches only, changes no row that a reader sees, and can be repeated: a step that was
interrupted is found again, or is due no more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, get_args

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.fold_progress import finished_state, pinned_versions
from lakejoin.orchestration.lake_state.inventory import bases_of, state_tables, tables_by_key
from lakejoin.orchestration.lake_state.preflight import check_progress
from lakejoin.orchestration.maintenance.folds import behind, fold, put_together
from lakejoin.storage.delta_log.live_files import stored_files
from lakejoin.storage.delta_table.compaction import SmallFiles, small_files
from lakejoin.storage.delta_table.log_cleanup import checkpoint, entries
from lakejoin.storage.delta_table.retention import log_retention, state_retention, unstated
from lakejoin.storage.delta_table.vacuum import vacuum, waste
from lakejoin.storage.errors import LakeBusy, LakeInconsistent
from lakejoin.storage.lake.bookkeeping import condense, row_files
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import BOOKKEEPING, SCRATCH, Lake, is_copy
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.lake.scratch import clear, leftovers


class Finding(Protocol):
    """What a step would change."""

    @property
    def due(self) -> bool:
        """Whether the step is worth the work."""

    @property
    def any(self) -> bool:
        """Whether the step would change anything at all."""

    @property
    def why(self) -> str:
        """The figures that decide, as text."""


@dataclass(frozen=True)
class Leftovers:
    """Files in the scratch folder."""

    files: int
    size: int

    @property
    def due(self) -> bool:
        """Always: no batch can use them any more."""
        return self.any

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return self.files > 0

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        return f"{self.files:,} files that a batch left when it was cut off"


@dataclass(frozen=True)
class Doubt:
    """A pinned version cannot be read: what its files are, and so what may be removed, is not known."""

    why: str
    due: bool = True
    """The step is tried although it fails again: that is reported, so that the lake does not grow in silence."""
    any: bool = True


Work = Literal["fold", "settings", "compact", "vacuum", "checkpoint", "condense", "clear"]
"""Kinds of steps, in the order in which they are done: each may make the next one due."""
WORKS: tuple[Work, ...] = get_args(Work)
_WITHOUT_SPARK = ("condense", "clear")
_LOOKS = 3


@dataclass(frozen=True)
class Step:
    """Something that can be done to a table."""

    work: Work
    table: str
    """Name below the lake."""
    finding: Finding

    @property
    def needs_spark(self) -> bool:
        """Whether it cannot be done without a JVM."""
        return self.work not in _WITHOUT_SPARK


class Upkeep:
    """A lake as it is now, and what it needs. Raises as a run does where lake and configuration do not fit."""

    def __init__(self, pipeline: Pipeline, lake: Lake, now: datetime, only: str | None = None) -> None:
        self._pipeline, self._lake, self._now, self._only = pipeline, lake, now, only
        self._journal = _journal(pipeline, lake)
        self._retention = pipeline.maintenance.retention

    def steps(self, work: Work) -> list[Step]:
        """Return the steps of a kind that would change anything, due or not; none before the first finished batch.

        With `only`, those of that table.
        """
        if self._journal.last is None:
            return []
        find: dict[Work, Callable[[], Iterator[tuple[str, Finding]]]] = {
            "settings": self._settings, "fold": self._folds, "compact": self._compactions, "vacuum": self._vacuums,
            "checkpoint": self._checkpoints, "condense": self._bookkeeping, "clear": self._leftovers,
        }  # fmt: skip
        return [
            Step(work, table, finding)
            for table, finding in find[work]()
            if finding.any and self._is_asked(table)
        ]

    def do(self, step: Step, session: Callable[[], SparkSession]) -> None:
        """Do one step; the caller holds the lake for writing."""
        path = self._lake.path(step.table)
        pinned = pinned_versions(self._journal).get(step.table, frozenset())
        match step.work:
            case "settings":
                state_retention(session(), path, self._retention)
            case "fold":
                fold(self._pipeline, session(), self._lake, self._journal, self._state, step.table)
            case "compact":
                found = self._small_files(step.table)
                assert found is not None
                put_together(self._pipeline, session(), self._lake, self._journal, step.table, found)
            case "vacuum":
                vacuum(session(), path, self._retention, pinned)
            case "checkpoint":
                checkpoint(session(), path)
            case "condense":
                condense(path, self._retention)
            case "clear":
                clear(self._lake)

    @property
    def _state(self) -> Plan:
        return finished_state(self._pipeline, self._lake, self._journal, self._now)

    def _settings(self) -> Iterator[tuple[str, Finding]]:
        for table in self._tables():
            yield table, unstated(self._lake.path(table), self._retention)

    def _folds(self) -> Iterator[tuple[str, Finding]]:
        for found in behind(self._pipeline, self._lake, self._journal, self._state):
            yield found.base, found

    def _compactions(self) -> Iterator[tuple[str, Finding]]:
        for table in self._tables():
            if (found := self._small_files(table)) is not None:
                yield table, found

    def _small_files(self, table: str) -> SmallFiles | None:
        """Files of a table that can be put together; None for a base, which a fold writes anew."""
        bases = bases_of(self._pipeline)
        if table in bases:
            return None
        if table in tables_by_key(self._pipeline):
            return small_files(self._lake.path(table))
        folded, finished = self._state.folded, len(self._journal.published)
        # a copy in another order is either folded as far as its base, or not read
        own = [base for base, log in bases.items() if log == table and not is_copy(base)]
        through = min((folded.get(base, 0) for base in own), default=finished)
        return small_files(self._lake.path(table), through)

    def _vacuums(self) -> Iterator[tuple[str, Finding]]:
        pinned = pinned_versions(self._journal)
        for table in self._tables():
            horizon = self._now - self._retention
            try:
                yield table, waste(self._lake.path(table), horizon, pinned.get(table, frozenset()))
            except LakeInconsistent as error:
                yield table, Doubt(str(error).splitlines()[0])

    def _checkpoints(self) -> Iterator[tuple[str, Finding]]:
        pinned = pinned_versions(self._journal)
        for table in self._tables():
            path = self._lake.path(table)
            remembered = log_retention(path, self._retention)
            yield table, entries(stored_files(path), self._now, pinned.get(table, frozenset()), remembered)

    def _bookkeeping(self) -> Iterator[tuple[str, Finding]]:
        for table in filter(self._is_asked, self._lake.versions(BOOKKEEPING)):
            yield table, row_files(self._lake.path(table))

    def _leftovers(self) -> Iterator[tuple[str, Finding]]:
        files = leftovers(self._lake, self._now)
        yield SCRATCH, Leftovers(len(files), sum(file.size for file in files))

    def _tables(self) -> list[str]:
        """Tables of data that exist and are asked for."""
        return list(self._lake.versions(filter(self._is_asked, state_tables(self._pipeline))))

    def _is_asked(self, table: str) -> bool:
        return self._only in (None, table)


def _journal(pipeline: Pipeline, lake: Lake) -> Journal:
    """Return the journal of a lake, once its tables agree with it.

    The lake is not locked while it is only looked at. A batch may finish meanwhile, so that tables seem to be ahead of
    the journal; then both are looked at again.
    """
    for _ in range(_LOOKS):
        journal = Journal(lake)
        check_shapes(pipeline, journal)
        try:
            check_progress(pipeline, lake, journal)
        except LakeInconsistent:
            now = Journal(lake)
            if (now.plans, now.published) == (journal.plans, journal.published):
                raise
        else:
            return journal
    raise LakeBusy(
        f"{lake.root}: batches followed each other {_LOOKS} times while maintenance looked at the tables; nothing "
        "more was done. Run maintenance again when fewer batches run."
    )
