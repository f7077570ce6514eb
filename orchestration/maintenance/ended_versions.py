"""Finds which histories of results hold versions that are past their retention, and removes these."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.folds import Folds, forget_versions
from lakejoin.storage.state.result_histories import first_end
from lakejoin.storage.state.settled_times import settled_until
from lakejoin.transforms.model.event_time import moved_back

SHARE_PAST = 0.1
"""Versions are removed once some ended so much of their retention before it: to remove a few costs what many do."""


@dataclass(frozen=True)
class EndedVersions:
    """Versions of a result that ended long ago."""

    base: str
    """The history, by its name below the lake."""
    cutoff: datetime
    """What ended before it is past the retention."""
    first: datetime | None
    """When the first version ended of those that no earlier removal was about; None where none has."""
    retention: timedelta

    @property
    def due(self) -> bool:
        """Whether some are well past it."""
        return self.first is not None and self.first < self.cutoff - SHARE_PAST * self.retention

    @property
    def any(self) -> bool:
        """Whether any is past it."""
        return self.first is not None and self.first < self.cutoff

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        since = f"{self.first:%Y-%m-%d %H:%M}" if self.first else "nothing"
        return f"versions that ended since {since}; they are kept until {self.cutoff:%Y-%m-%d %H:%M}"


def ended_versions(
    pipeline: Pipeline, lake: Lake, journal: Journal, snapshot: Plan
) -> Iterator[EndedVersions]:
    """Yield what is past its retention, but for what a batch under way has ended, which may be given up.

    Retention goes by the batches' clock; of a history by event time back from the time until which it is settled.

    `snapshot`: a plan that pins the state after the last finished batch.
    """
    folds = Folds(lake)
    for name, join in pipeline.kept_by_key.items():
        table = history_of(name)
        retention = None if join.history is None else join.history.retention
        if retention is None or not lake.has(table):
            continue
        former, first = folds.last(table, snapshot.batch), first_end(lake.path(table))
        if first is not None and former is not None and former.cutoff is not None:
            # where rows are marked as deleted, the bounds of their file stay
            first = max(first, former.cutoff)
        cutoff: datetime | None
        if name in pipeline.event_histories:
            # no batch revises what ended before; what one under way does is not known yet
            settled = settled_until(snapshot, pipeline.event_histories[name])
            cutoff = moved_back(settled, retention)
        else:
            cutoff = snapshot.planned_at - retention
            if journal.unfinished is not None:
                cutoff = min(cutoff, journal.unfinished.planned_at)
        if cutoff is not None:
            yield EndedVersions(table, cutoff, first, retention)


def remove_ended(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, table: str
) -> None:
    """Remove from a history what is past its retention; nothing from another table."""
    if table not in map(history_of, pipeline.kept_by_key):
        return
    for found in ended_versions(pipeline, lake, journal, snapshot):
        if found.base == table and found.any:
            forget_versions(spark, lake, journal, snapshot, table, found.cutoff)
