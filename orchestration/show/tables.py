"""Opens the tables of a lake by the names that users know, as of a published batch."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.orchestration.errors import unknown
from lakejoin.orchestration.show.frame_view import Open, View, view_by_key
from lakejoin.orchestration.show.result_histories import history_views
from lakejoin.orchestration.show.time_views import stream_join_views, time_views
from lakejoin.storage.lake.layout import (
    QUARANTINE,
    changelog_of,
    changes_of,
    response_log_of,
    shown_name,
    subscription_log_of,
    subscription_store_of,
)
from lakejoin.storage.state.pinned_state import State, read_log
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, changelog_schema
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.foreign_key_join.subscriptions import STEP, live_subscriptions, subscription_schema
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    POSITION,
    QUARANTINE_SCHEMA,
    changes_schema,
    named,
)
from lakejoin.transforms.model.specs import JoinSpec, TableSpec

_KEYS = ("primary_key", "foreign_key")


def find_view(pipeline: Pipeline, name: str) -> Open:
    """Return what opens a table of the lake; it can be called once there is a session.

    Raises `WrongUsage` for a name that there is not; the message lists those there are.
    """
    known = views(pipeline)
    if name not in known:
        raise unknown("table", name, known)
    return known[name]


def views(pipeline: Pipeline) -> dict[str, Open]:
    """Return what can be shown, by name: tables, joins, their logs and stores, and the quarantine."""
    found: dict[str, Open] = {}
    for name, table in pipeline.tables.items():
        found[name] = partial(_table, table.spec)
        found[f"{name}.rows"] = partial(_rows, table.spec)
        found[f"{name}.changes"] = partial(_changes, table.spec)
    for name, of_tables in pipeline.kept_by_key.items():
        found |= _VIEWS[type(of_tables)](pipeline, name)
    found |= time_views(pipeline)
    for name, of_stream in pipeline.joins_of_streams.items():
        found |= _VIEWS[type(of_stream)](pipeline, name)
    return {**found, QUARANTINE: _quarantine}


def _table(table: TableSpec, state: State) -> View:
    """Live rows."""
    live = state.all_rows(table).where(~named(DELETED))
    return view_by_key(table.name, live, table.key)


def _rows(table: TableSpec, state: State) -> View:
    """Live rows and the tombstones of deleted keys."""
    return view_by_key(f"{table.name}.rows", state.all_rows(table), table.key)


def _changes(table: TableSpec, state: State) -> View:
    """Every source record that could be read, with its status."""
    schema = changes_schema(table.columns, table.sequence)
    rows = read_log(state, changes_of(table.name), schema)
    return view_by_key(f"{table.name}.changes", rows, table.key, named(BATCH), named(POSITION))


def _join_views(pipeline: Pipeline, name: str) -> dict[str, Open]:
    join, logs = pipeline.join_spec(name), (subscription_log_of, response_log_of)
    found: dict[str, Open] = {join.name: partial(_joined, join)}
    for part in join.parts:
        for table, schema in zip(logs, (subscription_schema(part), response_schema(part)), strict=True):
            found[shown_name(table(part.name))] = partial(_log, part, table(part.name), schema)
        found[shown_name(subscription_store_of(part.name))] = partial(_store, part)
    if join.changelog:
        found[shown_name(changelog_of(join.name))] = partial(_changelog, join)
    return found | history_views(join)


def _group_views(pipeline: Pipeline, name: str) -> dict[str, Open]:
    group = pipeline.group_spec(name)
    (part,) = group.parts
    log, store = subscription_log_of(name), subscription_store_of(name)
    found: dict[str, Open] = {name: partial(_joined, group)}
    if not group.adjusts:
        found[shown_name(log)] = partial(_log, part, log, subscription_schema(part))
        found[shown_name(store)] = partial(_store, part)
    if group.changelog:
        found[shown_name(changelog_of(name))] = partial(_changelog, group)
    return found | history_views(group)


_VIEWS: Mapping[type[AnyJoin], Callable[[Pipeline, str], dict[str, Open]]] = {
    Join: _join_views,
    Star: _join_views,
    StreamJoin: stream_join_views,
    Group: _group_views,
}
"""What can be shown of the joins of each kind."""


def _joined(join: ResultSpec, state: State) -> View:
    rows = state.joined(join)
    return view_by_key(join.name, rows, join.joined_key)


def _log(join: JoinSpec, table: str, schema: StructType, state: State) -> View:
    step = [named(STEP)] if STEP in schema.names else []
    order = (F.col("primary_key"), named(BATCH), named(POSITION), *step)
    return View(shown_name(table), read_log(state, table, schema), _primary_key(join), order, _KEYS)


def _store(join: JoinSpec, state: State) -> View:
    """Live subscriptions."""
    rows = live_subscriptions(state.subscriptions(join))
    order = (F.col("foreign_key"), F.col("primary_key"))
    return View(shown_name(subscription_store_of(join.name)), rows, _primary_key(join), order, _KEYS)


def _changelog(join: ResultSpec, state: State) -> View:
    rows = read_log(state, changelog_of(join.name), changelog_schema(join))
    # where a row leaves a pair for another, the retraction comes first
    key = join.joined_key if isinstance(join, GroupSpec) else join.joined_left_key
    order = (*map(named, key), named(BATCH), named(TOMBSTONE).desc())
    view = view_by_key(shown_name(changelog_of(join.name)), rows, join.joined_key)
    return replace(view, order=order)


def _quarantine(state: State) -> View:
    rows = read_log(state, QUARANTINE, QUARANTINE_SCHEMA)
    return View(QUARANTINE, rows, {}, tuple(map(named, (BATCH, "table", "date", "file", "line"))))


def _primary_key(join: JoinSpec) -> dict[str, Column]:
    return {name: F.col("primary_key")[name] for name in join.primary_key_type.names}
