"""Which tables of a lake `show` reads as stores, without a JVM: those that are kept by key."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from pyspark.sql.types import StructType

from orchestration.config import Pipeline
from orchestration.formats import Format
from orchestration.ranges import Ordered, Range
from orchestration.row_texts import csv_line, header, json_line, texts
from storage.joined import joined_schema
from storage.lake import Lake
from storage.plan import Plan
from storage.stores.lake_tables import combined_key, joined_reader, rows_reader, subscriptions_reader
from storage.stores.order import Span
from storage.stores.reader import Reader, Row
from transforms.schemas import JoinSpec, TableSpec, rows_schema
from transforms.subscriptions import subscription_schema

_INTERNAL = "_lj_"
_KEYS = ("primary_key", "foreign_key")


@dataclass(frozen=True)
class StoredTable:
    """A table that is kept by key, before it is opened."""

    ordered: Ordered
    schema: StructType
    """All columns that a row has."""
    open: Callable[[Lake, Plan], Reader]
    keys: tuple[str, ...] = ()
    """Columns that hold a key as a struct."""
    tombstones: bool = False
    """Whether those of deleted keys are shown."""

    def answers(self, asked: Range) -> bool:
        """Whether the order of the store helps with what is asked."""
        return self.ordered.key_is_place or asked.given != ["--key"]


@dataclass(frozen=True)
class StoreView:
    """Rows of a store that can be shown: read one by one, as far as they are asked for."""

    table: StoredTable
    reader: Reader
    span: Span
    reverse: bool
    internal: bool
    """Whether internal columns are shown."""

    @property
    def name(self) -> str:
        """The name the table is shown by."""
        return self.table.ordered.name

    @property
    def header(self) -> list[str]:
        """Names of the columns that are shown."""
        return self._shown.names

    def texts(self, limit: int | None) -> Iterator[list[str | None]]:
        """Yield the columns of each row as text."""
        return (texts(row, self._shown, self.table.keys) for row in self._rows(limit))

    def lines(self, form: Format, limit: int | None) -> Iterator[str]:
        """Yield the lines of a file of such a form, each with its end."""
        if form == "csv":
            yield header(self.header)
            yield from map(csv_line, self.texts(limit))
        else:
            yield from (json_line(row, self._shown, self.table.keys) for row in self._rows(limit))

    @property
    def _shown(self) -> StructType:
        columns = [c for c in self.table.schema if self.internal or not c.name.startswith(_INTERNAL)]
        return StructType(columns)

    def _rows(self, limit: int | None) -> Iterator[Row]:
        rows = self.reader.rows(self.span, reverse=self.reverse, tombstones=self.table.tombstones)
        return islice(rows, limit)


def stored_tables(pipeline: Pipeline) -> dict[str, StoredTable]:
    """Return the tables that are kept by key, by the names they are shown by."""
    found: dict[str, StoredTable] = {}
    for name, table in pipeline.tables.items():
        found[name] = _rows(name, table.spec)
        found[f"{name}.rows"] = _rows(f"{name}.rows", table.spec, tombstones=True)
    for name in pipeline.foreign_key_joins:
        join = pipeline.join_spec(name)
        found[name] = _joined(join)
        found[f"{name}.subscription_store"] = _subscriptions(join)
    return found


def view(table: StoredTable, lake: Lake, cut: Plan, asked: Range, *, internal: bool) -> StoreView:
    """Open a table at a cut for what is asked. Raises `WrongUsage` for what it cannot be asked."""
    span = table.ordered.span(asked)
    return StoreView(table, table.open(lake, cut), span, asked.reverse, internal)


def _rows(name: str, table: TableSpec, *, tombstones: bool = False) -> StoredTable:
    time = None if table.event_time is None else (table.event_time,)
    ordered = Ordered(name, _fields(table.columns, table.key), tuple((k,) for k in table.key), time=time)
    schema = rows_schema(table.columns, table.sequence)
    return StoredTable(
        ordered, schema, lambda lake, cut: rows_reader(lake, cut, table), tombstones=tombstones
    )


def _joined(join: JoinSpec) -> StoredTable:
    key = _fields(join.left_columns, join.left_key)
    ordered = Ordered(join.name, key, tuple((name,) for name in join.left_key))
    return StoredTable(ordered, joined_schema(join), lambda lake, cut: joined_reader(lake, cut, join))


def _subscriptions(join: JoinSpec) -> StoredTable:
    """`--key` is the primary key there, which is no range of the CombinedKey: Spark looks for it."""
    key = StructType([*join.foreign_key_type, *join.primary_key_type])
    ordered = Ordered(f"{join.name}.subscription_store", key, combined_key(join), key_is_place=False)
    return StoredTable(
        ordered, subscription_schema(join), lambda lake, cut: subscriptions_reader(lake, cut, join), _KEYS
    )


def _fields(columns: StructType, names: Collection[str]) -> StructType:
    return StructType([columns[name] for name in names])
