"""Splits a store into files and row groups, and tells of each between which places its rows are before it is read.

A row group that is read gives the places of its rows in a span, sorted. If the file is sorted already, nothing is
sorted. Other columns are read when the values of the first row are asked for.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.scan.file_bounds import Bounds, DataFile, bounds_of, groups
from lakejoin.storage.stores.scan.order import Between, Column, Place, Span
from lakejoin.storage.stores.scan.sorted_columns import (
    backwards,
    flat,
    from_bound,
    is_sorted,
    sort_keys,
    sorted_rows,
    within,
)
from lakejoin.storage.stores.scan.table_columns import Shape, Source, dotted

ROW = "_lj_row"
"""Number of a row in its row group."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a table."""

    shape: Shape
    schema: pa.Schema
    """Types of the columns: a file may have others, or be older than a column."""
    source: Source
    span: Span
    reverse: bool

    @property
    def bounded(self) -> tuple[Column, ...]:
        """Columns by whose bounds files and row groups are passed over, as the table has them."""
        columns = dict.fromkeys((*self.shape.order, *(column for column, _ in self.limits)))
        return tuple(map(self.source.stored, columns))

    @property
    def limits(self) -> list[tuple[Column, Between]]:
        """What single columns of a row may hold, by the source and by what is asked."""
        return [
            *self.source.limits.items(),
            *(limit for limit in self.span.within.items() if limit[0] not in self.late),
        ]

    @property
    def late(self) -> dict[Column, Between]:
        """Limits that hold for the last row at a place only: a row that it supersedes must not be shown instead."""
        if self.shape.every or not self.shape.rank:
            return {}
        return {c: limit for c, limit in self.span.within.items() if c not in self.shape.order}

    def place(self, bounds: Bounds, end: int) -> Place:
        """Least (0) or greatest (1) place of rows with these bounds, as far as it is known."""
        ends = (bounds[self.source.stored(column)][end] for column in self.shape.order)
        return tuple(takewhile(lambda value: value is not None, ends))

    def edge(self, bounds: Bounds) -> Place:
        """The place that no row with these bounds comes before."""
        return self.place(bounds, 1 if self.reverse else 0)

    def meets(self, bounds: Bounds) -> bool:
        """Whether rows with these bounds may be asked for."""
        limits = all(limit.meets(*bounds[self.source.stored(column)]) for column, limit in self.limits)
        return limits and self.span.meets(self.place(bounds, 0), self.place(bounds, 1))


@dataclass(frozen=True)
class FilePart:
    """A file that was not opened."""

    table: TableFiles
    file: DataFile
    wanted: Wanted

    @property
    def edge(self) -> Place:
        """The place that no row of the file comes before."""
        return self.wanted.edge(self.file.bounds)

    def open(self) -> "list[GroupPart]":
        """Read its footer: row groups that may hold rows that are asked for."""
        found, first = [], 0
        with self.table.reading(self.file.name) as file:
            for number, group in groups(file):
                bounds = self.file.bounds_with(bounds_of(group, self.wanted.bounded))
                if self.wanted.meets(bounds):
                    found.append(GroupPart(self, number, first, bounds))
                first += group.num_rows
        return found


@dataclass(frozen=True)
class GroupPart:
    """A row group that was not read."""

    of: FilePart
    number: int
    first: int
    """Number of its first row in the file."""
    bounds: Bounds

    @property
    def edge(self) -> Place:
        """The place that no row of it comes before."""
        return self.of.wanted.edge(self.bounds)

    def places(self) -> pa.Table:
        """Read order, rank and numbers of the rows that are asked for, sorted; tombstones are among them."""
        wanted = self.of.wanted
        shape, order = wanted.shape, [*map(dotted, wanted.shape.order)]
        kept = dict.fromkeys((*shape.order, *shape.rank, *shape.gone, *wanted.late))
        needed = {*kept, *wanted.source.where, *(column for column, _ in wanted.limits)}
        rows = flat(self._read(needed), wanted.schema, needed)
        rows = rows.append_column(ROW, pa.array(np.arange(rows.num_rows, dtype=np.int32)))
        rows = rows.filter(self._asked_for(rows)).select([*map(dotted, kept), ROW])
        for bound, low in ((wanted.span.low, True), (wanted.span.high, False)):
            if bound is not None:
                rows = rows.filter(from_bound(rows, order, bound, low=low))
        rows = rows.combine_chunks()
        if not is_sorted(rows, sort_keys(shape)):
            self.of.table.unsorted.add(self.of.file.name)
            rows = sorted_rows(rows, sort_keys(shape))
        return backwards(rows) if wanted.reverse else rows

    @cached_property
    def values(self) -> pa.Table:
        """Columns of all rows of the row group that a reader of the store sees."""
        columns = [(name,) for name in self.of.wanted.shape.columns]
        return flat(self._read(columns), self.of.wanted.schema, columns).combine_chunks()

    def _read(self, columns: Collection[Column]) -> pa.Table:
        """Read columns, by the names that the store has for them; one that the table lacked then is not there."""
        rows, source = self._in_file(columns), self.of.wanted.source
        for column in columns:
            name = source.stored(column)[0]
            if name in self.of.file.folder:
                kind = self.of.wanted.schema.field(column[0]).type
                value = pa.scalar(self.of.file.folder[name], kind)
                rows = rows.append_column(column[0], pa.repeat(value, rows.num_rows))
        return rows

    def _in_file(self, columns: Collection[Column]) -> pa.Table:
        source = self.of.wanted.source
        with self.of.table.reading(self.of.file.name) as file:
            there = set(file.schema_arrow.names) - self.of.file.folder.keys()
            stored = {source.stored(c): c[0] for c in columns if source.stored(c)[0] in there}
            if stored:
                rows = file.read_row_group(self.number, columns=sorted({*map(dotted, stored)}))
                shown = {path[0]: name for path, name in stored.items()}
                # asked for a column `a.b`, a file gives the field `b` of its column `a` as well
                rows = rows.select([name for name in rows.column_names if name in shown])
                return rows.rename_columns([shown[name] for name in rows.column_names])
            count = file.metadata.row_group(self.number).num_rows
        return pa.table({ROW: np.arange(count)})

    def _asked_for(self, rows: pa.Table) -> pa.ChunkedArray:
        """Tell row by row: of the source's part of the table, within limits, not marked as deleted."""
        wanted = self.of.wanted
        found = [pc.is_valid(rows[dotted(column)]) for column in wanted.shape.order]
        found += [_among(rows[dotted(column)], values) for column, values in wanted.source.where.items()]
        found += [within(rows[dotted(column)], limit) for column, limit in wanted.limits]
        if (kept := self.of.file.kept) is not None:
            found.append(_kept(kept, self.first, rows.num_rows))
        return reduce(pc.and_, found)


def tombstones(places: pa.Table, shape: Shape) -> pa.ChunkedArray:
    """Tell row by row whether it is one."""
    marks = [_among(places[dotted(column)], values) for column, values in shape.gone.items()]
    return reduce(pc.or_, marks)


def _among(column: pa.ChunkedArray, values: Collection[Any]) -> pa.ChunkedArray:
    return pc.is_in(column, pa.array(sorted(values), column.type))


def _kept(marks: pa.BooleanArray, first: int, count: int) -> pa.ChunkedArray:
    """Part of a file's marks; they may end with the last row that is marked as deleted."""
    part = marks.slice(first, count)
    return pa.chunked_array([part, pa.array(np.ones(count - len(part), dtype=bool))])
