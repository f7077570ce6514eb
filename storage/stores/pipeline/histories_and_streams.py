"""Opens histories, streams and buffers of a pipeline as stores for reading, as of a finished batch."""

from pyspark.sql.types import StructType

from lakejoin.storage.lake.layout import Lake, changes_of, joined_of, records_of, versions_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.pinned_state import history_bound
from lakejoin.storage.stores.kinds.version_history import VersionColumns
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.pipeline.tables import folded, pinned, reader_of
from lakejoin.storage.stores.scan.order import Between, Column
from lakejoin.storage.stores.scan.reader import Reader
from lakejoin.storage.stores.scan.table_columns import Shape, paths
from lakejoin.storage.stores.write.layout import Layout
from lakejoin.transforms.changelog.versions import versions_schema
from lakejoin.transforms.model.event_time import moved_back
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    OP,
    POSITION,
    POSITION_TYPE,
    SEQUENCE,
    TIME,
    VALID_FROM,
    VERDICT,
    quoted,
)
from lakejoin.transforms.model.specs import StreamJoinSpec, TableSpec
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import ACCEPTED, stream_joined_schema

_POSITION: tuple[Column, ...] = tuple((POSITION, name) for name in POSITION_TYPE.names)
_BATCH: Column = (BATCH,)
_TIME: Column = (TIME,)
_APPLIED: dict[Column, frozenset[str]] = {(VERDICT,): frozenset({"applied"})}
_ACCEPTED: dict[Column, frozenset[str]] = {(VERDICT,): frozenset(ACCEPTED)}
_VERSIONS: dict[Column, frozenset[str]] = {
    (VERDICT,): frozenset({"applied", "history", "duplicate"}),
    (OP,): frozenset({"upsert", "delete", "filtered", "tombstone"}),
}


def versions_reader(lake: Lake, snapshot: Plan, table: TableSpec) -> Reader:
    """Read the history of a versioned table by key and time; deletes are hidden unless asked for.

    Which changes are versions is said by `transforms.changelog.versions.as_versions`. The ends that rows state are
    those a fold knew: a version ends where the next one of its key begins.
    """
    schema = versions_schema(table)
    shape = Shape(
        key=paths(table.key),
        times=((VALID_FROM,),),
        rank=(*[(SEQUENCE, name) for name in table.sequence.names], *_POSITION),
        gone={(DELETED,): frozenset({True})},
        columns=tuple(schema.names),
    )
    sources = folded(
        lake, snapshot, versions_of(table.name), changes_of(table.name), _VERSIONS, {VALID_FROM: TIME}
    )
    return reader_of(sources, shape, schema)


def versioned_store(lake: Lake, snapshot: Plan, table: TableSpec) -> VersionedKeyValueStore:
    """Open the history of a versioned table as a versioned store."""
    values = tuple(name for name in table.columns.names if name not in table.key)
    layout = Layout("versioned", table.key, values, retention=table.history_retention)
    columns = VersionColumns(VALID_FROM, deleted=DELETED)
    reader, bound = versions_reader(lake, snapshot, table), history_bound(snapshot, table)
    return VersionedKeyValueStore(reader, layout, columns=columns, bound=bound)


def stream_reader(lake: Lake, snapshot: Plan, stream: TableSpec) -> Reader:
    """Read the events of a stream by key, then by time."""
    sources = pinned(lake, snapshot, records_of(stream.name), where=_APPLIED)
    return reader_of(sources, _records(stream.key, stream_schema(stream)), stream_schema(stream))


def stream_joined_reader(lake: Lake, snapshot: Plan, join: StreamJoinSpec) -> Reader:
    """Read what a stream's records were joined with, by key, then by time."""
    schema = stream_joined_schema(join)
    return reader_of(pinned(lake, snapshot, joined_of(join.name)), _records(join.joined_key, schema), schema)


def buffer_reader(
    lake: Lake, snapshot: Plan, join: StreamJoinSpec, stream: TableSpec, *, by_key: bool = True
) -> Reader:
    """Read the records that wait for their grace period, by key and time or in the order in which they leave.

    What waits is a part of the stream's records: those after stream time less grace that refer to something. The
    foreign key must be columns: `foreign_columns`.
    """
    limits: dict[Column, Between] = {_BATCH: Between(snapshot.released(join.name), low_inclusive=False)}
    limits |= {(name,): Between() for name in foreign_columns(join) or ()}
    if (bound := moved_back(snapshot.clocks.get(f"joins/{join.name}"), join.grace)) is not None:
        limits[_TIME] = Between(bound, low_inclusive=False)
    schema = stream_schema(stream)
    shape = _records(join.left_key, schema) if by_key else _records((TIME, *join.left_key), schema, times=())
    sources = pinned(lake, snapshot, records_of(stream.name), where=_ACCEPTED, limits=limits)
    return reader_of(sources, shape, schema)


def buffer_store(lake: Lake, snapshot: Plan, join: StreamJoinSpec, stream: TableSpec) -> WindowStore:
    """Open the buffer of a join as a window store that keeps every record of a key and time."""
    values = tuple(name for name in stream.columns.names if name not in join.left_key)
    layout = Layout("window", join.left_key, values, duplicates=True)
    return WindowStore(buffer_reader(lake, snapshot, join, stream), layout)


def foreign_columns(join: StreamJoinSpec) -> tuple[str, ...] | None:
    """Names of the left columns that a foreign key is; None where it has expressions, which only Spark can compute."""
    names = {quoted(name): name for name in join.left_columns.names}
    found = tuple(names[part] for part in join.foreign_key if part in names)
    return found if len(found) == len(join.foreign_key) else None


def _records(key: tuple[str, ...], schema: StructType, times: tuple[Column, ...] = (_TIME,)) -> Shape:
    """Rows of a log of records: all of them count."""
    return Shape(key=paths(key), times=times, rank=_POSITION, columns=tuple(schema.names), every=True)
