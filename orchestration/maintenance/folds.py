"""Finds which bases and small files are due, and folds and compacts them: after a batch or apart, never within one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import Column, SparkSession

from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.orchestration.lake_state.declared_tables import declared_tables
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.lake_state.inventory import tables_by_key
from lakejoin.orchestration.maintenance.ended_versions import EndedVersions, ended_versions, remove_ended
from lakejoin.storage.delta_table.compaction import (
    SmallFiles,
    compact,
    has_many_small_files,
    optimize,
    small_files,
)
from lakejoin.storage.delta_table.schema_evolution import schema_of
from lakejoin.storage.lake.bookkeeping import condense, row_files
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import (
    BOOKKEEPING,
    Lake,
    history_of,
    left_rows_of,
    rows_of,
    subscription_store_of,
    versions_of,
)
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.folds import (
    Folds,
    fold_left_rows,
    fold_rows,
    fold_subscriptions,
    fold_versions,
    is_due,
    pays_by_foreign_key,
)
from lakejoin.storage.state.settled_times import settled_until
from lakejoin.transforms.model.declaration import UNDECLARED
from lakejoin.transforms.model.schemas import BATCH, VALID_FROM, named
from lakejoin.transforms.model.specs import JoinSpec


@dataclass(frozen=True)
class JoinStore:
    """A base of a join with one right side, which holds about as many rows as the left side."""

    base: Callable[[str], str]
    count: str
    """Of the counts of a join in a batch that of the rows of its log."""
    fold: Callable[[SparkSession, Lake, Journal, Plan, JoinSpec], None]


_SUBSCRIPTIONS = JoinStore(subscription_store_of, "subscriptions", fold_subscriptions)
_STORES: Mapping[type[AnyJoin], tuple[JoinStore, ...]] = {
    Join: (_SUBSCRIPTIONS,),
    Star: (_SUBSCRIPTIONS,),
    StreamJoin: (),
    Group: (_SUBSCRIPTIONS,),
}
"""The bases of the joins of each kind, of each of their right sides."""


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
    worth: bool
    """Whether a fold is worth the work."""

    @property
    def due(self) -> bool:
        """Whether to fold without being asked."""
        return self.begun or self.worth

    @property
    def any(self) -> bool:
        """Whether there is anything to fold."""
        return self.begun or bool(self.counts)

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        cut_off = "; a fold was cut off" if self.begun else ""
        return f"{len(self.counts):,} batches with {sum(self.counts):,} rows behind {self.held:,}{cut_off}"


def behind(pipeline: Pipeline, lake: Lake, journal: Journal, snapshot: Plan) -> list[Behind | EndedVersions]:
    """Look at every base, of tables first, and at histories of results.

    `snapshot`: a plan that pins the state after the last finished batch.
    """
    rows = journal.last.rows if journal.last else {}
    folds = Folds(lake)

    def of(base: str, kind: str, name: str, count: str, held: int) -> Behind:
        folded = snapshot.folded.get(base, 0)
        found = [getattr(p, kind).get(name, {}).get(count, 0) for p in journal.published[folded:]]
        counts = [c for c in found if c]
        return Behind(base, counts, held, folds.unfinished(base, snapshot) is not None, is_due(counts, held))

    def by_foreign_key(join: JoinSpec, table: Behind) -> Behind | None:
        """The copy of a left table, if it is or should be there; made anew where a fold of the table overtakes it."""
        found = of(left_rows_of(join.name), "tables", join.left, "changed", table.held)
        folded, folded_rows = (snapshot.folded.get(base, 0) for base in (found.base, table.base))
        kind, changed = ("joins", "emissions") if join.right in pipeline.joins else ("tables", "changed")
        asked = [getattr(p, kind).get(join.right, {}).get(changed, 0) for p in journal.published[folded:]]
        pays = pays_by_foreign_key(table.held, asked)
        there = found.begun or found.base in snapshot.versions
        return replace(found, worth=pays and (table.due or folded < folded_rows)) if pays or there else None

    def held(name: str) -> int:
        folded = snapshot.folded.get(versions_of(name), 0)
        return sum(p.tables.get(name, {}).get("versions", 0) for p in journal.published[:folded])

    histories = [name for name, table in pipeline.tables.items() if table.versioned]
    tables = {
        name: of(rows_of(name), "tables", name, "changed", rows.get(name, 0)) for name in pipeline.tables
    }
    copies = [
        by_foreign_key(part, tables[join.left])
        for name, join in pipeline.joins_of_tables.items()
        if name in journal.kept and join.left in tables
        for part in pipeline.join_spec(name).parts
    ]
    return [
        *tables.values(),
        *[of(versions_of(name), "tables", name, "versions", held(name)) for name in histories],
        *[
            of(store.base(part), "joins", part, store.count, rows.get(join.left_side, 0))
            for name, join in pipeline.joins.items()
            if name in journal.kept
            for part in join.part_names
            for store in _STORES[type(join)]
        ],
        *[copy for copy in copies if copy is not None],
        *ended_versions(pipeline, lake, journal, snapshot),
    ]


def fold(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan, base: str
) -> None:
    """Fold a base up to the last finished batch, which `snapshot` pins the state after.

    Of the history of a result, which has no log behind it, versions are removed that are past their retention.
    """
    remove_ended(pipeline, spark, lake, journal, snapshot, base)
    for name, table in pipeline.tables.items():
        if base == rows_of(name):
            fold_rows(spark, lake, journal, snapshot, table.spec, _retention(table))
        if base == versions_of(name):
            fold_versions(spark, lake, journal, snapshot, table.spec, _read_since(pipeline, snapshot, name))
    parts = [
        (type(join), part)
        for name, join in pipeline.joins.items()
        for part in pipeline.spec_of_join(name).parts
    ]
    for kind, part in parts:
        for store in _STORES[kind]:
            if base == store.base(part.name):
                store.fold(spark, lake, journal, snapshot, part)
        if base == left_rows_of(part.name):
            fold_left_rows(spark, lake, journal, snapshot, part, pipeline.tables[part.left].spec)


def _read_since(pipeline: Pipeline, snapshot: Plan, table: str) -> list[datetime | None]:
    """From when on each history by event time reads the versions of a table; None for ever."""
    return [
        settled_until(snapshot, sides)
        for sides in pipeline.event_histories.values()
        if table in {side.name for side in sides}
    ]


def _retention(table: Table) -> timedelta:
    """How long tombstones are kept: a late record within a history must not find its key forgotten."""
    history = table.versioned.history_retention if table.versioned else timedelta(0)
    return max(table.tombstone_retention, history)


def put_together(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, table: str, found: SmallFiles
) -> None:
    """Write files of a table anew: of a result or its history in the order of its key, of a log of its batches.

    Where rows are clustered or tracked, Delta does it.
    """
    declared = next((t.declared for t in declared_tables(pipeline) if t.name == table), UNDECLARED)
    if declared.cluster_by or declared.row_tracking:
        optimize(spark, lake.path(table))
        return
    order: list[Column] = [named(BATCH)]
    snapshot = lake.snapshot(table)
    stored = schema_of(snapshot.delta).names if snapshot else []
    result = tables_by_key(pipeline).get(table)
    if result is not None:
        key = (*pipeline.spec_of_join(result).joined_key, *[VALID_FROM] * (table == history_of(result)))
        columns = dict.fromkeys([*declared.partition_by, *key])
        # a join that is to begin anew may have another key by now
        if columns.keys() <= set(stored):
            order = [named(column) for column in columns]
    compact(spark, lake.path(table), found, order, journal.transaction_apart("compact", table))


def tidy_up(pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, snapshot: Plan) -> None:
    """Do after a batch what keeps the next ones fast: folds, compaction of joined tables and of the bookkeeping.

    `snapshot`: a plan of the next batch, never committed, that pins the state after the last finished one.
    """
    for found in behind(pipeline, lake, journal, snapshot):
        if found.due:
            # a fold reads what the ones before it have folded
            state = finished_state(pipeline, lake, journal, snapshot.planned_at)
            fold(pipeline, spark, lake, journal, state, found.base)
    for table in tables_by_key(pipeline):
        if table in snapshot.versions and has_many_small_files(lake.path(table)):
            put_together(pipeline, spark, lake, journal, table, small_files(lake.path(table)))
    for path in map(lake.path, lake.versions(BOOKKEEPING)):
        if row_files(path).due:
            condense(path, pipeline.maintenance.retention)
