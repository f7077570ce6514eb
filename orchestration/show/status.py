"""Reads how far a pipeline is: what its lake holds and what waits, from logs and listings, without a JVM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakejoin.orchestration.checks.figures import Figure, figures
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import join_remains
from lakejoin.orchestration.lake_state.quarantine_counts import open_counts
from lakejoin.orchestration.planning.backlog import Backlog, backlog
from lakejoin.orchestration.planning.pending_input import blamed
from lakejoin.storage.errors import SourceError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Plan, Published
from lakejoin.storage.lake.table_counts import row_count

Counts = Mapping[str, Mapping[str, int]]
_LEVELS = frozenset({"waiting"})


@dataclass(frozen=True)
class Status:
    """A pipeline at a moment. Counts are of finished batches, all of them together."""

    published: Sequence[Published]
    """The finished batches; the last one is the snapshot that readers see."""
    unfinished: Plan | None
    tables: Counts
    """Rows there are, and source records by reason."""
    joins: Counts
    """Rows there are, and answers by resolution."""
    quarantine: Counts
    """Records that are in quarantine still, by table and reason."""
    backlog: Backlog | None
    """What waits; None where a source cannot be listed."""
    unlisted: str
    """Why a source cannot be listed."""
    undeclared: Mapping[str, tuple[str, ...]]
    """Columns by table that a newest file has, and the configuration does not name: they are ignored."""
    forgotten: tuple[str, ...]
    """Joins that the lake keeps and the configuration no longer declares."""
    settled: Mapping[str, datetime]
    """The time before which nothing can change a history by event time any more, by join; none where there is none."""
    figures: Sequence[Figure]
    """What the file expects of tables and streams, and what was found."""

    @property
    def batches(self) -> int:
        """How many batches are finished."""
        return len(self.published)

    @property
    def last(self) -> Published | None:
        """The last finished batch."""
        return self.published[-1] if self.published else None


def lake_status(pipeline: Pipeline, now: datetime) -> Status:
    """Read a pipeline's status. Raises `LakeInconsistent` for a lake that cannot be read."""
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    shapes = journal.plans[-1].shapes if journal.plans else {}
    held = {name.split("/")[1] for name in shapes if name.startswith("joins/")}
    waiting, unlisted = _backlog(pipeline, now)
    return Status(
        published=journal.published,
        unfinished=journal.unfinished,
        tables=_tables(pipeline, journal),
        joins=_joins(pipeline, lake, journal),
        quarantine=open_counts(lake, journal),
        backlog=waiting,
        unlisted=unlisted,
        undeclared=_undeclared(pipeline, waiting) if waiting else {},
        forgotten=tuple(name for name in sorted(held - set(pipeline.joins)) if join_remains(lake, name)),
        settled=_settled(pipeline, journal.last),
        figures=figures(pipeline, journal, now, first=None),
    )


def _settled(pipeline: Pipeline, last: Published | None) -> dict[str, datetime]:
    clocks = {} if last is None else last.clocks
    found = {name: clocks.get(f"histories/{name}") for name in pipeline.event_histories}
    return {name: time for name, time in found.items() if time is not None}


def _backlog(pipeline: Pipeline, now: datetime) -> tuple[Backlog | None, str]:
    try:
        return backlog(pipeline, now, settle=timedelta(0)), ""
    except SourceError as error:
        return None, str(error)


def _undeclared(pipeline: Pipeline, listed: Backlog) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, table in pipeline.inputs.items():
        with blamed(table):
            columns = table.source_format.columns(table.source_spec, listed.newest.get(name))
        declared = table.spec.as_written.columns.names
        found[name] = tuple(column for column in columns if column not in declared)
    return {name: columns for name, columns in found.items() if columns}


def _tables(pipeline: Pipeline, journal: Journal) -> Counts:
    rows = journal.last.rows if journal.last else {}
    total = added([batch.tables for batch in journal.published])
    return {name: {"rows": rows.get(name, 0), **total.get(name, {})} for name in pipeline.inputs}


def _joins(pipeline: Pipeline, lake: Lake, journal: Journal) -> Counts:
    versions = journal.last.versions if journal.last else {}
    total, found = added([batch.joins for batch in journal.published]), {}
    for name in pipeline.joins:
        version = versions.get(joined_of(name))
        rows = row_count(lake, joined_of(name), version) if version is not None else 0
        found[name] = {"rows": rows, **total.get(name, {})}
    return found


def added(batches: list[Counts]) -> dict[str, dict[str, int]]:
    """Add up counts by name and reason, reasons in the order of their first occurrence; of levels the last stands."""
    total: dict[str, dict[str, int]] = {}
    for batch in batches:
        for name, counts in batch.items():
            sums = total.setdefault(name, {})
            for reason, count in counts.items():
                sums[reason] = count if reason in _LEVELS else sums.get(reason, 0) + count
    return total
