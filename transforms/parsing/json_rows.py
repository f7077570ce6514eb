"""Parses flat rows in JSON: each line holds one, perhaps within its record, beside what was before it.

Which member says what happened, and which holds the row, says `transforms.parsing.row_ops`. A column may lie deep
within the row, or beside it (`from`). A change of the key gives two records; the delete of the old key is derived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, IntegralType, StructType

from lakejoin.transforms.model.schemas import OP, POSITION_TYPE, RAW, UNAVAILABLE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.connect_schema import ROW_SCHEMA
from lakejoin.transforms.parsing.debezium_toast import is_placeholder, stood_for
from lakejoin.transforms.parsing.flat_rows import kept_of_a_delete, with_op, with_sources
from lakejoin.transforms.parsing.json_lines import (
    absent_from,
    line_reason,
    parse_digits,
    parse_line,
    record_of,
)
from lakejoin.transforms.parsing.json_values import EXACT, Texts, is_known, read_texts
from lakejoin.transforms.parsing.limits import short_text
from lakejoin.transforms.parsing.nested_json import decimals_of
from lakejoin.transforms.parsing.options import Cell, ParseOptions, Parts, source_of
from lakejoin.transforms.parsing.questions import Members
from lakejoin.transforms.parsing.record_forms import LINE, WRAPPED, nothing_as, with_plain_rows
from lakejoin.transforms.parsing.row_ops import Path, at, is_of, parts_of, path_from_record, place_of, tree_of
from lakejoin.transforms.parsing.typed_values import without_infinity

_FLAT_ROW = r"^\s*(\{[^{}]*\})\s*$"
_PARSED = "_lj_parsed"


def members(table: TableSpec, options: ParseOptions) -> Members:
    """What a row that `take_apart` took apart says by the names that it has."""
    said, row = options.row_op, options.row_op.row_in(F.col(LINE))
    written = at(record_of(F.col(_PARSED)), parts_of(said.column)[1])
    op, flat = F.when(said.is_update(written), "u").otherwise("c"), F.regexp_extract(row, _FLAT_ROW, 1)
    says = said.wrapped and options.described
    known = {name: is_known(table, source_of(table, name)) for name in table.columns.names if says}
    line = F.col(LINE) if said.wrapped else None
    unplaced = _unplaced(table, options, written)
    return Members(
        op, row, flat, _in_row(table), line, origin=_origin(options), known=known,
        unplaced=None if unplaced is None else unplaced[1],
    )  # fmt: skip


def take_apart(lines: DataFrame, table: TableSpec, options: ParseOptions) -> Parts:
    """Take lines (position, context, raw) apart: flat rows as JSON, their values not yet read by type."""
    said, record = options.row_op, record_of(F.col(_PARSED))
    about = [parts_of(name)[1] for name in (*said.columns, *said.origin)]
    after = {name: _path(table, name, said.row) for name in table.columns.names}
    before = {name: _path(table, name, said.old) for name in kept_of_a_delete(table) if said.old}
    frame = with_plain_rows(lines, options)
    expected = tree_of([*after.values(), *before.values(), *about])
    frame = frame.withColumn(_PARSED, parse_line(F.col(LINE), expected))
    reason, detail = line_reason(F.coalesce(F.col(LINE), F.col(RAW)), F.col(_PARSED), expected, options)
    written = [at(record, path) for path in about[: len(said.columns)]]
    frame = with_op(frame, said, written, reason, detail, _ignored_as(options, reason))
    texts = {field.name: _text(record, after, before, field.name) for field in table.columns}
    if options.absent == "keep" or said.placeholders:
        frame = frame.withColumn(UNAVAILABLE, _unavailable(table, options, written[0], texts))
    if said.placeholders:
        texts |= {
            name: F.when(~is_placeholder(texts[name], table.columns[name].dataType), texts[name])
            for name in _not_in_key(table)
        }
    texts = {
        field.name: without_infinity(texts[field.name], field.dataType, options) for field in table.columns
    }
    frame = with_sources(frame, texts, table)
    decimals = decimals_of(table.columns)
    if decimals:
        found = [(after[name][-1], dtype, F.col(source_of(table, name))) for name, dtype in decimals.items()]
        places = [path for paths in (after, before) for name, path in paths.items() if name in decimals]
        frame = frame.withColumn(EXACT, parse_digits(F.col(LINE), tree_of(places), found))
    exact = record_of(F.col(EXACT))
    says = said.wrapped and options.described
    wrapped = F.from_json(WRAPPED, StructType().add("schema", ROW_SCHEMA)) if says else None
    frame, cells, old_key = read_texts(
        frame,
        table,
        options,
        Texts(
            exact={name: _text(exact, after, before, name) for name in decimals},
            before={name: at(record, before[name]) for name in table.key if before},
            exact_before={name: at(exact, before[name]) for name in table.key if before and name in decimals},
            moves=F.col(OP) == "upsert",
            schema=None if wrapped is None else wrapped["schema"]["fields"],
        ),
    )
    return Parts(frame, cells, short_text(F.col(RAW)), old_key, _oldest(cells, table, options, written[0]))


def _unplaced(table: TableSpec, options: ParseOptions, written: Column) -> tuple[str, Column] | None:
    """The sequence column that a snapshot's read may lack, and whether a row is one that does.

    Only a number counts: the place in the log, which an incremental snapshot has none of.
    """
    if not options.row_op.placeholders or table.sequence == POSITION_TYPE:
        return None
    first = table.sequence.names[0]
    if not isinstance(table.columns[first].dataType, IntegralType | DecimalType):
        return None
    return first, F.coalesce(written == "r", F.lit(False)) & F.col(source_of(table, first)).isNull()


def _oldest(cells: Sequence[Cell], table: TableSpec, options: ParseOptions, written: Column) -> list[Cell]:
    """What orders rows where reads that lack it are older than every change; their column stays null."""
    found = _unplaced(table, options, written) if options.snapshots == "oldest" else None
    if found is None:
        return []
    name, lacks = found
    (cell,) = (cell for cell in cells if cell.name == name)
    text = F.when(lacks, "0").otherwise(cell.source)
    return [replace(cell, source=text, value=F.when(lacks, F.lit(0).cast(cell.dtype)).otherwise(cell.value))]


def _ignored_as(options: ParseOptions, reason: Column) -> Column:
    """What a line is that holds no row of the table; null for one that does."""
    nothing, origin = nothing_as(F.col(LINE)), _origin(options)
    if not options.tables or origin is None:
        return nothing
    is_other = reason.isNull() & ~is_of(*origin, options.tables)
    return F.coalesce(nothing, F.when(is_other, "other_table"))


def _origin(options: ParseOptions) -> tuple[Column, Column] | None:
    """The table of the database that a record is of, and the same with its schema before it; None if it says none."""
    if not options.row_op.origin:
        return None
    record = record_of(F.col(_PARSED))
    whole = F.concat_ws(".", *[at(record, parts_of(name)[1]) for name in options.row_op.origin])
    whole = F.when(whole != "", whole)
    return F.regexp_extract(whole, r"([^.]*)$", 1), whole


def _place(table: TableSpec, column: str) -> tuple[bool, Path]:
    return place_of(column, table.written.get(column))


def _in_row(table: TableSpec) -> dict[str, str]:
    """By column, the member of a row that holds it; without columns beside the row."""
    places = {name: _place(table, name) for name in table.columns.names}
    return {name: path[0] for name, (is_beside, path) in places.items() if not is_beside}


def _path(table: TableSpec, column: str, row: str | None) -> Path:
    return path_from_record(_place(table, column), row)


def _text(record: Column, after: dict[str, Path], before: dict[str, Path], name: str) -> Column:
    """The text of a column; a delete may have nothing but the row before it."""
    text = at(record, after[name])
    if name not in before:
        return text
    return F.when(F.col(OP) == "delete", F.coalesce(text, at(record, before[name]))).otherwise(text)


def _not_in_key(table: TableSpec) -> list[str]:
    return [name for name in table.columns.names if name not in table.key]


def _unavailable(
    table: TableSpec, options: ParseOptions, written: Column, texts: Mapping[str, Column]
) -> Column:
    """Names of the columns that an upsert left out; null for none."""
    names: list[Column] = []
    if options.row_op.placeholders:
        values = {name: (texts[name], table.columns[name].dataType) for name in _not_in_key(table)}
        names.append(stood_for(F.col(LINE), values))
    if options.absent == "keep":
        names.append(F.when(options.row_op.is_update(written), _absent(table, options)))
    nothing = F.array().cast("array<string>")
    found = F.concat(*[F.coalesce(part, nothing) for part in names])
    return F.when((F.col(OP) == "upsert") & (F.size(found) > 0), found)


def _absent(table: TableSpec, options: ParseOptions) -> Column:
    """Names of the columns that a row has no member for."""
    wanted = {name: member for name, member in _in_row(table).items() if name not in table.key}
    return absent_from(F.json_object_keys(options.row_op.row_in(F.col(LINE))), wanted)
