"""Parses flat rows with a column `op` (JSON lines, CSV, Parquet): c, r and u upsert the row, d deletes its key."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from transforms.model.schemas import DETAIL, OP, POSITION_TYPE, RAW, REASON, UNAVAILABLE
from transforms.model.specs import TableSpec
from transforms.parsing.json_lines import absent_from, line_reason, parse_digits, parse_line, record_of, texts
from transforms.parsing.limits import readable, refuse_large, short_text
from transforms.parsing.nested_json import decimals_of
from transforms.parsing.options import Cell, ParseOptions, Parts, reason_is, source_of
from transforms.parsing.questions import Members
from transforms.parsing.typed_values import convert, parse_text, without_infinity

OP_COLUMN = "op"
"""Column of a flat row that says what happened to it."""

_OPS = {"c": "upsert", "r": "upsert", "u": "upsert", "d": "delete"}
_EXPECTED = "c, r, u or d"
_FLAT_ROW = r"^\s*(\{[^{}]*\})\s*$"
_PARSED, _EXACT = "_lj_parsed", "_lj_exact"


def members(options: ParseOptions) -> Members:
    """What a row that `take_apart` took apart says by the names that it has."""
    line = readable(F.col(RAW), options)
    return Members(record_of(F.col(_PARSED))[OP_COLUMN], line, F.regexp_extract(line, _FLAT_ROW, 1))


def take_apart(lines: DataFrame, table: TableSpec, options: ParseOptions) -> Parts:
    """Take lines (position, context, raw) apart: flat rows as JSON, their values not yet read by type."""
    record, line = record_of(F.col(_PARSED)), F.col(RAW)
    written = table.as_written
    names = dict.fromkeys([*written.columns.names, OP_COLUMN])
    frame = lines.withColumn(_PARSED, parse_line(readable(line, options), texts(names)))
    frame = _with_op(frame, record[OP_COLUMN], *line_reason(line, F.col(_PARSED), options))
    if options.absent == "keep":
        left_out = absent_from(F.json_object_keys(readable(line, options)), table)
        updates = (F.col(OP) == "upsert") & (record[OP_COLUMN] == "u")
        frame = frame.withColumn(UNAVAILABLE, F.when(updates & (F.size(left_out) > 0), left_out))
    texts_of = {
        f.name: without_infinity(record[table.name_in_source(f.name)], f.dataType, options)
        for f in table.columns
    }
    frame = _with_sources(frame, texts_of, table)
    decimals = decimals_of(table.columns)
    if decimals:
        types = decimals_of(written.columns)
        found = {table.name_in_source(name): F.col(source_of(table, name)) for name in decimals}
        frame = frame.withColumn(_EXACT, parse_digits(line, texts(types), types, found))
    exact = {name: record_of(F.col(_EXACT))[table.name_in_source(name)] for name in decimals}
    cells = [
        Cell(
            f.name,
            f.dataType,
            text,
            parse_text(text, f.dataType, options.of_column(f.name), exact.get(f.name)),
        )
        for f in table.columns
        for text in [F.col(source_of(table, f.name))]
    ]
    return Parts(frame, cells, short_text(line))


def take_rows_apart(
    rows: DataFrame,
    table: TableSpec,
    options: ParseOptions,
    columns: Mapping[str, tuple[Column, DataType]],
    raw: Column,
    op: Column | None = None,
) -> Parts:
    """Take rows (position, context, perhaps reason and detail) of typed columns apart.

    `columns`: for each declared column that the rows have, and for `op`, the column and its type. `raw`: the
    row as text. `op`: what each row does, where no column of its own says it.
    """
    text_columns = [column for column, dtype in columns.values() if isinstance(dtype, StringType)]
    invalid = ~_all_valid(text_columns)
    reason, detail = (F.col(n) if n in rows.columns else F.lit(None).cast("string") for n in (REASON, DETAIL))
    if op is None:
        op = columns[OP_COLUMN][0].cast("string") if OP_COLUMN in columns else F.lit(None).cast("string")
    reason = F.when(invalid, reason_is("invalid_utf8")).otherwise(reason)
    detail = F.when(invalid, F.lit("invalid bytes are shown as U+FFFD")).otherwise(detail)
    frame = _with_op(rows, op, *refuse_large(_unpacked(columns), reason, detail, options))
    missing: tuple[Column, DataType] = (F.lit(None).cast("string"), StringType())
    found = {name: columns.get(table.name_in_source(name), missing) for name in table.columns.names}
    columns_of = {
        f.name: without_infinity(column, f.dataType, options) if isinstance(dtype, StringType) else column
        for f in table.columns
        for column, dtype in [found[f.name]]
    }
    frame = _with_sources(frame, columns_of, table)
    cells = [
        Cell(
            f.name,
            f.dataType,
            source,
            convert(source, found[f.name][1], f.dataType, options.of_column(f.name)),
        )
        for f in table.columns
        for source in [F.col(source_of(table, f.name))]
    ]
    return Parts(frame, cells, short_text(raw), flawless=options.flawless)


def _unpacked(columns: Mapping[str, tuple[Column, DataType]]) -> Column:
    """Bytes of the values of a row that may be of any length."""
    lengths = [
        F.coalesce(F.octet_length(column).cast("bigint"), F.lit(0))
        for column, dtype in columns.values()
        if isinstance(dtype, StringType | BinaryType)
    ]
    return reduce(add, lengths, F.lit(0).cast("bigint"))


def _all_valid(text_columns: Sequence[Column]) -> Column:
    valid = [F.coalesce(F.is_valid_utf8(text), F.lit(True)) for text in text_columns]
    return reduce(and_, valid, F.lit(True))


def _with_op(frame: DataFrame, written: Column, reason: Column, detail: Column) -> DataFrame:
    known = F.create_map(*[F.lit(text) for pair in _OPS.items() for text in pair])
    shown = F.concat(F.lit(f'{OP_COLUMN} "'), F.substring(F.make_valid_utf8(written), 1, 100), F.lit('"'))
    unknown = F.concat(
        F.coalesce(shown, F.lit(f"no column `{OP_COLUMN}`, or null in it")), F.lit(f"; expected {_EXPECTED}")
    )
    frame = frame.withColumns({OP: known[written], REASON: reason, DETAIL: detail})
    no_op = F.col(REASON).isNull() & F.col(OP).isNull()
    return frame.withColumns(
        {
            REASON: F.when(no_op, reason_is("unknown_op")).otherwise(F.col(REASON)),
            DETAIL: F.when(no_op, unknown).otherwise(F.col(DETAIL)),
            UNAVAILABLE: F.lit(None).cast("array<string>"),
        }
    )


def _with_sources(frame: DataFrame, columns: Mapping[str, Column], table: TableSpec) -> DataFrame:
    """The columns of the row; of a deleted one only what identifies and orders it."""
    order = [] if table.sequence == POSITION_TYPE else table.sequence.names
    wanted = {*table.key, *order, table.event_time}
    return frame.withColumns(
        {
            source_of(table, name): column if name in wanted else F.when(F.col(OP) == "upsert", column)
            for name, column in columns.items()
        }
    )
