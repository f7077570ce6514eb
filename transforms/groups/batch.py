"""Leads the changes of a batch to the groups that they touch, and computes these anew from their rows.

A row subscribes to its group as the left row of a join does to its right one. So the rows of a group are found by its
key, a prefix of the CombinedKey of their subscriptions (KIP-213: "followed up group by").
"""

from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from lakejoin.transforms.foreign_key_join.batch import Inserts, Left
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from lakejoin.transforms.foreign_key_join.insert_only import subscribe
from lakejoin.transforms.foreign_key_join.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    with_previous,
)
from lakejoin.transforms.groups.aggregates import aggregated_groups
from lakejoin.transforms.groups.totals import SIGN, adjusted, totals_of
from lakejoin.transforms.model.expressions import meets
from lakejoin.transforms.model.group_spec import TOTALS, GroupSpec
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.join_sides import unknown, with_foreign_keys
from lakejoin.transforms.model.keys import Keys
from lakejoin.transforms.model.schemas import FOREIGN_KEY, HASH, POSITION, PRIMARY_KEY, empty, named, no_batch
from lakejoin.transforms.model.selection import FAILED
from lakejoin.transforms.model.specs import JoinSpec

THERE = "_lj_there"
"""True for a group that has rows."""


class Stored(Protocol):
    """The messages that were sent before the batch, and what it left of groups that are adjusted."""

    def has_subscriptions(self, join: str) -> bool:
        """Whether there are any."""

    def subscriptions_to(self, join: JoinSpec, keys: Keys) -> DataFrame:
        """Those to some groups. `keys`: the column `foreign_key`."""

    def totals(self, group: GroupSpec, keys: Keys) -> DataFrame:
        """`FOREIGN_KEY` and `TOTALS` of some groups. `keys`: their columns."""


class Frames(Protocol):
    """Keeps what is read more than once, as it suits the size of the batch."""

    def keep(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once."""

    def keep_found(self, frame: DataFrame) -> DataFrame:
        """The same rows, which few keys have found and which may be many."""

    def keep_if_small(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once if they are few."""

    def keys(self, rows: DataFrame, most: int | None = None, *, null_matches: bool = False) -> Keys:
        """Keys of the batch, to look rows up by."""


@dataclass(frozen=True)
class GroupBatch:
    """What a batch does to groups."""

    spec: GroupSpec
    rows: DataFrame
    """primary_key, hash, position, value of the rows that changed, and of those that subscribe to `store`."""
    log: DataFrame | None
    """Rows of `subscription_log`; None of groups that are adjusted, as in what follows."""
    store: DataFrame | None
    """Live subscriptions to the groups that the batch touches."""
    emissions: DataFrame
    """Rows of the groups with `PRIMARY_KEY`, the key of the group, `TOMBSTONE`, and `FAILED` where a value may fail."""


def group_batch(group: GroupSpec, left: Left, stored: Stored, frames: Frames) -> GroupBatch:
    """Lead the changes of what is grouped to emissions; nothing is committed here."""
    if not left.changed:
        return _unchanged(group, left)
    if group.adjusts:
        return _adjusted(group, left, stored, frames)
    (part,) = group.parts
    if left.inserts is not None and left.inserts.alone and not stored.has_subscriptions(part.name):
        return _begun(group, left.inserts, frames)
    changes = with_previous(left.changes, left.before)
    log = send_subscriptions(changes, part.how)
    changed = left.after
    if left.inserts is not None:
        log = log.unionByName(subscribe(left.inserts.rows, part.how))
        changed = changed.unionByName(_as_rows(left.inserts))
    log, changed = frames.keep(log), frames.keep_if_small(changed)
    touched = frames.keep(log.select("foreign_key").where(F.col("foreign_key").isNotNull()).distinct())
    messages = log
    if stored.has_subscriptions(part.name):
        wanted = frames.keys(touched, null_matches=True)
        messages = log.unionByName(frames.keep_found(stored.subscriptions_to(part, wanted)))
    store = frames.keep(live_subscriptions(messages))
    rows = changed
    if stored.has_subscriptions(part.name):
        (lookup,) = left.lookups
        rows = rows.unionByName(frames.keep_if_small(lookup(unknown(store, "primary_key", changed))))
    emissions = frames.keep(_emissions(touched, store, rows, group))
    return GroupBatch(group, rows, log, store, emissions)


def _unchanged(group: GroupSpec, left: Left) -> GroupBatch:
    """What becomes of groups of which no row changed."""
    (part,) = group.parts
    spark = left.after.sparkSession
    log = None if group.adjusts else empty(spark, subscription_schema(part))
    schema = StructType([StructField(PRIMARY_KEY, group.joined_key_type), *joined_schema(group)])
    emissions = empty(spark, schema.add(TOMBSTONE, BooleanType()).add(FAILED, BooleanType()))
    return GroupBatch(group, left.after, log, log, emissions)


def _begun(group: GroupSpec, inserts: Inserts, frames: Frames) -> GroupBatch:
    """What groups make of inserts, where they begin with these: each row has one message, and its group beside it."""
    log = subscribe(inserts.rows, group.parts[0].how)
    rows = inserts.rows.select(
        F.col("foreign_key").alias(FOREIGN_KEY), F.col("primary_key").alias(PRIMARY_KEY), "value.*"
    )
    found = aggregated_groups(rows, group).withColumns({PRIMARY_KEY: named(FOREIGN_KEY), THERE: F.lit(True)})
    return GroupBatch(group, _as_rows(inserts), log, log, frames.keep(shown_groups(found, group)))


def _adjusted(group: GroupSpec, left: Left, stored: Stored, frames: Frames) -> GroupBatch:
    """What groups that are adjusted make of changes: what each row was goes, and what it is now comes."""
    (part,) = group.parts
    rows = left.after
    if left.inserts is not None:
        rows = rows.unionByName(_as_rows(left.inserts))
    rows = frames.keep_if_small(rows)
    assert left.was is not None, "it is there for groups that are adjusted"
    were = left.was.join(left.after.select("primary_key"), "primary_key", "left_semi")
    signed = [
        with_foreign_keys(of_rows.where(F.col("hash").isNotNull()), part).select(
            F.col("foreign_key").alias(FOREIGN_KEY), F.lit(sign).alias(SIGN), "left_value.*"
        )
        for of_rows, sign in ((rows, 1), (were, -1))
    ]
    changes = frames.keep(totals_of(signed[0].unionByName(signed[1]), group))
    keys = changes.select(f"{FOREIGN_KEY}.*")
    before = stored.totals(group, frames.keys(keys, null_matches=True))
    found = adjusted(changes, before, group).withColumn(PRIMARY_KEY, named(FOREIGN_KEY))
    there = F.when(F.col(TOTALS)["rows"] > 0, True)
    emissions = shown_groups(found.withColumn(THERE, there), group)
    return GroupBatch(group, rows, None, None, frames.keep(emissions))


def _as_rows(inserts: Inserts) -> DataFrame:
    return inserts.rows.select("primary_key", "hash", named(POSITION).alias("position"), "value")


def members(store: DataFrame, rows: DataFrame) -> DataFrame:
    """The rows of groups, as `aggregated_groups` takes them.

    `store`: foreign_key and primary_key of the live subscriptions. `rows`: primary_key, hash (null for a deleted row)
    and value.
    """
    live = rows.where(F.col("hash").isNotNull()).select(F.col("primary_key").alias(PRIMARY_KEY), "value")
    of_groups = store.select(F.col("foreign_key").alias(FOREIGN_KEY), F.col("primary_key").alias("row_key"))
    met = of_groups.join(live, F.col("row_key") == F.col(PRIMARY_KEY))
    return met.select(FOREIGN_KEY, PRIMARY_KEY, "value.*")


def _emissions(touched: DataFrame, store: DataFrame, rows: DataFrame, group: GroupSpec) -> DataFrame:
    """A row for each group that was touched; a tombstone where it has no rows, or does not meet the condition."""
    found = aggregated_groups(members(store, rows), group).withColumn(THERE, F.lit(True))
    keys = touched.select(F.col("foreign_key").alias(PRIMARY_KEY))
    beside = keys.join(found, named(PRIMARY_KEY).eqNullSafe(named(FOREIGN_KEY)), "left")
    return shown_groups(beside, group)


def shown_groups(found: DataFrame, group: GroupSpec) -> DataFrame:
    """Emissions of groups. `found`: `PRIMARY_KEY` and what `aggregated_groups` returns, with `THERE`, null for none."""
    key = [named(PRIMARY_KEY)[name].alias(name) for name in group.joined_key]
    values = [named(aggregate.name) for aggregate in group.aggregates]
    marks = [F.coalesce(FAILED, F.lit(False)).alias(FAILED)] if group.computed_texts else []
    totals = [named(TOTALS)] if TOTALS in found.columns else []
    rows = found.select(PRIMARY_KEY, *key, *values, *marks, *totals, F.col(THERE).isNotNull().alias(THERE))
    shown = F.col(THERE) if group.having is None else F.col(THERE) & meets(group.having)
    rows = rows.withColumn(TOMBSTONE, ~shown).withColumn(HASH, value_hash(group.columns))
    kept = ~F.col(TOMBSTONE)
    return rows.select(
        PRIMARY_KEY,
        TOMBSTONE,
        *[FAILED] * len(marks),
        *[named(name) for name in group.joined_key],
        *[F.when(kept, named(a.name)).alias(a.name) for a in group.aggregates],
        no_batch(),
        F.when(kept, F.col(HASH)).alias(HASH),
        *totals,
    )
