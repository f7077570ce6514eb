"""What a join's two sides are in a batch: a declared table, another join, or all the rows there are (bootstrap)."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestration.batch.joins.foreign_key_join import JoinBatch, Left, Right
from orchestration.batch.tables.table import TableBatch
from storage.spark.kept_frames import Frames, empty
from storage.state.pinned_state import State
from transforms.changelog.current_rows import restrict
from transforms.foreign_key_join.emissions import TOMBSTONE, with_joined_hash
from transforms.foreign_key_join.responses import last_changes
from transforms.model.join_sides import inserted, left_changes, live_keys, spread, valued
from transforms.model.schemas import CURRENT, DELETED, INSERTED, POSITION, POSITION_TYPE, named, rows_schema
from transforms.model.specs import JoinSpec, TableSpec


def left_table(join: JoinSpec, batch: TableBatch, state: State, frames: Frames) -> Left:
    """A declared table as the left side."""
    changed = batch.counts["changed"]
    inserts, rest = None, batch
    if not frames.small and 2 * batch.inserts > changed:
        inserts = inserted(batch.records.where(INSERTED), join)
        rest = replace(batch, records=_rest(batch.records, ~F.col(INSERTED), changed - batch.inserts))
    return Left(
        changed=changed,
        changes=left_changes(rest.applied, join),
        before=live_keys(batch.before, join),
        after=valued(rest.current, join.left_key, join.left_columns),
        lookup=lambda keys: _stored(batch.spec, keys, state, small=frames.small),
        inserts=inserts,
        plain=changed == batch.inserts,
        keys=batch.keys,
    )


def left_join(
    join: JoinSpec, batch: JoinBatch, counts: Mapping[str, int], state: State, frames: Frames
) -> Left:
    """Another join as the left side: its emissions of the batch, redundant ones included, are the changes."""
    rows = with_joined_hash(batch.emissions, batch.spec).withColumns(
        {
            DELETED: F.col(TOMBSTONE),
            POSITION: F.lit(None).cast(POSITION_TYPE),  # one emission for a key in a batch needs no order
        }
    )
    stored = state.joined(batch.spec)

    def lookup(keys: DataFrame) -> DataFrame:
        wanted = spread(keys, "primary_key", join.left_key)
        found = restrict(stored, wanted, join.left_key, small=frames.small)
        hashed = with_joined_hash(found, batch.spec).withColumn(POSITION, F.lit(None).cast(POSITION_TYPE))
        return valued(hashed, join.left_key, join.left_columns)

    keys = batch.emissions.select(*[named(name) for name in join.left_key])
    before = restrict(stored, keys, join.left_key, small=frames.small)
    inserts, rest = None, rows
    if not frames.small and not state.has_joined(join.left):
        inserts = inserted(rows.where(~F.col(DELETED)), join)
        rest = _rest(rows, F.col(DELETED), counts["tombstones"])
    return Left(
        changed=counts["emissions"],
        changes=left_changes(rest, join),
        before=live_keys(before.withColumn(DELETED, F.lit(False)), join),
        after=valued(rest, join.left_key, join.left_columns),
        lookup=lookup,
        inserts=inserts,
        plain=not counts["tombstones"],
    )


def left_bootstrap(join: JoinSpec, rows: DataFrame, changed: int, frames: Frames) -> Left:
    """Every live row of the left side as a change: how a join starts on a lake that has rows already."""
    live, none = rows.where(~named(DELETED)), empty(rows.sparkSession, rows.schema)
    changes = live if frames.small else none
    return Left(
        changed=changed,
        changes=left_changes(changes, join),
        before=live_keys(none, join),
        after=valued(changes, join.left_key, join.left_columns),
        lookup=lambda _keys: valued(none, join.left_key, join.left_columns),
        inserts=None if frames.small else inserted(live, join),
        plain=True,
    )


def right_table(batch: TableBatch, state: State, frames: Frames) -> Right:
    """A declared table as the right side."""
    table = batch.spec
    return Right(
        changed=batch.counts["changed"],
        changes=last_changes(valued(batch.applied, table.key, table.columns)),
        after=valued(batch.changes.where(CURRENT), table.key, table.columns),
        lookup=lambda keys: _stored(table, keys, state, small=frames.small),
    )


def _rest(rows: DataFrame, which: Column, count: int) -> DataFrame:
    """The rows that are no plain inserts: where there are none, a frame of which Spark knows it."""
    return rows.where(which) if count else empty(rows.sparkSession, rows.schema)


def _stored(table: TableSpec, keys: DataFrame, state: State, *, small: bool) -> DataFrame:
    names = rows_schema(table.columns, table.sequence).names
    rows = state.rows(table, spread(keys, "primary_key", table.key), small=small, columns=names)
    return valued(rows, table.key, table.columns)
