"""Parses flat rows of typed columns (CSV, Parquet, Avro, ORC): one of them says what happened to the row.

Which column that is, and what its values mean, says `transforms.parsing.row_ops`: by default `op`, of which c, r and u
upsert the row and d deletes its key.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from lakejoin.transforms.model.schemas import DETAIL, OP, POSITION_TYPE, REASON, UNAVAILABLE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.limits import refuse_large, short_text
from lakejoin.transforms.parsing.options import Cell, ParseOptions, Parts, reason_is, source_of
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, RowOp
from lakejoin.transforms.parsing.typed_values import convert, without_infinity


def take_rows_apart(
    rows: DataFrame,
    table: TableSpec,
    options: ParseOptions,
    columns: Mapping[str, tuple[Column, DataType]],
    raw: Column,
    op: Column | None = None,
) -> Parts:
    """Take rows (position, context, perhaps reason and detail) of typed columns apart.

    `columns`: for each declared column that the rows have, and for those that say what a row does, the column and its
    type. `raw`: the row as text. `op`: what each row does as `op` would say it, where no column of its own does.
    """
    said = options.row_op if op is None else DEFAULT_OP
    text_columns = [column for column, dtype in columns.values() if isinstance(dtype, StringType)]
    invalid = ~_all_valid(text_columns)
    reason, detail = (F.col(n) if n in rows.columns else F.lit(None).cast("string") for n in (REASON, DETAIL))
    nothing = F.lit(None).cast("string")
    written = [columns[name][0].cast("string") if name in columns else nothing for name in said.columns]
    reason = F.when(invalid, reason_is("invalid_utf8")).otherwise(reason)
    detail = F.when(invalid, F.lit("invalid bytes are shown as U+FFFD")).otherwise(detail)
    reason, detail = refuse_large(_unpacked(columns), reason, detail, options)
    frame = with_op(rows, said, written if op is None else [op], reason, detail)
    missing: tuple[Column, DataType] = (nothing, StringType())
    found = {name: columns.get(table.name_in_source(name), missing) for name in table.columns.names}
    columns_of = {
        f.name: without_infinity(column, f.dataType, options) if isinstance(dtype, StringType) else column
        for f in table.columns
        for column, dtype in [found[f.name]]
    }
    frame = with_sources(frame, columns_of, table)
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


def with_op(
    frame: DataFrame,
    said: RowOp,
    written: Sequence[Column],
    reason: Column,
    detail: Column,
    ignored: Column | None = None,
) -> DataFrame:
    """Put beside rows what they do, and why they are none.

    `written`: the texts of `RowOp.columns`. `ignored`: what a record is that is no row, or none of this table.
    """
    found, kind = said.kind(*written), said.ignored_as(written[0])
    if ignored is not None:
        found = F.when(ignored.isNotNull(), "ignored").otherwise(found)
        reason, detail = (F.when(ignored.isNull(), column) for column in (reason, detail))
        kind = F.coalesce(ignored, kind)
    shown = F.concat(
        F.lit(f'{said.column} "'), F.substring(F.make_valid_utf8(written[0]), 1, 100), F.lit('"')
    )
    without = F.lit(f"no column `{said.column}`, or null in it")
    unknown = F.concat(F.coalesce(shown, without), F.lit(f"; expected {said.expected}"))
    detail = F.when(reason.isNotNull() | (found != "ignored"), detail).otherwise(kind)
    frame = frame.withColumns({OP: found, REASON: reason, DETAIL: detail})
    no_op = F.col(REASON).isNull() & F.col(OP).isNull()
    return frame.withColumns(
        {
            REASON: F.when(no_op, reason_is("unknown_op")).otherwise(F.col(REASON)),
            DETAIL: F.when(no_op, unknown).otherwise(F.col(DETAIL)),
            UNAVAILABLE: F.lit(None).cast("array<string>"),
        }
    )


def with_sources(frame: DataFrame, columns: Mapping[str, Column], table: TableSpec) -> DataFrame:
    """The columns of the row; of a deleted one only what identifies and orders it."""
    wanted, is_ignored = kept_of_a_delete(table), F.coalesce(F.col(OP) == "ignored", F.lit(False))
    return frame.withColumns(
        {
            source_of(table, name): F.when(~is_ignored if name in wanted else F.col(OP) == "upsert", column)
            for name, column in columns.items()
        }
    )


def kept_of_a_delete(table: TableSpec) -> set[str]:
    """The columns that a deleted row is asked for."""
    order = [] if table.sequence == POSITION_TYPE else table.sequence.names
    return {*table.key, *order, *([table.event_time] if table.event_time else [])} & {*table.columns.names}
