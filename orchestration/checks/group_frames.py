"""Reads the frames that the rules of groups need from a lake: of all groups, or of those that batches touched."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.validation import Asset
from lakejoin.orchestration.checks.join_frames import Scope, recent, rows_of_left
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.layout import subscription_log_of
from lakejoin.storage.state.pinned_state import read_log
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.foreign_key_join.subscriptions import live_subscriptions, subscription_schema
from lakejoin.transforms.groups.aggregates import aggregated_groups
from lakejoin.transforms.groups.batch import THERE, shown_groups
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.join_sides import foreign_key, left_under_rules, spread
from lakejoin.transforms.model.keys import Keys, restrict
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    FOREIGN_KEY,
    HASH,
    PRIMARY_KEY,
    key_struct,
    named,
)

ROWS = ".rows"
"""How the rows that are grouped are called among what is checked, after the name of the groups."""


def group_assets(pipeline: Pipeline, name: str, scope: Scope) -> list[Asset]:
    """Return the frames of groups, and those of the rows that are grouped.

    Of groups that are adjusted no log says which a batch has touched, so all are looked at.
    """
    group = pipeline.group_spec(name)
    (part,) = group.parts
    if group.adjusts:
        left = rows_of_left(pipeline, group, scope, None)
        return [
            Asset(
                name,
                "groups",
                {"expected": _expected(left, None, group), "found": _found(None, group, scope)},
            )
        ]
    messages = scope.state.subscriptions(part)
    touched = None
    if scope.since is not None:
        log = read_log(scope.state, subscription_log_of(name), subscription_schema(part))
        of_rows = recent(log, scope).select("foreign_key").where(F.col("foreign_key").isNotNull())
        touched = scope.keep(of_rows.distinct())
        messages = scope.state.subscriptions_to(part, scope.keys(touched, null_matches=True))
    store = scope.keep(live_subscriptions(messages))
    keys = None if touched is None else store.select(F.col("primary_key").alias("key"))
    left = scope.keep(rows_of_left(pipeline, group, scope, keys))
    under_rules = left_under_rules(left, part, key_struct(group.left_key))
    subscriptions = store.select("foreign_key", "primary_key", "hash")
    return [
        Asset(
            name,
            "groups",
            {"expected": _expected(left, touched, group), "found": _found(touched, group, scope)},
        ),
        Asset(f"{name}{ROWS}", "members", {"left_rows": under_rules, "subscriptions": subscriptions}),
    ]


def _expected(left: DataFrame, touched: DataFrame | None, group: GroupSpec) -> DataFrame:
    """The groups as the rows themselves say, whatever they have subscribed to."""
    (part,) = group.parts
    live = left.where(~named(DELETED))
    columns = [named(name) for name in group.left_columns.names]
    rows = live.select(
        foreign_key(part).alias(FOREIGN_KEY), key_struct(group.left_key).alias(PRIMARY_KEY), *columns
    )
    found = aggregated_groups(rows, group).withColumn(THERE, F.lit(True))
    shown = shown_groups(found.withColumn(PRIMARY_KEY, named(FOREIGN_KEY)), group).where(~named(TOMBSTONE))
    expected = shown.select(named(PRIMARY_KEY).alias("primary_key"), named(HASH).alias("hash"))
    if touched is None:
        return expected
    return restrict(
        expected, Keys(touched.toDF("primary_key"), few=False, null_matches=True), ("primary_key",)
    )


def _found(touched: DataFrame | None, group: GroupSpec, scope: Scope) -> DataFrame:
    rows = scope.state.joined(group)
    if touched is not None:
        keys = spread(touched, "foreign_key", group.joined_key)
        rows = restrict(rows, scope.keys(keys, null_matches=True), group.joined_key)
    return rows.select(
        key_struct(group.joined_key).alias("primary_key"),
        named(HASH).alias("hash"),
        named(BATCH).alias("batch"),
    )
