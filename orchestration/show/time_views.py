"""Opens streams, versioned tables and the joins between them for `show`."""

from dataclasses import replace
from datetime import datetime
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.show.frame_view import Open, View, view_by_key
from lakejoin.orchestration.show.result_histories import result_at
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import joined_of, records_of
from lakejoin.storage.state.pinned_state import State, history_bound, read_log
from lakejoin.transforms.changelog.versions import intervals
from lakejoin.transforms.model.event_time import instant, valid_at
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    FOREIGN_KEY,
    POSITION,
    TIME,
    VALID_FROM,
    VALID_TO,
    VERDICT,
    is_internal,
    named,
)
from lakejoin.transforms.model.specs import StreamJoinSpec, TableSpec
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import stream_joined_schema, waiting


def time_views(pipeline: Pipeline) -> dict[str, Open]:
    """Return what can be shown of versioned tables and of streams, by name."""
    found: dict[str, Open] = {}
    for name, table in pipeline.tables.items():
        if table.versioned:
            found[f"{name}.versions"] = partial(_versions, table.spec)
    for name, stream in pipeline.streams.items():
        found[name] = partial(_stream, stream.spec)
        found[f"{name}.records"] = partial(_records, stream.spec)
    return found


def stream_join_views(pipeline: Pipeline, name: str) -> dict[str, Open]:
    """Return what can be shown of the join of a stream, by name."""
    join = pipeline.stream_join_spec(name)
    found: dict[str, Open] = {name: partial(_joined, join)}
    if join.grace is not None:
        found[f"{name}.buffer"] = partial(_buffer, join, pipeline.streams[join.left].spec)
    return found


def as_of_view(pipeline: Pipeline, name: str, journal: Journal, time: datetime) -> Open:
    """Return what opens a versioned table, or a result that keeps its history, as of a time.

    Raises `WrongUsage` for anything else.
    """
    tables = [n for n, table in pipeline.tables.items() if table.versioned]
    results = [n for n, join in pipeline.joins.items() if join.history_spec is not None]
    if name in results:
        return result_at(pipeline, name, journal, time)
    if name not in tables:
        known = ", ".join([*tables, *results]) or "none"
        raise WrongUsage(
            f"--as-of needs a versioned table, or a result with `history`; found {name!r} (there are: {known})"
        )
    return partial(_as_of, pipeline.tables[name].spec, time)


def _versions(table: TableSpec, state: State) -> View:
    """Validity intervals of live values, by key and time."""
    found = intervals(state.versions(table), table).where(~named(DELETED))
    rows = found.select(*map(named, [*table.columns.names, VALID_FROM, VALID_TO]), *_internal(found.columns))
    return view_by_key(f"{table.name}.versions", rows, table.key, F.col(VALID_FROM))


def _as_of(table: TableSpec, time: datetime, state: State) -> View:
    """The rows that were valid at a time; before the retention, those of keys that did not change since."""
    bound = history_bound(state.plan, table)
    found = intervals(state.versions(table), table)
    valid = valid_at(instant(time), F.col(VALID_FROM), F.col(VALID_TO))
    if bound is not None and time < bound:
        valid &= F.col(VALID_TO).isNull()
    rows = found.where(valid & ~named(DELETED)).select(
        *map(named, table.columns.names), *_internal(found.columns)
    )
    return view_by_key(table.name, rows, table.key)


def _stream(stream: TableSpec, state: State) -> View:
    """The records that are events of the stream."""
    log = read_log(state, records_of(stream.name), stream_schema(stream))
    rows = log.where(F.col(VERDICT) == "applied")
    return view_by_key(stream.name, rows, stream.key, F.col(TIME), named(POSITION))


def _records(stream: TableSpec, state: State) -> View:
    """Every record that could be read, with its status."""
    rows = read_log(state, records_of(stream.name), stream_schema(stream))
    return view_by_key(f"{stream.name}.records", rows, stream.key, named(BATCH), named(POSITION))


def _joined(join: StreamJoinSpec, state: State) -> View:
    rows = read_log(state, joined_of(join.name), stream_joined_schema(join))
    return view_by_key(join.name, rows, join.joined_key, F.col(TIME), named(POSITION))


def _buffer(join: StreamJoinSpec, stream: TableSpec, state: State) -> View:
    """The records that wait for their grace period to pass, first to leave first."""
    clock = state.plan.clocks.get(f"joins/{join.name}")
    log = state.stream_records(stream, after=state.plan.released(join.name))
    rows = waiting(log, join, clock).drop(FOREIGN_KEY)
    view = view_by_key(f"{join.name}.buffer", rows, join.left_key)
    return replace(view, order=(F.col(TIME), *view.order))


def _internal(columns: list[str]) -> list[Column]:
    return [named(name) for name in columns if is_internal(name)]
