"""Reads the two sides of a join in a batch: a declared table, another join, or all existing rows (bootstrap)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.first_load import apart
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.foreign_key_join.batch import JoinBatch, Left, Right
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, with_joined_hash
from lakejoin.transforms.foreign_key_join.responses import last_changes
from lakejoin.transforms.groups.batch import GroupBatch
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.join_sides import (
    left_changes,
    left_hash,
    left_valued,
    live_keys,
    of_result,
    right_hash,
    right_valued,
    spread,
    without_unread,
)
from lakejoin.transforms.model.keys import Keys, restrict
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    CURRENT,
    DELETED,
    HASH,
    INSERTED,
    empty,
    named,
    rows_schema,
)
from lakejoin.transforms.model.specs import JoinSpec


def left_table(
    join: ResultSpec, batch: TableBatch, rights: Sequence[Right], state: State, frames: Frames
) -> Left:
    """A declared table as the left side; `rights`: what changed on the others, which is why rows are looked up.

    What is grouped has no right side: of its rows those are looked up that are in a group with one that changed.
    """
    changed, table = batch.counts["changed"], batch.spec

    def lookup(part: JoinSpec, to: Keys, keys: DataFrame) -> DataFrame:
        wanted = frames.keys(spread(keys, "primary_key", table.key))
        return left_valued(state.left_rows(part, table, wanted, to), part)

    def lookup_of_group(keys: DataFrame) -> DataFrame:
        wanted = frames.keys(spread(keys, "primary_key", table.key))
        columns = rows_schema(join.left_columns, table.sequence).names
        return left_valued(state.rows(table, wanted, columns), join)

    inserts, others = apart(batch.records, F.col(INSERTED), batch.inserts, changed, join, frames, batch.keys)
    rest = replace(batch, records=others)
    if not join.left_whole:
        read = without_unread(others, rest.applied, batch.before, table.key, left_hash(join))
        rest = replace(batch, records=frames.keep(read))
    return Left(
        changed=changed,
        changes=left_changes(rest.applied, join),
        before=live_keys(batch.before, join),
        after=left_valued(rest.current, join),
        was=_was(batch.before.where(~named(DELETED)), join),
        lookups=[
            partial(lookup, part, _pointed(part, right))
            for part, right in zip(join.parts, rights, strict=True)
        ]
        if rights
        else [lookup_of_group],
        inserts=inserts,
    )


def _pointed(join: JoinSpec, right: Right) -> Keys:
    """The right keys that changed: left rows that are looked up point at one of them."""
    return Keys(spread(right.changes, "primary_key", join.right_key), few=True, most=right.changed)


def left_join(
    join: ResultSpec, batch: JoinBatch | GroupBatch, counts: Mapping[str, int], state: State, frames: Frames
) -> Left:
    """Another join as the left side: its emissions of the batch, redundant ones included, are the changes."""
    rows = of_result(with_joined_hash(batch.emissions, join.left_columns), F.col(TOMBSTONE))
    stored, null_matches = state.joined(batch.spec), batch.spec.key_may_be_null

    def lookup(keys: DataFrame) -> DataFrame:
        wanted = frames.keys(spread(keys, "primary_key", join.left_key), null_matches=null_matches)
        return left_valued(_as_rows(restrict(stored, wanted, join.left_key), join), join)

    changed_keys = batch.emissions.select(*[named(name) for name in join.left_key])
    keys = frames.keys(changed_keys, null_matches=null_matches)
    before = restrict(stored, keys, join.left_key)
    changed = counts["emissions"]
    came = 0 if state.has_joined(join.left) else changed - counts["tombstones"]
    inserts, rest = apart(rows, ~F.col(DELETED), came, changed, join, frames)
    if len(join.left_columns) < len(batch.spec.columns):
        was = with_joined_hash(before, join.left_columns).withColumn(DELETED, F.lit(False))
        rest = frames.keep(without_unread(rest, rest, was, join.left_key, named(HASH)))
    return Left(
        changed=changed,
        changes=left_changes(rest, join),
        before=live_keys(before.withColumn(DELETED, F.lit(False)), join),
        after=left_valued(rest, join),
        was=_was(_as_rows(before, join), join),
        lookups=[lookup] * len(join.parts),
        inserts=inserts,
    )


def _was(before: DataFrame, join: ResultSpec) -> DataFrame | None:
    """Live rows before the batch, where the join reads what they were: of others not all columns are at hand."""
    return left_valued(before, join) if isinstance(join, GroupSpec) and join.adjusts else None


def _as_rows(stored: DataFrame, join: ResultSpec) -> DataFrame:
    """Rows of a joined table as those of a left side."""
    return of_result(with_joined_hash(stored, join.left_columns))


def left_bootstrap(join: ResultSpec, rows: DataFrame, changed: int, frames: Frames) -> Left:
    """Every live row of the left side as a change, for a join that begins in a lake with rows."""
    live, none = rows.where(~named(DELETED)), empty(rows.sparkSession, rows.schema)
    inserts, changes = apart(live, F.lit(True), changed, changed, join, frames)
    return Left(
        changed=changed,
        changes=left_changes(changes, join),
        before=live_keys(none, join),
        after=left_valued(changes, join),
        was=_was(none, join),
        lookups=[lambda _keys: left_valued(none, join)] * len(join.parts),
        inserts=inserts,
    )


def right_groups(
    join: JoinSpec, batch: GroupBatch, counts: Mapping[str, int], state: State, frames: Frames
) -> Right:
    """Groups as the right side: their emissions of the batch are the changes, and have no position."""
    group = batch.spec
    emitted, stored = of_result(batch.emissions, F.col(TOMBSTONE)), of_result(state.joined(group))
    if not join.right_whole:
        keys = frames.keys(emitted.select(*map(named, group.joined_key)), null_matches=True)
        before = restrict(stored, keys, group.joined_key)
        emitted = without_unread(emitted, emitted, before, group.joined_key, right_hash(join))

    def lookup(keys: DataFrame) -> DataFrame:
        wanted = frames.keys(spread(keys, "primary_key", group.joined_key))
        return right_valued(restrict(stored, wanted, group.joined_key), join)

    after = frames.keep_if_small(right_valued(emitted, join))
    return Right(
        changed=counts["emissions"],
        changes=after.select("primary_key", "hash", "position"),
        after=after,
        lookup=lookup,
    )


def right_table(join: JoinSpec, batch: TableBatch, state: State, frames: Frames) -> Right:
    """A declared table as the right side."""
    table, applied = batch.spec, batch.applied
    if not join.right_whole:
        applied = without_unread(applied, applied, batch.before, table.key, right_hash(join))

    def lookup(keys: DataFrame) -> DataFrame:
        wanted = frames.keys(spread(keys, "primary_key", table.key))
        rows = state.rows(table, wanted, rows_schema(join.right_columns, table.sequence).names)
        return right_valued(rows, join)

    return Right(
        changed=batch.counts["changed"],
        changes=last_changes(right_valued(applied, join)),
        after=right_valued(batch.changes.where(CURRENT), join),
        lookup=lookup,
    )
