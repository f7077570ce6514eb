"""What `show` can show: the tables of a lake by the names that users know, as of a published batch."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DateType, LongType, StringType, StructType

from orchestration.config import Pipeline
from orchestration.errors import WrongUsage, unknown
from orchestration.spark_checks import reason_of
from storage.joined import joined_schema
from storage.lake import (
    QUARANTINE,
    changelog_of,
    changes_of,
    response_log_of,
    subscription_log_of,
    subscription_store_of,
)
from storage.logs import read_log
from storage.state import State
from transforms.resolution import TOMBSTONE
from transforms.responses import response_schema
from transforms.schemas import BATCH, DELETED, POSITION, JoinSpec, TableSpec, changes_schema, named
from transforms.subscriptions import STEP, live_subscriptions, subscription_schema

QUARANTINE_SCHEMA = (
    StructType()
    .add(BATCH, LongType())
    .add("table", StringType())
    .add("date", DateType())
    .add("file", StringType())
    .add("line", LongType())
    .add("reason", StringType())
    .add("detail", StringType())
    .add("raw", StringType())
)

_INTERNAL = "_lj_"
_KEYS = ("primary_key", "foreign_key")


@dataclass(frozen=True)
class View:
    """Rows that can be shown, filtered and sorted."""

    name: str
    rows: DataFrame
    key: Mapping[str, Column]
    """What identifies a row for its user, by name; empty where nothing does."""
    order: tuple[Column, ...]
    structs: tuple[str, ...] = ()
    """Columns that hold a key as a struct."""

    def where(self, condition: str) -> "View":
        """Keep the rows that an SQL condition holds for; it may use internal columns. Raises `WrongUsage`."""
        try:
            return replace(self, rows=self.rows.where(condition))
        except (AnalysisException, ParseException) as error:
            columns = ", ".join(self.rows.columns)
            raise WrongUsage(
                f"--where {condition!r}: {reason_of(error)}\ncolumns of {self.name}: {columns}"
            ) from None

    def of_key(self, text: str) -> "View":
        """Keep the rows of a key: its text, or a JSON array of a composite one. Raises `WrongUsage`."""
        if not self.key:
            raise WrongUsage(f"{self.name} has no key; use --where")
        values = _key_values(self, text)
        types = self.rows.select(*self.key.values()).schema
        rows = self.rows
        for (name, column), value, field in zip(self.key.items(), values, types, strict=True):
            wanted = F.lit(value).try_cast(field.dataType)
            if rows.sparkSession.range(1).where(wanted.isNull()).head(1):
                expected = field.dataType.simpleString()
                raise WrongUsage(f"--key {text!r}: {name} is {expected}, found {value!r}")
            rows = rows.where(column == wanted)
        return replace(self, rows=rows)

    def shown(self, *, internal: bool) -> DataFrame:
        """Return the rows in the order of their key, with or without the internal columns."""
        columns = [name for name in self.rows.columns if internal or not name.startswith(_INTERNAL)]
        return self.rows.orderBy(*self.order).select(*[named(name) for name in columns])


def _key_values(view: View, text: str) -> list[str]:
    if len(view.key) == 1:
        return [text]
    try:
        values = json.loads(text, parse_float=str, parse_int=str)
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, list) or len(values) != len(view.key):
        names = ", ".join(view.key)
        raise WrongUsage(f"--key {text!r}: the key of {view.name} is a JSON array of {names}")
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def find_view(pipeline: Pipeline, name: str) -> Callable[[State], View]:
    """Return what opens a table of the lake; it can be called once there is a session.

    Raises `WrongUsage` for a name that there is not; the message lists those there are.
    """
    known = views(pipeline)
    if name not in known:
        raise unknown("table", name, known)
    return known[name]


def views(pipeline: Pipeline) -> dict[str, Callable[[State], View]]:
    """Return what can be shown, by name: tables, joins, their logs and stores, and the quarantine."""
    found: dict[str, Callable[[State], View]] = {}
    for name, table in pipeline.tables.items():
        found[name] = partial(_table, table.spec)
        found[f"{name}.rows"] = partial(_rows, table.spec)
        found[f"{name}.changes"] = partial(_changes, table.spec)
    for name in pipeline.joins:
        found |= _join_views(pipeline.join_spec(name))
    return {**found, QUARANTINE: _quarantine}


def _table(table: TableSpec, state: State) -> View:
    """Live rows."""
    live = state.all_rows(table).where(~named(DELETED))
    return View(table.name, live, _columns(table.key), _named(table.key))


def _rows(table: TableSpec, state: State) -> View:
    """Live rows and the tombstones of deleted keys."""
    return View(f"{table.name}.rows", state.all_rows(table), _columns(table.key), _named(table.key))


def _changes(table: TableSpec, state: State) -> View:
    """Every source record that could be read, with its verdict."""
    schema = changes_schema(table.columns, table.sequence)
    rows = read_log(state, changes_of(table.name), schema)
    order = (*_named(table.key), named(BATCH), named(POSITION))
    return View(f"{table.name}.changes", rows, _columns(table.key), order)


def _join_views(join: JoinSpec) -> dict[str, Callable[[State], View]]:
    logs = (subscription_log_of, response_log_of)
    found: dict[str, Callable[[State], View]] = {join.name: partial(_joined, join)}
    for table, schema in zip(logs, (subscription_schema(join), response_schema(join)), strict=True):
        found[_shown_name(table(join.name))] = partial(_log, join, table(join.name), schema)
    found[_shown_name(subscription_store_of(join.name))] = partial(_store, join)
    if join.changelog:
        found[_shown_name(changelog_of(join.name))] = partial(_changelog, join)
    return found


def _shown_name(table: str) -> str:
    """`joins/J/response_log` is shown as `J.response_log`."""
    return ".".join(table.split("/")[1:])


def _joined(join: JoinSpec, state: State) -> View:
    rows = state.joined(join.name, joined_schema(join))
    return View(join.name, rows, _columns(join.left_key), _named(join.left_key))


def _log(join: JoinSpec, table: str, schema: StructType, state: State) -> View:
    step = [named(STEP)] if STEP in schema.names else []
    order = (F.col("primary_key"), named(BATCH), named(POSITION), *step)
    return View(_shown_name(table), read_log(state, table, schema), _primary_key(join), order, _KEYS)


def _store(join: JoinSpec, state: State) -> View:
    """Live subscriptions."""
    rows = live_subscriptions(state.subscriptions(join))
    order = (F.col("foreign_key"), F.col("primary_key"))
    return View(_shown_name(subscription_store_of(join.name)), rows, _primary_key(join), order, _KEYS)


def _changelog(join: JoinSpec, state: State) -> View:
    schema = StructType([*joined_schema(join)]).add(TOMBSTONE, BooleanType()).add("redundant", BooleanType())
    rows = read_log(state, changelog_of(join.name), schema)
    order = (*_named(join.left_key), named(BATCH))
    return View(_shown_name(changelog_of(join.name)), rows, _columns(join.left_key), order)


def _quarantine(state: State) -> View:
    rows = read_log(state, QUARANTINE, QUARANTINE_SCHEMA)
    return View(QUARANTINE, rows, {}, _named((BATCH, "table", "date", "file", "line")))


def _columns(names: tuple[str, ...]) -> dict[str, Column]:
    return {name: named(name) for name in names}


def _named(names: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(named(name) for name in names)


def _primary_key(join: JoinSpec) -> dict[str, Column]:
    return {name: F.col("primary_key")[name] for name in join.primary_key_type.names}
