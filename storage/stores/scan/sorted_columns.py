"""Sorts Arrow tables in a store's order, unless they are sorted already, and restricts them to a span."""

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakejoin.storage.stores.scan.order import Between, Bound, Column
from lakejoin.storage.stores.scan.table_columns import Shape, dotted

SortKey = tuple[str, str, str]
"""Name of a column, its direction, and where its nulls go."""


def flat(rows: pa.Table, schema: pa.Schema, columns: Collection[Column]) -> pa.Table:
    """Return columns and fields of structs side by side, by their dotted names."""
    return pa.table({dotted(column): typed(rows, schema, column) for column in columns})


def typed(rows: pa.Table, schema: pa.Schema, column: Column) -> pa.ChunkedArray:
    """Return one column as a schema has it: a file may have it otherwise, or be older than it."""
    found = rows[column[0]] if column[0] in rows.column_names else None
    for name in column[1:]:
        found = None if found is None else pc.struct_field(found, name)
    if column[0] not in schema.names:
        return found
    kind = schema.field(column[0]).type
    for name in column[1:]:
        kind = kind.field(name).type
    if found is None:
        return pa.chunked_array([pa.nulls(rows.num_rows, kind)])
    return found if found.type == kind else found.cast(kind)


def sort_keys(shape: Shape) -> list[SortKey]:
    """Order of places; at one place the row that counts comes first, or all by rising rank."""
    rank = ("ascending", "at_start") if shape.every else ("descending", "at_end")
    places = [(dotted(column), "ascending", "at_end") for column in shape.order]
    return [*places, *[(dotted(column), *rank) for column in shape.rank]]


def is_sorted(rows: pa.Table, keys: Sequence[SortKey]) -> bool:
    """Whether rows are in an order already; nulls are taken for disorder."""
    if rows.num_rows < 2:
        return True
    fine: Any = pa.scalar(True)
    for name, direction, _ in reversed(keys):
        before, after = rows[name].slice(0, rows.num_rows - 1), rows[name].slice(1)
        in_order = pc.less if direction == "ascending" else pc.greater
        fine = pc.or_(in_order(before, after), pc.and_(pc.equal(before, after), fine))
    return bool(pc.all(pc.fill_null(fine, False)).as_py())


def sorted_rows(rows: pa.Table, keys: Sequence[SortKey]) -> pa.Table:
    """Return rows in an order."""
    return rows if is_sorted(rows, keys) else rows.take(pc.sort_indices(rows, sort_keys=list(keys)))


def backwards(rows: pa.Table) -> pa.Table:
    """Return the exact reverse."""
    return rows.take(pa.array(np.arange(rows.num_rows - 1, -1, -1)))


def firsts(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the first of rows that stand together and have the same values in these columns."""
    if rows.num_rows < 2:
        return rows
    changes = [pc.not_equal(rows[name].slice(1), rows[name].slice(0, rows.num_rows - 1)) for name in names]
    different = reduce(pc.or_, changes).combine_chunks()
    return rows.filter(pa.concat_arrays([pa.array([True]), different]))


def from_bound(rows: pa.Table, names: Sequence[str], bound: Bound, *, low: bool) -> pa.ChunkedArray:
    """Tell row by row whether its place is on the inner side of an end of a span."""
    inner, found = pc.greater if low else pc.less, pa.scalar(bound.inclusive)
    for name, value in reversed(list(zip(names, bound.place, strict=False))):
        column, limit = rows[name], pa.scalar(value, rows[name].type)
        found = pc.or_(inner(column, limit), pc.and_(pc.equal(column, limit), found))
    return found


def within(column: pa.ChunkedArray, limit: Between) -> pa.ChunkedArray:
    """Tell row by row whether a value is within limits; null never is."""
    found: Any = pc.is_valid(column)
    if limit.low is not None:
        least = pc.greater_equal if limit.low_inclusive else pc.greater
        found = pc.and_(found, least(column, pa.scalar(limit.low, column.type)))
    if limit.high is not None:
        found = pc.and_(found, pc.less_equal(column, pa.scalar(limit.high, column.type)))
    return found
