"""Validates parsed records: why one is quarantined, what it does, what orders it, and its time."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampNTZType, TimestampType

from lakejoin.transforms.model.ignored_records import is_ignored
from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DERIVED,
    DETAIL,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIME,
    UNAVAILABLE,
    named,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import MARKS, marks_of
from lakejoin.transforms.parsing.map_order import with_sorted_maps
from lakejoin.transforms.parsing.options import Cell, Parts, reason_is, records_schema
from lakejoin.transforms.parsing.questions import is_asked

_SHOWN = 100  # characters of a bad value that a message shows


def finish_records(parts: Parts, table: TableSpec) -> DataFrame:
    """Return records as `records_schema` says: one for each line, and one more where a key changed."""
    columns = _evaluated("column", parts.columns)
    order, old_key = _evaluated("order", parts.sequence), _evaluated("old", parts.old_key)
    marks = {MARKS: F.when(is_asked(), marks_of(parts.asked))} if parts.asked else {}
    read = parts.frame.withColumns(
        marks
        | {
            name: with_sorted_maps(cell.value, cell.dtype)
            for kind, cells in (("column", parts.columns), ("order", parts.sequence), ("old", parts.old_key))
            for name, cell in zip(_names(kind, cells), cells, strict=True)
        }
    )
    by_name = {cell.name: cell for cell in (*columns, *order)}
    keys = [by_name[name] for name in table.key]
    ordered = {SEQUENCE: _sequence(by_name, table), TIME: _time(by_name, parts.clock, table)}
    frame = read.withColumns(ordered)
    if parts.flawless:
        frame = frame.withColumns(dict.fromkeys((REASON, DETAIL), F.lit(None).cast("string")))
    else:
        frame = _with_reason(frame, [*by_name.values(), *old_key], keys, by_name, table)
    frame = _with_derived(frame, keys, old_key)
    return _select(frame, columns, dict(zip(table.key, old_key, strict=False)), parts.raw, table, list(marks))


def _names(kind: str, cells: Sequence[Cell]) -> list[str]:
    return [f"_lj_{kind}_{index}" for index in range(len(cells))]


def _evaluated(kind: str, cells: Sequence[Cell]) -> list[Cell]:
    """The same cells, once their values are columns of the frame."""
    return [replace(cell, value=F.col(name)) for name, cell in zip(_names(kind, cells), cells, strict=True)]


def _sequence(by_name: dict[str, Cell], table: TableSpec) -> Column:
    """The sequence as a struct, null unless it is whole; the position where none is declared."""
    if table.sequence == POSITION_TYPE:
        return F.col(POSITION)
    fields = {name: by_name[name].value for name in table.sequence.names}
    struct = F.struct(*[value.alias(name) for name, value in fields.items()])
    return F.when(_all([value.isNotNull() for value in fields.values()]), struct)


def _time(by_name: dict[str, Cell], clock: Column | None, table: TableSpec) -> Column:
    if table.event_time is None:
        return F.lit(None).cast("timestamp")
    time = by_name[table.event_time].value
    return time if clock is None else F.coalesce(time, clock)


def _with_reason(
    frame: DataFrame, cells: Sequence[Cell], keys: Sequence[Cell], by_name: dict[str, Cell], table: TableSpec
) -> DataFrame:
    has_key = F.col(OP).isin("upsert", "delete", "tombstone")
    times = [_fails(cell) for cell in cells if isinstance(cell.dtype, TimestampType | TimestampNTZType)]
    others = [_fails(cell) for cell in cells if not isinstance(cell.dtype, TimestampType | TimestampNTZType)]
    without_key = has_key & _any([key.source.isNull() for key in keys])
    by = [] if table.sequence == POSITION_TYPE else [by_name[name] for name in table.sequence.names]
    says_nothing = (F.col(OP) == "delete") & _all([cell.source.isNull() for cell in by])
    has_order = F.col(OP).isin("upsert", "delete") & ~says_nothing
    without_sequence = has_order & F.col(SEQUENCE).isNull()
    reason = (
        F.when(F.col(REASON).isNotNull(), F.col(REASON))
        .when(without_key, reason_is("null_key"))
        .when(_any(others), reason_is("type_mismatch"))
        .when(_any(times), reason_is("bad_timestamp"))
        .when(without_sequence, reason_is("null_sequence"))
    )
    detail = (
        F.when(F.col(REASON).isNotNull() | is_ignored(), F.col(DETAIL))
        .when(without_key, _null_names(keys))
        .when(
            _any([*others, *times]),
            F.concat_ws("; ", *[F.when(_fails(cell), _message(cell)) for cell in cells]),
        )
        .when(without_sequence, _null_names(by))
    )
    return frame.withColumns({REASON: reason, DETAIL: detail})


def _fails(cell: Cell) -> Column:
    return cell.source.isNotNull() & cell.value.isNull()


def _message(cell: Cell) -> Column:
    zone = (
        ", or names no zone while `source.timezone` is not set"
        if isinstance(cell.dtype, TimestampType)
        else ""
    )
    shown = F.substring(F.make_valid_utf8(cell.source.cast("string")), 1, _SHOWN)
    return F.concat(F.lit(f'{cell.name}: "'), shown, F.lit(f'" is no {cell.dtype.simpleString()}{zone}'))


def _null_names(cells: Sequence[Cell]) -> Column:
    return F.concat_ws(", ", *[F.when(cell.value.isNull(), F.lit(f"{cell.name} is null")) for cell in cells])


def _with_derived(frame: DataFrame, keys: Sequence[Cell], old_key: Sequence[Cell]) -> DataFrame:
    """Put a second row beside an update that changed the key: the delete of the old one."""
    if not old_key:
        return frame.withColumn(DERIVED, F.lit(False))
    same = _all([old.value == key.value for old, key in zip(old_key, keys, strict=True)])
    moved = (
        F.col(REASON).isNull() & ~F.col(CONTEXT) & _all([old.value.isNotNull() for old in old_key]) & ~same
    )
    halves = F.when(moved, F.array(F.lit(False), F.lit(True))).otherwise(F.array(F.lit(False)))
    return frame.withColumn(DERIVED, F.explode(halves))


def _select(
    frame: DataFrame, columns: Sequence[Cell], old_key: dict[str, Cell], raw: Column, table: TableSpec,
    beside: Sequence[str],
) -> DataFrame:  # fmt: skip
    derived, has_row = F.col(DERIVED), F.col(OP) == "upsert"
    selected = {}
    for cell in columns:
        if cell.name in old_key:
            selected[cell.name] = F.when(derived, old_key[cell.name].value).otherwise(cell.value)
        elif cell.name in table.key:
            selected[cell.name] = cell.value
        else:
            selected[cell.name] = F.when(has_row & ~derived, cell.value)
    good = F.col(REASON).isNull()
    # a delete that has nothing but its key belongs where it stands, as a tombstone does
    without_order = (F.col(OP) == "delete") & F.col(SEQUENCE).isNull()
    op = F.when(without_order, F.lit("tombstone")).otherwise(F.col(OP))
    selected |= {
        OP: F.when(derived, F.lit("delete")).when(good, op),
        UNAVAILABLE: F.when(~derived & good, F.col(UNAVAILABLE)),
        RAW: F.when(~good | (~derived & F.col(UNAVAILABLE).isNotNull()), F.make_valid_utf8(raw)),
    }
    names = [*records_schema(table).names, *beside]
    return frame.select(*[(selected.get(name, named(name))).alias(name) for name in names])


def _any(conditions: Sequence[Column]) -> Column:
    return reduce(lambda one, other: one | other, conditions, F.lit(False))


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda one, other: one & other, conditions, F.lit(True))
