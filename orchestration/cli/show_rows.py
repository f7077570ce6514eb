"""Reads the rows that `show` prints: from a store, one by one and without a JVM, or from a frame of Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.lake_state.readable import check_all_readable, check_readable
from lakejoin.orchestration.show.frame_view import View
from lakejoin.orchestration.show.key_ranges import Range
from lakejoin.orchestration.show.references import Report, report_view
from lakejoin.orchestration.show.result_histories import result_after
from lakejoin.orchestration.show.store_view import open_view
from lakejoin.orchestration.show.stores import stored_tables
from lakejoin.orchestration.show.tables import find_view
from lakejoin.orchestration.show.text_formats import Format, lines, texts
from lakejoin.orchestration.show.time_views import as_of_view
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.state.pinned_state import State

_WORK = "reading a table"
"""What messages call it."""


@dataclass(frozen=True)
class Asked:
    """What the command line asks for."""

    table: str
    range: Range
    where: str | None
    batch: int | None
    time: datetime | None
    """As of which a versioned table, or a result with a history, is wanted."""
    everything: bool
    """Whether all rows of the range are wanted."""
    internal: bool
    """Whether internal columns are shown."""


class Shown(Protocol):
    """Rows with their order and columns chosen."""

    @property
    def name(self) -> str:
        """The name the table is shown by."""

    @property
    def header(self) -> list[str]:
        """Names of the columns that are shown."""

    def texts(self, limit: int | None) -> Iterator[Sequence[str | None]]:
        """Yield the columns of each row as text."""

    def lines(self, form: Format, limit: int | None) -> Iterator[str]:
        """Yield the lines of a file of such a form, each with its end."""


@dataclass(frozen=True)
class _Frame:
    """Rows that Spark sorts."""

    pipeline: Pipeline
    view: View
    internal: bool

    @property
    def name(self) -> str:
        return self.view.name

    @property
    def header(self) -> list[str]:
        return self.view.shown(internal=self.internal).columns

    def texts(self, limit: int | None) -> Iterator[Sequence[str | None]]:
        with explained(self.pipeline, _WORK):
            rows = self.view.shown(internal=self.internal)
            found = texts(rows if limit is None else rows.limit(limit), self.view.structs)
            yield from map(tuple, found.toLocalIterator())

    def lines(self, form: Format, limit: int | None) -> Iterator[str]:
        with explained(self.pipeline, _WORK):
            rows = self.view.shown(internal=self.internal)
            yield from lines(rows if limit is None else rows.limit(limit), form, self.view.structs)


def open_shown(pipeline: Pipeline, asked: Asked) -> Shown:
    """Open a table by name. A wrong name, range or batch is refused before anything is started.

    A range, a key, or the first rows are read from a store without a JVM. Spark reads what has a condition, is no
    store, or is wanted whole: it reads many files at a time.
    """
    lake, name, time = Lake(pipeline.lake), asked.table, asked.time
    opened = find_view(pipeline, name)
    journal = Journal(lake)
    if time is not None:
        opened = as_of_view(pipeline, name, journal, time)
    snapshot, of_history = published_snapshot(journal, asked.batch), time is not None
    try:
        check_readable(pipeline, journal, snapshot, name, kept=asked.batch is not None)
    except (WrongUsage, ConfigurationChanged):
        if asked.batch is None or not _remembers_batches(pipeline, name):
            raise
        opened, of_history = result_after(pipeline, name, journal, asked.batch), True
        snapshot = published_snapshot(journal)
        check_readable(pipeline, journal, snapshot, name, kept=False)
    stored = stored_tables(pipeline).get(name) if asked.where is None and not of_history else None
    whole = asked.everything and not asked.range.given
    if stored is not None and not whole and stored.answers(asked.range):
        return open_view(stored, lake, snapshot, asked.range, internal=asked.internal)
    if asked.range.beyond_key:
        given = ", ".join(asked.range.beyond_key)
        if asked.where is not None or of_history:
            at = "--as-of" if asked.batch is None else "--as-of-batch"
            other = at if asked.where is None else "--where"
            raise WrongUsage(f"{given}: cannot be given with {other}; say it in a condition, --where")
        raise WrongUsage(f"{given}: {asked.table} is a log, not kept by key; use --where")
    spark = options.open_session(pipeline)
    with explained(pipeline, _WORK):
        rows = opened(State(spark, lake, snapshot))
        rows = rows if asked.where is None else rows.where(asked.where)
        rows = rows if asked.range.key is None else rows.of_key(asked.range.key)
    return _Frame(pipeline, rows, asked.internal)


def _remembers_batches(pipeline: Pipeline, name: str) -> bool:
    """Whether a history tells what each batch made of a result; one by event time tells something else."""
    kept = pipeline.joins[name].history_spec if name in pipeline.joins else None
    return kept is not None and not kept.by_event_time


def open_report(pipeline: Pipeline, join: str, report: Report, batch: int | None) -> Shown:
    """Open a report on the references of a join. A wrong name or batch is refused before anything is started."""
    opened, lake = report_view(pipeline, join, report), Lake(pipeline.lake)
    journal, names = Journal(lake), [join, *[part.right for part in pipeline.join_spec(join).parts]]
    snapshot = published_snapshot(journal, batch)
    check_all_readable(pipeline, journal, snapshot, names, kept=batch is not None)
    if joined_of(join) not in snapshot.versions:
        raise WrongUsage(
            f"{join}: batch {snapshot.batch - 1} has not begun the join; `lakejoin run {pipeline.path}` begins joins "
            "that were declared since"
        )
    spark = options.open_session(pipeline)
    with explained(pipeline, _WORK):
        return _Frame(pipeline, opened(State(spark, lake, snapshot)), internal=False)
