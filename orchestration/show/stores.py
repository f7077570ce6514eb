"""Tells which tables of a lake `show` reads as stores, without a JVM: those that are kept by key."""

from collections.abc import Callable, Collection, Mapping
from functools import partial

from pyspark.sql.types import StructType

from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.orchestration.show.key_ranges import Ordered
from lakejoin.orchestration.show.store_view import StoredTable
from lakejoin.storage.lake.layout import shown_name, subscription_store_of
from lakejoin.storage.stores.pipeline.histories_and_streams import (
    buffer_reader,
    foreign_columns,
    stream_joined_reader,
    stream_reader,
    versions_reader,
)
from lakejoin.storage.stores.pipeline.tables import (
    combined_key,
    joined_reader,
    rows_reader,
    subscriptions_reader,
)
from lakejoin.transforms.changelog.versions import versions_schema
from lakejoin.transforms.foreign_key_join.emissions import joined_schema
from lakejoin.transforms.foreign_key_join.subscriptions import subscription_schema
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import TIME, VALID_FROM, VALIDITY, is_internal, rows_schema
from lakejoin.transforms.model.specs import JoinSpec, StreamJoinSpec, TableSpec
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import stream_joined_schema

_KEYS = ("primary_key", "foreign_key")


def stored_tables(pipeline: Pipeline) -> dict[str, StoredTable]:
    """Return the tables that are kept by key, by the names they are shown by."""
    found: list[StoredTable] = []
    for name, table in pipeline.tables.items():
        found += [_rows(name, table.spec), _rows(f"{name}.rows", table.spec, tombstones=True)]
        if table.versioned:
            found.append(_versions(table.spec))
    found += [_stream(stream.spec) for stream in pipeline.streams.values()]
    for name, join in pipeline.joins.items():
        found += _STORED[type(join)](pipeline, name)
    return {table.ordered.name: table for table in found}


def _of_foreign_keys(pipeline: Pipeline, name: str) -> list[StoredTable]:
    join = pipeline.join_spec(name)
    return [] if join.key_may_be_null else [_joined(join), *map(_subscriptions, join.parts)]


def _of_stream_join(pipeline: Pipeline, name: str) -> list[StoredTable]:
    join = pipeline.stream_join_spec(name)
    found = [_stream_joined(join)]
    if join.grace is not None and foreign_columns(join):
        found.append(_buffer(join, pipeline.streams[join.left].spec))
    return found


_STORED: Mapping[type[AnyJoin], Callable[[Pipeline, str], list[StoredTable]]] = {
    Join: _of_foreign_keys,
    Star: _of_foreign_keys,
    StreamJoin: _of_stream_join,
    Group: lambda *_: [],  # a part of their key may be null, so Spark looks them up
}
"""What is kept by key of the joins of each kind."""


def _rows(name: str, table: TableSpec, *, tombstones: bool = False) -> StoredTable:
    time = None if table.event_time is None else (table.event_time,)
    ordered = _ordered(name, table.columns, table.key, time=time)
    schema = rows_schema(table.columns, table.sequence)
    return StoredTable(ordered, schema, partial(rows_reader, table=table), tombstones=tombstones)


def _versions(table: TableSpec) -> StoredTable:
    internal = [field for field in versions_schema(table) if is_internal(field.name)]
    validity = [versions_schema(table)[name] for name in VALIDITY]
    ordered = _ordered(f"{table.name}.versions", table.columns, table.key, time=(VALID_FROM,), validity=True)
    schema = StructType([*table.columns, *validity, *internal])
    return StoredTable(ordered, schema, partial(versions_reader, table=table))


def _joined(join: ResultSpec) -> StoredTable:
    ordered = _ordered(join.name, join.columns, join.joined_key)
    return StoredTable(ordered, joined_schema(join), partial(joined_reader, join=join))


def _subscriptions(join: JoinSpec) -> StoredTable:
    """`--key` is the primary key there, which is no range of the CombinedKey: Spark looks for it."""
    key = StructType([*join.foreign_key_type, *join.primary_key_type])
    name = shown_name(subscription_store_of(join.name))
    ordered = Ordered(name, key, combined_key(join), key_is_place=False)
    return StoredTable(ordered, subscription_schema(join), partial(subscriptions_reader, join=join), _KEYS)


def _stream(stream: TableSpec) -> StoredTable:
    ordered = _ordered(stream.name, stream.columns, stream.key, time=(TIME,))
    return StoredTable(ordered, stream_schema(stream), partial(stream_reader, stream=stream))


def _stream_joined(join: StreamJoinSpec) -> StoredTable:
    ordered = _ordered(join.name, join.columns, join.joined_key, time=(TIME,))
    return StoredTable(ordered, stream_joined_schema(join), partial(stream_joined_reader, join=join))


def _buffer(join: StreamJoinSpec, stream: TableSpec) -> StoredTable:
    """Ordered by time: the record that leaves first comes first."""
    ordered = Ordered(f"{join.name}.buffer", StructType(), (), key_is_place=False, time=(TIME,))
    return StoredTable(
        ordered, stream_schema(stream), partial(buffer_reader, join=join, stream=stream, by_key=False)
    )


def _ordered(
    name: str, columns: StructType, key: Collection[str], *, time: tuple[str] | None = None,
    validity: bool = False,
) -> Ordered:  # fmt: skip
    fields = StructType([columns[part] for part in key])
    return Ordered(name, fields, tuple((part,) for part in key), time=time, validity=validity)
