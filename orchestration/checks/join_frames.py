"""Reads the frames that the rules of `expectations` need from a lake: all rows, or those that batches touched.

Restricted frames are closed as `expectations.rules` asks for: with a primary key come its left row, its joined row and
its subscriptions, and with these the right rows of their keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.validation import Asset
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import changes_of, response_log_of, subscription_log_of
from lakejoin.storage.spark.kept_frames import fits_one_task
from lakejoin.storage.state.pinned_state import State, read_log
from lakejoin.transforms.foreign_key_join.emissions import emit_pairs, with_joined_hash
from lakejoin.transforms.foreign_key_join.insert_only import pair
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.foreign_key_join.star import emit_inserts
from lakejoin.transforms.foreign_key_join.subscriptions import live_subscriptions, subscription_schema
from lakejoin.transforms.model.join_sides import (
    inserted,
    joined_left_key,
    joined_under_rules,
    left_under_rules,
    of_result,
    right_under_rules,
    right_valued,
    spread,
)
from lakejoin.transforms.model.keys import Keys, restrict
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    BATCH,
    CURRENT,
    DELETED,
    HASH,
    PRIMARY_KEY,
    changes_schema,
    key_struct,
    named,
    rows_schema,
)
from lakejoin.transforms.model.selection import left_out
from lakejoin.transforms.model.specs import JoinSpec, StarSpec, TableSpec

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
    kept: list[DataFrame] = field(default_factory=list)
    """What several frames are made of, persisted."""

    def keep(self, rows: DataFrame) -> DataFrame:
        """The same rows; those that batches touched are computed once, until `close`."""
        if self.since is not None:
            self.kept.append(rows.persist())
        return rows

    def close(self) -> None:
        """Free what is kept."""
        for rows in self.kept:
            rows.unpersist()

    def keys(self, rows: DataFrame, *, null_matches: bool = False) -> Keys:
        """Touched keys, to look rows up by."""
        return Keys(rows, few=self.touched <= BROADCAST, null_matches=null_matches)

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
    """Return the five frames of a join, and of a star those of its join with each right side."""
    join = pipeline.join_spec(name)
    keys = None if scope.since is None else scope.keep(_touched(pipeline, join, scope))
    left_rows = scope.keep(rows_of_left(pipeline, join, scope, keys))
    stored, null_matches = scope.state.joined(join), join.key_may_be_null
    joined = scope.keep(_of_keys(stored, join.joined_left_key, scope, keys, null_matches=null_matches))
    right_rows = [
        scope.keep(_right_rows(pipeline, part, left_rows, joined, scope, keys)) for part in join.parts
    ]
    lacking = _lacking(left_rows, right_rows, join)
    return [
        Asset(
            checked_name(part),
            part.how,
            {
                "left_rows": left_under_rules(left_rows, part, key_struct(join.left_key)),
                "right_rows": right_under_rules(rows, part),
                "subscriptions": _subscriptions(part, scope, keys),
                "joined": _joined(joined, lacking, join, part),
                "answers": _answers(part, scope),
            },
            small=scope.in_one_task,
        )
        for part, rows in zip(join.parts, right_rows, strict=True)
    ]


def checked_name(part: JoinSpec) -> str:
    """What a join with one right side is called among the assets that are checked."""
    return part.name.replace("/", ".")


def _touched(pipeline: Pipeline, join: ResultSpec, scope: Scope) -> DataFrame:
    """Primary keys of whatever could have moved a joined row, or should have.

    They are those of changed left rows, of messages, of answers, and of subscribers of changed right rows.
    """
    if join.left in pipeline.joins:
        left = recent(scope.state.joined(pipeline.keyed_spec(join.left)), scope)
    else:
        left = _changed(pipeline.tables[join.left].spec, scope)
    keys = left.select(key_struct(join.left_key).alias("key"))
    for part in join.parts:
        logs = [
            recent(read_log(scope.state, subscription_log_of(part.name), subscription_schema(part)), scope),
            recent(read_log(scope.state, response_log_of(part.name), response_schema(part)), scope),
        ]
        for named_by in (*logs, _subscribers(pipeline, part, scope)):
            keys = keys.unionByName(named_by.select(F.col("primary_key").alias("key")))
    return keys.distinct()


def _subscribers(pipeline: Pipeline, join: JoinSpec, scope: Scope) -> DataFrame:
    """Live subscriptions of the right keys that changed: a row that was not answered is in no other log.

    Of groups those that are there: which ones went, nothing says.
    """
    if join.right in pipeline.tables:
        rows = _changed(pipeline.tables[join.right].spec, scope)
    else:
        rows = recent(scope.state.joined(pipeline.group_spec(join.right)), scope)
    changed = rows.select(key_struct(join.right_key).alias("foreign_key")).distinct()
    return live_subscriptions(scope.state.subscriptions_to(join, scope.keys(changed)))


def _changed(table: TableSpec, scope: Scope) -> DataFrame:
    """Changes that were a key's state after their batch."""
    schema = changes_schema(table.columns, table.sequence)
    return recent(read_log(scope.state, changes_of(table.name), schema), scope).where(CURRENT)


def recent(rows: DataFrame, scope: Scope) -> DataFrame:
    """Those of the batches that are looked at."""
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


def rows_of_left(pipeline: Pipeline, join: ResultSpec, scope: Scope, keys: DataFrame | None) -> DataFrame:
    """Rows of a left side, tombstones of a table included: all of them, or those of `keys`."""
    if join.left in pipeline.joins:
        source = pipeline.keyed_spec(join.left)
        stored, null_matches = scope.state.joined(source), source.key_may_be_null
        rows = _of_keys(stored, join.left_key, scope, keys, null_matches=null_matches)
        return of_result(with_joined_hash(rows, join.left_columns))
    return _rows(pipeline.tables[join.left].spec, scope, keys)


def _right_rows(
    pipeline: Pipeline, part: JoinSpec, left_rows: DataFrame, joined: DataFrame, scope: Scope,
    keys: DataFrame | None,
) -> DataFrame:  # fmt: skip
    """Rows of a right side: all of them, or those that the rows of `keys` name."""
    right_keys = None
    if keys is not None:
        left = left_under_rules(left_rows, part, key_struct(part.left_key))
        shown = joined_under_rules(joined, part, joined_left_key(part))
        named_by = [
            left.select(F.col("foreign_key").alias("key")),
            shown.select(F.col("right_key").alias("key")),
        ]
        right_keys = named_by[0].unionByName(named_by[1])
    if part.right in pipeline.tables:
        return _rows(pipeline.tables[part.right].spec, scope, right_keys)
    groups = of_result(scope.state.joined(pipeline.group_spec(part.right)))
    return _of_keys(groups, part.right_key, scope, right_keys, null_matches=False)


def _joined(joined: DataFrame, lacking: DataFrame | None, join: ResultSpec, part: JoinSpec) -> DataFrame:
    """The frame `joined` of a join with one right side. `lacking`: as `_lacking` returns them."""
    rows, reason = joined_under_rules(joined, part, joined_left_key(join)), left_out(join, part)
    if lacking is None or reason is None:
        return rows
    return rows.unionByName(joined_under_rules(lacking.where(reason), part, named(PRIMARY_KEY), reason))


def _lacking(left: DataFrame, rights: Sequence[DataFrame], join: ResultSpec) -> DataFrame | None:
    """The rows that a join makes of its sides, with the marks of those that its result lacks; None if it lacks none."""
    if join.where is None and not join.needed:
        return None
    inserts = inserted(left.where(~named(DELETED)), join)
    of_rights = [right_valued(rows, part) for part, rows in zip(join.parts, rights, strict=True)]
    unchanged = [rows.limit(0) for rows in of_rights]
    if isinstance(join, StarSpec):
        return emit_inserts(inserts, of_rights, unchanged, join)
    return emit_pairs(pair(inserts, of_rights[0], unchanged[0], join.parts[0].how), join)


def _of_keys(
    rows: DataFrame, key: tuple[str, ...], scope: Scope, keys: DataFrame | None, *, null_matches: bool
) -> DataFrame:
    if keys is None:
        return rows
    return restrict(rows, scope.keys(spread(keys, "key", key), null_matches=null_matches), key)


def _subscriptions(join: JoinSpec, scope: Scope, keys: DataFrame | None) -> DataFrame:
    if keys is None:
        messages = scope.state.subscriptions(join)
    else:
        wanted = scope.keys(keys.select(F.col("key").alias("primary_key")))
        messages = scope.state.subscriptions_of(join, wanted)
    return live_subscriptions(messages).select("foreign_key", "primary_key", "hash")


def _answers(join: JoinSpec, scope: Scope) -> DataFrame:
    """The last applied answer of each primary key: a batch applies at most one."""
    log = recent(read_log(scope.state, response_log_of(join.name), response_schema(join)), scope)
    last = F.max_by(F.struct("foreign_key", "hash", "cause"), named(BATCH)).alias("last")
    applied = log.where(F.col("resolution") == "applied").groupBy("primary_key").agg(last)
    return applied.select("primary_key", "last.*")
