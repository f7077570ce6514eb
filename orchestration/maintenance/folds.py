"""Finds which bases and small files are due, and folds and compacts them: after a batch or apart, never within one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession

from orchestration.config import AnyJoin, Join, Pipeline, StreamJoin
from orchestration.lake_state.inventory import results_by_key
from storage.delta_table.compaction import SmallFiles, compact, has_many_small_files, small_files
from storage.delta_table.schema_evolution import schema_of
from storage.lake.bookkeeping import condense, row_files
from storage.lake.journal import Journal
from storage.lake.layout import BOOKKEEPING, Lake, joined_of, rows_of, subscription_store_of, versions_of
from storage.lake.plan import Plan
from storage.state.folds import Folds, fold_rows, fold_subscriptions, fold_versions, is_due
from transforms.model.schemas import BATCH, named
from transforms.model.specs import JoinSpec


@dataclass(frozen=True)
class JoinStore:
    """A base of a join, which holds about as many rows as the left side."""

    base: Callable[[str], str]
    count: str
    """Of the counts of a join in a batch that of the rows of its log."""
    fold: Callable[[SparkSession, Lake, Journal, Plan, JoinSpec], None]


_STORES: Mapping[type[AnyJoin], tuple[JoinStore, ...]] = {
    Join: (JoinStore(subscription_store_of, "subscriptions", fold_subscriptions),),
    StreamJoin: (),
}
"""The bases of the joins of each kind."""


@dataclass(frozen=True)
class Behind:
    """How far a base is behind its log."""

    base: str
    """Its name below the lake."""
    counts: Sequence[int]
    """Rows of each batch that the log is ahead."""
    held: int
    """About how many rows the base holds."""
    begun: bool
    """Whether a fold was begun and interrupted."""

    @property
    def due(self) -> bool:
        """Whether a fold is worth the work."""
        return self.begun or is_due(self.counts, self.held)

    @property
    def any(self) -> bool:
        """Whether there is anything to fold."""
        return self.begun or bool(self.counts)

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        cut_off = "; a fold was cut off" if self.begun else ""
        return f"{len(self.counts):,} batches with {sum(self.counts):,} rows behind {self.held:,}{cut_off}"


def behind(pipeline: Pipeline, lake: Lake, journal: Journal, snapshot: Plan) -> list[Behind]:
    """Look at every base, of tables first. `snapshot`: a plan that pins the state after the last finished batch."""
    rows = journal.last.rows if journal.last else {}
    folds = Folds(lake)

    def of(base: str, kind: str, name: str, count: str, held: int) -> Behind:
        folded = snapshot.folded.get(base, 0)
        counts = [getattr(p, kind).get(name, {}).get(count, 0) for p in journal.published[folded:]]
        return Behind(base, [c for c in counts if c], held, folds.unfinished(base, snapshot) is not None)

    def held(name: str) -> int:
        folded = snapshot.folded.get(versions_of(name), 0)
        return sum(p.tables.get(name, {}).get("versions", 0) for p in journal.published[:folded])

    histories = [name for name, table in pipeline.tables.items() if table.versioned]
    return [
        *[of(rows_of(name), "tables", name, "changed", rows.get(name, 0)) for name in pipeline.tables],
        *[of(versions_of(name), "tables", name, "versions", held(name)) for name in histories],
        *[
            of(store.base(name), "joins", name, store.count, rows.get(join.left_side, 0))
            for name, join in pipeline.joins.items()
            if name in journal.kept
            for store in _STORES[type(join)]
        ],
    ]


def fold(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, base: str
) -> None:
    """Fold a base up to the last finished batch, which `snapshot` pins the state after."""
    for name, table in pipeline.tables.items():
        if base == rows_of(name):
            retention = table.tombstone_retention
            if table.versioned:  # a late record within the history must not find its key forgotten
                retention = max(retention, table.versioned.history_retention)
            fold_rows(spark, lake, journal, snapshot, table.spec, retention)
        if base == versions_of(name):
            fold_versions(spark, lake, journal, snapshot, table.spec)
    for name, join in pipeline.joins.items():
        for store in _STORES[type(join)]:
            if base == store.base(name):
                store.fold(spark, lake, journal, snapshot, pipeline.spec_of_join(name))


def put_together(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, table: str, found: SmallFiles
) -> None:
    """Write files of a table anew: of a joined table in the order of its key, of a log in that of its batches."""
    order: list[Column] = [named(BATCH)]
    snapshot = lake.snapshot(table)
    stored = schema_of(snapshot.delta).names if snapshot else []
    for name in results_by_key(pipeline):
        key = pipeline.spec_of_join(name).joined_key
        # a join that is to begin anew may have another key by now
        if table == joined_of(name) and set(key) <= set(stored):
            order = [named(column) for column in key]
    compact(spark, lake.path(table), found, order, journal.transaction_apart("compact", table))


def tidy_up(pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan) -> None:
    """Do after a batch what keeps the next ones fast: folds, compaction of joined tables and of the bookkeeping.

    `snapshot`: a plan of the next batch, never committed, that pins the state after the last finished one.
    """
    for found in behind(pipeline, lake, journal, snapshot):
        if found.due:
            fold(pipeline, spark, lake, journal, snapshot, found.base)
    for name in results_by_key(pipeline):
        table = joined_of(name)
        if table in snapshot.versions and has_many_small_files(lake.path(table)):
            put_together(pipeline, spark, lake, journal, table, small_files(lake.path(table)))
    for path in map(lake.path, lake.versions(BOOKKEEPING)):
        if row_files(path).due:
            condense(path, pipeline.maintenance.retention)
