"""Folds a log into its base: drops what the base need not keep, and remembers the floor that this leaves.

A fold works on finished batches only and has transaction identifiers of its own. What it chose (through which batch, at
what time, above which floor) is written to `_maintenance` before the base is touched. So a fold that was interrupted
between the two is repeated exactly.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.delta_log.live_files import rows_after
from lakejoin.storage.delta_table.commits import overwrite
from lakejoin.storage.delta_table.compaction import compressing
from lakejoin.storage.delta_table.direct_scan import ENCODING
from lakejoin.storage.delta_table.file_pruning import MOST_VALUES, SMALL_PAGES
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.lake.bookkeeping import record
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import (
    MAINTENANCE,
    Lake,
    changes_of,
    left_rows_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
    versions_of,
)
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.spark.kept_frames import Frames, aggregated, framing
from lakejoin.storage.spark.session import changed_settings
from lakejoin.storage.state.pinned_state import State
from lakejoin.storage.state.result_histories import forget
from lakejoin.transforms.changelog.versions import intervals, reachable
from lakejoin.transforms.foreign_key_join.subscriptions import live_subscriptions
from lakejoin.transforms.model.event_time import earliest, from_micros, instant, latest, moved_back
from lakejoin.transforms.model.guards import guarded
from lakejoin.transforms.model.join_sides import as_left_rows
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    EXACT_TIMES,
    FOREIGN_KEY,
    SEQUENCE,
    TIME,
    VALID_FROM,
    named,
)
from lakejoin.transforms.model.specs import JoinSpec, TableSpec

ROWS_PER_FILE = 1_000_000
BATCHES_BEHIND = 64
"""A base is folded when its log holds so many batches,"""
SHARE_BEHIND = 0.25
"""or this share of the base's own rows, and at least"""
ROWS_BEHIND = 200_000
"""this many rows: below it, reading the log costs less than rewriting the base."""
LARGE_TABLE = 2_000_000
"""A left table of so many rows is kept in the order of a foreign key, too,"""
LOOK_UPS_WORTH = 2
"""where one batch in so many looks few right keys up."""


@dataclass(frozen=True)
class Fold:
    """One row of `_maintenance`: what a fold chose before it began."""

    number: int
    base: str
    through: int
    """Last batch that the base holds afterwards."""
    cutoff: datetime | None
    """Tombstones from before it are purged; of a history, what ended before it."""
    floor: str | None
    """Greatest sequence of all tombstones purged so far, as JSON."""


class Folds:
    """The folds of a lake that were begun, read without a JVM."""

    def __init__(self, lake: Lake) -> None:
        snapshot = lake.snapshot(MAINTENANCE)
        rows: list[dict[str, Any]] = snapshot.read() if snapshot else []
        self.begun = sorted((Fold(**row) for row in rows), key=lambda fold: fold.number)

    def last(self, base: str, through: int) -> Fold | None:
        """The last fold of a base up to a batch."""
        done = [fold for fold in self.begun if fold.base == base and fold.through <= through]
        return done[-1] if done else None

    def unfinished(self, base: str, snapshot: Plan) -> Fold | None:
        """A fold of a base that was begun and not committed.

        One through a batch that is not finished is of a lake whose last batches were lost since.
        """
        begun = [fold for fold in self.begun if fold.base == base]
        waits = begun and snapshot.folded.get(base, 0) < begun[-1].through < snapshot.batch
        return begun[-1] if waits else None


def is_due(behind: Sequence[int], base_rows: int) -> bool:
    """Whether a base should be folded; `behind` holds the rows of each batch that its log is ahead."""
    rows = sum(behind)
    return len(behind) >= BATCHES_BEHIND or (rows >= ROWS_BEHIND and rows >= SHARE_BEHIND * base_rows)


def pays_by_foreign_key(rows: int, asked: Sequence[int]) -> bool:
    """Whether to keep a left table of so many rows in the order of a foreign key, too.

    `asked`: how many right keys changed in each batch since that was done last. Few of them are looked up there. To
    write the rows takes as long as some twenty such batches spare.
    """
    few = sum(0 < keys <= MOST_VALUES for keys in asked)
    return rows >= LARGE_TABLE and 0 < len(asked) <= LOOK_UPS_WORTH * few


def fold_rows(
    spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, table: TableSpec, retention: timedelta
) -> None:
    """Fold a declared table's changes into its rows, and purge tombstones older than their retention.

    `snapshot`: a plan of the next batch, never committed, that pins the state after the last finished one.
    """
    state, base, folds = State(spark, lake, snapshot), rows_of(table.name), Folds(lake)
    with _framing(spark, lake, snapshot, base, changes_of(table.name)) as frames:
        rows = frames.keep(state.all_rows(table))
        fold = folds.unfinished(base, snapshot)
        if fold is None:
            cutoff = _cutoff(rows, table, retention, snapshot)
            former = folds.last(base, snapshot.batch)
            floor = _floor(rows.where(_purged(cutoff)), table, former.floor if former else None)
            fold = _begin(lake, journal, folds, Fold(0, base, snapshot.batch - 1, cutoff, floor))
        # a key that changed after the fold was begun is left out here: its newer row is in the log
        kept = rows.where((F.col(BATCH) <= fold.through) & ~_purged(fold.cutoff))
        _replace(kept, lake, journal, fold, [named(name) for name in table.key])


def fold_versions(
    spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, table: TableSpec,
    read_since: Collection[datetime | None] = (),
) -> None:  # fmt: skip
    """Fold a versioned table's changes into its history, and forget what is past the retention.

    `read_since`: from when on histories of results read it, None for ever; what they read stays, however old.
    """
    base, folds = versions_of(table.name), Folds(lake)
    fold = folds.unfinished(base, snapshot)
    if fold is None:
        former, clock = (
            folds.last(base, snapshot.folded.get(base, 0)),
            snapshot.clocks.get(f"tables/{table.name}"),
        )
        # a retention that was raised since brings nothing back
        kept_since = earliest(moved_back(clock, table.history_retention), *read_since)
        cutoff = latest(kept_since, former.cutoff if former else None)
        fold = _begin(lake, journal, folds, Fold(0, base, snapshot.batch - 1, cutoff, None))
    versions = State(spark, lake, snapshot).versions(table).where(F.col(BATCH) <= fold.through)
    with _framing(spark, lake, snapshot, base, changes_of(table.name)) as frames:
        kept = frames.keep(reachable(intervals(versions, table), fold.cutoff))
        _replace(kept, lake, journal, fold, [*[named(name) for name in table.key], F.col(VALID_FROM)])


def fold_subscriptions(
    spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, join: JoinSpec
) -> None:
    """Fold a join's subscription log into its store; only live subscriptions stay."""
    base, folds = subscription_store_of(join.name), Folds(lake)
    fold = folds.unfinished(base, snapshot) or _begin(
        lake, journal, folds, Fold(0, base, snapshot.batch - 1, None, None)
    )
    messages = State(spark, lake, snapshot).subscriptions(join).where(F.col(BATCH) <= fold.through)
    order = [F.col("foreign_key"), F.col("primary_key")]
    with _framing(spark, lake, snapshot, base, subscription_log_of(join.name)) as frames:
        _replace(frames.keep(live_subscriptions(messages)), lake, journal, fold, order)


def fold_left_rows(
    spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, join: JoinSpec, table: TableSpec
) -> None:
    """Write the folded rows of a join's left table once more, in the order of their foreign key."""
    base, source, folds = left_rows_of(join.name), rows_of(table.name), Folds(lake)
    if source not in snapshot.versions:
        return
    fold = folds.unfinished(base, snapshot) or _begin(
        lake, journal, folds, Fold(0, base, snapshot.folded[source], None, None)
    )
    # as in `fold_rows`, a key that changed after the fold was begun is left out
    rows = State(spark, lake, snapshot).folded_rows(table).where(F.col(BATCH) <= fold.through)
    order = [F.col(FOREIGN_KEY), *[named(name) for name in table.key]]
    with _framing(spark, lake, snapshot, source, changes_of(table.name)):
        _replace(as_left_rows(rows, join), lake, journal, fold, order)


def forget_versions(
    spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, table: str, cutoff: datetime
) -> None:
    """Remove from the history of a result what ended before a time, which is written down first: readers ask for it."""
    _begin(lake, journal, Folds(lake), Fold(0, table, snapshot.batch - 1, cutoff, None))
    forget(spark, lake, journal, table, cutoff)


def _framing(
    spark: SparkSession, lake: Lake, snapshot: Plan, base: str, log: str
) -> AbstractContextManager[Frames]:
    """Frames for what a fold reads several times: in files unless base and log are known to have few rows.

    In memory 15 million rows would fill a heap of 4 GiB, and Spark would try how to compress each of their columns. How
    many rows are live in the end says nothing: of a table that is used as a queue next to none are.
    """
    read = {base: 0, log: snapshot.folded.get(base, 0)}
    there = [
        (lake.path(table), snapshot.versions[table], after)
        for table, after in read.items()
        if table in snapshot.versions
    ]
    return framing(spark, lake.scratch(), sum(rows_after(*table) for table in there))


def _cutoff(rows: DataFrame, table: TableSpec, retention: timedelta, snapshot: Plan) -> datetime | None:
    """The time before which tombstones are past retention: by event time if the table has one, else by the batches."""
    if not guarded("tombstone_retention"):
        retention = timedelta(0)
    if table.event_time is None:
        return moved_back(snapshot.planned_at, retention)
    # of live rows only: a delete without event time bears the batch's clock, which may be years ahead of the data
    live = F.when(~F.col(DELETED), named(table.event_time))
    newest = from_micros(aggregated(rows, F.unix_micros(F.max(live)).alias("newest"))["newest"])
    return moved_back(newest, retention)


def _purged(cutoff: datetime | None) -> Column:
    return F.lit(False) if cutoff is None else F.col(DELETED) & (F.col(TIME) < instant(cutoff))


def _floor(purged: DataFrame, table: TableSpec, former: str | None) -> str | None:
    before = F.from_json(F.lit(former), table.sequence) if former else F.lit(None).cast(table.sequence)
    floor: str | None = aggregated(
        purged, F.to_json(F.greatest(F.max(SEQUENCE), before), EXACT_TIMES).alias("floor")
    )["floor"]
    return floor


def _begin(lake: Lake, journal: Journal, folds: Folds, fold: Fold) -> Fold:
    begun = replace(fold, number=len(folds.begun) + 1)
    transaction = journal.transaction("maintenance", begun.number)
    if not record(lake.path(MAINTENANCE), begun, transaction) and begun not in Folds(lake).begun:
        raise LakeBusy(
            f"{lake.path(MAINTENANCE)}: another run began fold {begun.number} meanwhile; nothing was folded here. Run "
            "maintenance again when the other has ended."
        )
    return begun


def _replace(rows: DataFrame, lake: Lake, journal: Journal, fold: Fold, order: list[Column]) -> None:
    """Write a base anew, each file a range of its key: lookups pass over those that hold none of theirs."""
    files = max(1, -(-rows.count() // ROWS_PER_FILE))
    ordered = rows.repartitionByRange(files, *order).sortWithinPartitions(*order)
    with compressing(rows.sparkSession), changed_settings(rows.sparkSession, SMALL_PAGES):
        transaction = journal.transaction(f"fold/{fold.base}", fold.through)
        overwrite(ordered, lake.path(fold.base), transaction, ENCODING)
