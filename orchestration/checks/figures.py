"""Holds figures of a pipeline against what its file expects of them, from logs and listings, without a JVM."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.expect import Bound
from lakejoin.orchestration.lake_state.quarantine_counts import open_counts, without_late
from lakejoin.orchestration.planning.backlog import Backlog, unasked_backlog
from lakejoin.storage.errors import SourceError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake


@dataclass(frozen=True)
class Intake:
    """How many records of a table or stream were read, and how many of them are in quarantine."""

    records: int
    quarantined: int

    @property
    def share(self) -> float:
        """The quarantined part; 0 where nothing was read. A batch may quarantine what an earlier one read."""
        return self.quarantined / max(self.records, self.quarantined, 1)


@dataclass(frozen=True)
class Figure:
    """A figure of a table or stream of which the file says what it may be."""

    subject: str
    name: Literal["quarantined", "lag"]
    found: float | None
    """A share, or seconds; None where it cannot be told."""
    told: str
    """What was found, in words."""
    bound: Bound

    @property
    def holds(self) -> bool:
        """Whether it is as expected; one that cannot be told is not."""
        return self.found is not None and self.bound.allows(self.found)


def figures(pipeline: Pipeline, journal: Journal, now: datetime, *, first: int | None) -> Sequence[Figure]:
    """Return every figure that something is expected of.

    `first`: the batch from which on records are counted; None for all records, of which those count that are in
    quarantine still. A source is only listed where the file says how far it may lag.
    """
    return [*_quarantined(pipeline, journal, first), *lags(pipeline, now)]


def intake(journal: Journal, name: str, first: int | None, waiting: Mapping[str, int]) -> Intake:
    """Return what was read of a table or stream since batch `first`; of all batches for None.

    `waiting`: its records that are in quarantine still, by reason; only of all batches these are what counts.
    """
    counts = [batch.tables.get(name, {}) for batch in journal.published if batch.batch >= (first or 1)]
    records = sum(of.get("records", 0) for of in counts)
    if first is None:
        return Intake(records, sum(without_late(waiting).values()))
    return Intake(records, sum(of.get("quarantined", 0) for of in counts))


def lags(pipeline: Pipeline, now: datetime) -> Sequence[Figure]:
    """Return how long input has waited of each table and stream whose lag the file bounds; others are not listed."""
    bounds = {name: pipeline.expected_of(name).lag for name in pipeline.inputs}
    bounded = {name: bound for name, bound in bounds.items() if bound is not None}
    if not bounded:
        return []
    try:
        listed = unasked_backlog(pipeline, now)
    except SourceError as error:
        return [Figure(name, "lag", None, f"unknown: {error}", bound) for name, bound in bounded.items()]
    return [_lag(name, listed, bound, now) for name, bound in bounded.items()]


def _lag(name: str, listed: Backlog, bound: Bound, now: datetime) -> Figure:
    lag = listed.lag(name, now)
    if lag is None:
        return Figure(
            name, "lag", None, "unknown: something waits, and its source does not say since when", bound
        )
    rounded = timedelta(seconds=int(lag.total_seconds()))
    told = f"the oldest waits for {rounded}" if lag else "nothing waits"
    return Figure(name, "lag", lag.total_seconds(), told, bound)


def _quarantined(pipeline: Pipeline, journal: Journal, first: int | None) -> Iterator[Figure]:
    bounds = {name: pipeline.expected_of(name).quarantined for name in pipeline.inputs}
    waiting = open_counts(Lake(pipeline.lake), journal) if first is None and any(bounds.values()) else {}
    for name, bound in bounds.items():
        if bound is not None:
            read = intake(journal, name, first, waiting.get(name, {}))
            told = f"{read.quarantined:,} of {read.records:,} records ({read.share:.2%})"
            yield Figure(name, "quarantined", read.share, told, bound)
