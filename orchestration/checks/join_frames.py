"""Reads the frames that the rules of `expectations` need from a lake: all rows, or those that batches touched.

Restricted frames are closed as `expectations.rules` asks for: with a primary key come its left row, its joined row and
its subscriptions, and with these the right rows of their keys.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.validation import Asset
from orchestration.config import Pipeline
from storage.lake.journal import Journal
from storage.lake.layout import changes_of, response_log_of, subscription_log_of
from storage.spark.kept_frames import fits_one_task
from storage.state.pinned_state import State, read_log
from transforms.foreign_key_join.emissions import emit_pairs, with_joined_hash
from transforms.foreign_key_join.insert_only import pair
from transforms.foreign_key_join.responses import response_schema
from transforms.foreign_key_join.subscriptions import live_subscriptions, subscription_schema
from transforms.model.join_sides import (
    inserted,
    joined_left_key,
    joined_under_rules,
    left_under_rules,
    right_under_rules,
    right_valued,
    spread,
)
from transforms.model.keys import Keys, restrict
from transforms.model.schemas import (
    BATCH,
    CURRENT,
    DELETED,
    HASH,
    POSITION,
    POSITION_TYPE,
    PRIMARY_KEY,
    changes_schema,
    key_struct,
    named,
    rows_schema,
)
from transforms.model.selection import FILTERED
from transforms.model.specs import JoinSpec, TableSpec

BROADCAST = 500_000
"""Up to so many keys are sent to every task."""


@dataclass(frozen=True)
class Scope:
    """A snapshot of a lake and which of its rows are checked."""

    journal: Journal
    state: State
    since: int | None
    """Rows that batches after this one touched; None for all rows."""
    touched: int
    """About how many rows these are."""

    def keys(self, rows: DataFrame) -> Keys:
        """Touched keys, to look rows up by."""
        return Keys(rows, few=self.touched <= BROADCAST)

    @property
    def in_one_task(self) -> bool:
        """The frames of touched rows fit in one task."""
        return self.since is not None and fits_one_task(self.touched)


def table_asset(table: TableSpec, scope: Scope) -> Asset:
    """Return the frame of a declared table."""
    keys = None
    if scope.since is not None:
        changed = _changed(table, scope).select(key_struct(table.key).alias("key"))
        keys = changed.distinct()
    rows = _keyed(_rows(table, scope, keys), table.key)
    return Asset(table.name, "table", {"rows": rows}, small=scope.in_one_task)


def join_assets(pipeline: Pipeline, name: str, scope: Scope) -> list[Asset]:
    """Return the five frames of a join."""
    join = pipeline.join_spec(name)
    keys = None if scope.since is None else _touched(pipeline, join, scope)
    left_rows, joined = _left_rows(pipeline, join, scope, keys), _joined(join, scope, keys)
    left = left_under_rules(left_rows, join, key_struct(join.left_key))
    right_keys = None
    if keys is not None:
        named_by = [
            left.select(F.col("foreign_key").alias("key")),
            joined.select(F.col("right_key").alias("key")),
        ]
        right_keys = named_by[0].unionByName(named_by[1])
    right_rows = _rows(pipeline.tables[join.right].spec, scope, right_keys)
    if join.where is not None:
        joined = joined.unionByName(_filtered(left_rows, right_rows, join))
    frames = {
        "left_rows": left,
        "right_rows": right_under_rules(right_rows, join),
        "subscriptions": _subscriptions(join, scope, keys),
        "joined": joined,
        "answers": _answers(join, scope),
    }
    return [Asset(name, join.how, frames, small=scope.in_one_task)]


def _touched(pipeline: Pipeline, join: JoinSpec, scope: Scope) -> DataFrame:
    """Primary keys of whatever could have moved a joined row, or should have.

    They are those of changed left rows, of messages, of answers, and of subscribers of changed right rows.
    """
    logs = [
        _recent(read_log(scope.state, subscription_log_of(join.name), subscription_schema(join)), scope),
        _recent(read_log(scope.state, response_log_of(join.name), response_schema(join)), scope),
    ]
    if join.left in pipeline.joins:
        left = _recent(scope.state.joined(pipeline.join_spec(join.left)), scope)
    else:
        left = _changed(pipeline.tables[join.left].spec, scope)
    keys = left.select(key_struct(join.left_key).alias("key"))
    for named_by in (*logs, _subscribers(pipeline.tables[join.right].spec, join, scope)):
        keys = keys.unionByName(named_by.select(F.col("primary_key").alias("key")))
    return keys.distinct()


def _subscribers(right: TableSpec, join: JoinSpec, scope: Scope) -> DataFrame:
    """Live subscriptions of the right keys that changed: a row that was not answered is in no other log."""
    changed = _changed(right, scope).select(key_struct(right.key).alias("foreign_key")).distinct()
    return live_subscriptions(scope.state.subscriptions_to(join, scope.keys(changed)))


def _changed(table: TableSpec, scope: Scope) -> DataFrame:
    """Changes that were a key's state after their batch."""
    schema = changes_schema(table.columns, table.sequence)
    return _recent(read_log(scope.state, changes_of(table.name), schema), scope).where(CURRENT)


def _recent(rows: DataFrame, scope: Scope) -> DataFrame:
    return rows if scope.since is None else rows.where(named(BATCH) > scope.since)


def _rows(table: TableSpec, scope: Scope, keys: DataFrame | None) -> DataFrame:
    """Rows of a table, tombstones included: all of them, or those of `keys`."""
    if keys is None:
        return scope.state.all_rows(table)
    names = rows_schema(table.columns, table.sequence).names
    return scope.state.rows(table, scope.keys(spread(keys, "key", table.key)), names)


def _keyed(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    return rows.select(
        key_struct(key).alias("primary_key"), named(HASH).alias("hash"), named(DELETED).alias("deleted")
    )


def _left_rows(pipeline: Pipeline, join: JoinSpec, scope: Scope, keys: DataFrame | None) -> DataFrame:
    if join.left in pipeline.joins:
        source = pipeline.join_spec(join.left)
        rows = _of_keys(scope.state.joined(source), join.left_key, scope, keys)
        return with_joined_hash(rows, join.left_columns).withColumns(
            {DELETED: F.lit(False), POSITION: F.lit(None).cast(POSITION_TYPE)}
        )
    return _rows(pipeline.tables[join.left].spec, scope, keys)


def _joined(join: JoinSpec, scope: Scope, keys: DataFrame | None) -> DataFrame:
    rows = _of_keys(scope.state.joined(join), join.joined_left_key, scope, keys)
    return joined_under_rules(rows, join, joined_left_key(join))


def _filtered(left: DataFrame, right: DataFrame, join: JoinSpec) -> DataFrame:
    """The pairs that do not meet the condition of a join, as rows of the frame `joined`."""
    live = left.where(~named(DELETED))
    rows = pair(inserted(live, join), right_valued(right, join), right_valued(right.limit(0), join), join.how)
    pairs = emit_pairs(rows, join).where(named(FILTERED))
    return joined_under_rules(pairs, join, named(PRIMARY_KEY), named(FILTERED))


def _of_keys(rows: DataFrame, key: tuple[str, ...], scope: Scope, keys: DataFrame | None) -> DataFrame:
    return rows if keys is None else restrict(rows, scope.keys(spread(keys, "key", key)), key)


def _subscriptions(join: JoinSpec, scope: Scope, keys: DataFrame | None) -> DataFrame:
    if keys is None:
        messages = scope.state.subscriptions(join)
    else:
        wanted = scope.keys(keys.select(F.col("key").alias("primary_key")))
        messages = scope.state.subscriptions_of(join, wanted)
    return live_subscriptions(messages).select("foreign_key", "primary_key", "hash")


def _answers(join: JoinSpec, scope: Scope) -> DataFrame:
    """The last applied answer of each primary key: a batch applies at most one."""
    log = _recent(read_log(scope.state, response_log_of(join.name), response_schema(join)), scope)
    last = F.max_by(F.struct("foreign_key", "hash", "cause"), named(BATCH)).alias("last")
    applied = log.where(F.col("resolution") == "applied").groupBy("primary_key").agg(last)
    return applied.select("primary_key", "last.*")
