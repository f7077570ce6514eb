"""Opens the tables of a pipeline as stores for reading, as of a finished batch.

Rows and subscriptions are a folded base and the log behind it: both are read together, and the last batch of a key
counts. The versions that the snapshot pins are read, whatever a batch under way has written since.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakejoin.storage.lake.layout import (
    Lake,
    changes_of,
    joined_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
)
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.scan.order import Between, Column
from lakejoin.storage.stores.scan.reader import Reader
from lakejoin.storage.stores.scan.table_columns import Shape, Source, paths
from lakejoin.storage.stores.write.layout import Layout
from lakejoin.transforms.foreign_key_join.emissions import joined_schema
from lakejoin.transforms.foreign_key_join.subscriptions import (
    DELETE_AND,
    DELETE_NO,
    STEP,
    subscription_schema,
)
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, CURRENT, DELETED, POSITION, POSITION_TYPE, rows_schema
from lakejoin.transforms.model.specs import JoinSpec, TableSpec

_BATCH: Column = (BATCH,)
NO_NAMES: Mapping[str, str] = MappingProxyType({})
"""For a table whose columns have the names of the store's."""


def rows_reader(lake: Lake, snapshot: Plan, table: TableSpec) -> Reader:
    """Read the rows of a declared table by key; the tombstones of deleted keys are hidden unless asked for."""
    schema = rows_schema(table.columns, table.sequence)
    shape = Shape(
        key=paths(table.key),
        rank=(_BATCH,),
        gone={(DELETED,): frozenset({True})},
        columns=tuple(schema.names),
    )
    settled: dict[Column, frozenset[Any]] = {(CURRENT,): frozenset({True})}
    return reader_of(
        folded(lake, snapshot, rows_of(table.name), changes_of(table.name), settled), shape, schema
    )


def subscriptions_reader(lake: Lake, snapshot: Plan, join: JoinSpec) -> Reader:
    """Read the live subscriptions of a join by CombinedKey: foreign key, then primary key."""
    schema = subscription_schema(join)
    position = [(POSITION, name) for name in POSITION_TYPE.names]
    shape = Shape(
        key=combined_key(join),
        rank=(_BATCH, *position, (STEP,)),
        gone={("instruction",): frozenset({DELETE_NO, DELETE_AND})},
        columns=tuple(schema.names),
    )
    sources = folded(lake, snapshot, subscription_store_of(join.name), subscription_log_of(join.name), {})
    return reader_of(sources, shape, schema)


def joined_reader(lake: Lake, snapshot: Plan, join: ResultSpec) -> Reader:
    """Read the result of a join by its key."""
    schema = joined_schema(join)
    shape = Shape(key=paths(join.joined_key), columns=tuple(schema.names))
    return reader_of(pinned(lake, snapshot, joined_of(join.name)), shape, schema)


def combined_key(join: JoinSpec) -> tuple[Column, ...]:
    """Columns of a join's CombinedKey."""
    foreign = [("foreign_key", name) for name in join.foreign_key_type.names]
    return (*foreign, *[("primary_key", name) for name in join.primary_key_type.names])


def rows_store(lake: Lake, snapshot: Plan, table: TableSpec) -> KeyValueStore:
    """Open the rows of a declared table as a key-value store."""
    values = [name for name in table.columns.names if name not in table.key]
    layout = Layout("key-value", table.key, tuple(values or table.key))
    return KeyValueStore(rows_reader(lake, snapshot, table), layout)


def subscription_store(lake: Lake, snapshot: Plan, join: JoinSpec) -> KeyValueStore:
    """Open the live subscriptions of a join as a key-value store: the first parts of a key are its foreign key."""
    layout = Layout("key-value", ("foreign_key", "primary_key"), ("hash", "instruction"))
    return KeyValueStore(subscriptions_reader(lake, snapshot, join), layout)


def joined_store(lake: Lake, snapshot: Plan, join: ResultSpec) -> KeyValueStore:
    """Open the result of a join as a key-value store."""
    values = [name for name in join.columns.names if name not in join.joined_key]
    layout = Layout("key-value", join.joined_key, tuple(values))
    return KeyValueStore(joined_reader(lake, snapshot, join), layout)


def folded(
    lake: Lake, snapshot: Plan, base: str, log: str, where: Mapping[Column, frozenset[Any]],
    log_names: Mapping[str, str] = NO_NAMES,
) -> list[Source]:  # fmt: skip
    """A base, and the part of its log that it does not hold yet: rows with these values, its columns so named."""
    behind = {_BATCH: Between(snapshot.folded.get(base, 0), low_inclusive=False)}
    return [
        *pinned(lake, snapshot, base),
        *pinned(lake, snapshot, log, where=where, limits=behind, named=log_names),
    ]


def pinned(lake: Lake, snapshot: Plan, table: str, **part: Any) -> list[Source]:
    """A table at the version of a snapshot, or a part of it; nothing where the snapshot has none."""
    version = snapshot.versions.get(table)
    return [] if version is None else [Source(lake.path(table), version, **part)]


def reader_of(sources: Sequence[Source], shape: Shape, schema: StructType) -> Reader:
    """A reader of tables whose columns Spark knows by this schema."""
    types: pa.Schema = to_arrow_schema(schema, timezone="UTC")
    return Reader(sources, shape, schema=types)
