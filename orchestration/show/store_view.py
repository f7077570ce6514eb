"""Reads the rows of a store that `show` prints one by one, as far as they are asked for, without a JVM."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from pyspark.sql.types import StructType

from lakejoin.orchestration.show.key_ranges import Ordered, Range
from lakejoin.orchestration.show.row_texts import csv_line, json_line, texts
from lakejoin.orchestration.show.text_formats import Format, header
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.stores.kinds.version_history import followed
from lakejoin.storage.stores.scan.order import Column
from lakejoin.storage.stores.scan.reader import Reader, Row
from lakejoin.transforms.model.schemas import DELETED, VALID_FROM, VALID_TO, is_internal


@dataclass(frozen=True)
class StoredTable:
    """A table that is kept by key, before it is opened."""

    ordered: Ordered
    schema: StructType
    """All columns that a row has, as they are shown."""
    open: Callable[[Lake, Plan], Reader]
    keys: tuple[str, ...] = ()
    """Columns that hold a key as a struct."""
    tombstones: bool = False
    """Whether those of deleted keys are shown."""

    def answers(self, asked: Range) -> bool:
        """Whether the store can answer what is asked by its order."""
        return self.ordered.key_is_place or asked.given != ["--key"]


@dataclass(frozen=True)
class StoreView:
    """A table at a snapshot, and the part of it that is asked for."""

    table: StoredTable
    reader: Reader
    asked: Range
    internal: bool
    """Whether internal columns are shown."""

    @property
    def name(self) -> str:
        """The name the table is shown by."""
        return self.table.ordered.name

    @property
    def header(self) -> list[str]:
        """Names of the columns that are shown."""
        return list(self._shown.names)

    def texts(self, limit: int | None) -> Iterator[list[str | None]]:
        """Yield the columns of each row as text."""
        return (texts(row, self._shown, self.table.keys) for row in islice(self._rows(), limit))

    def lines(self, form: Format, limit: int | None) -> Iterator[str]:
        """Yield the lines of a file of such a form, each with its end."""
        if form == "csv":
            yield header(self.header)
            yield from map(csv_line, self.texts(limit))
        else:
            rows = islice(self._rows(), limit)
            yield from (json_line(row, self._shown, self.table.keys) for row in rows)

    @property
    def _shown(self) -> StructType:
        columns = [c for c in self.table.schema if self.internal or not is_internal(c.name)]
        return StructType(columns)

    def _rows(self) -> Iterator[Row]:
        ordered, reverse = self.table.ordered, self.asked.reverse
        span = ordered.span(self.asked)
        if not ordered.validity:
            return self.reader.rows(span, reverse=reverse, tombstones=self.table.tombstones)
        start, end = ordered.times(self.asked)
        every = self.reader.rows(span, reverse=reverse, tombstones=True)
        return (
            row
            for row in with_ends(every, ordered.columns, reverse=reverse)
            if not row[DELETED]
            if end is None or row[VALID_FROM] <= end
            if start is None or row[VALID_TO] is None or row[VALID_TO] > start
        )


def open_view(table: StoredTable, lake: Lake, snapshot: Plan, asked: Range, *, internal: bool) -> StoreView:
    """Open a table at a snapshot for what is asked. Raises `WrongUsage` for what it cannot be asked."""
    table.ordered.span(asked)
    return StoreView(table, table.open(lake, snapshot), asked, internal)


def with_ends(versions: Iterator[Row], key: tuple[Column, ...], *, reverse: bool) -> Iterator[Row]:
    """Give each version the end that the next one of its key sets it; they come by key, then by time."""
    if reverse:
        after: Row | None = None
        for row in versions:
            yield row | {VALID_TO: _begin(after, row, key)}
            after = row
        return
    for row, following in followed(versions):
        yield row | {VALID_TO: _begin(following, row, key)}


def _begin(after: Row | None, row: Row, key: tuple[Column, ...]) -> object:
    """When a version begins, if it is of the same key as a row."""
    same = after is not None and all(after[name] == row[name] for (name,) in key)
    return after[VALID_FROM] if after is not None and same else None
