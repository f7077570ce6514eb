"""Compares the columns of source files with the declared ones: missing, of another type, or not declared.

JSON has no schema, so its rows decide: a column is missing from a file if no row has the member, and of another type if
none of its values fits. Rows are states after a change; a delete need not have more than its key.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.transforms.model.hashing import family
from lakejoin.transforms.model.schemas import CONTEXT, POSITION
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing import debezium_envelope as envelope
from lakejoin.transforms.parsing.debezium_toast import is_placeholder
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.record_forms import LINE, with_plain_events, with_plain_rows
from lakejoin.transforms.parsing.row_ops import parts_of
from lakejoin.transforms.parsing.typed_values import parse_text

ENTRIES = "entries"
"""Column with the members of a row: name and text."""
_MAP = "map<string,string>"
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


def event_rows(lines: DataFrame, options: ParseOptions) -> DataFrame:
    """Take lines (position, context, raw) with Debezium's events apart: position, entries. Without broken ones."""
    row = envelope.text_after(F.col(LINE))
    return _with_entries(with_plain_events(lines, options), F.from_json(row, _MAP))


def json_rows(lines: DataFrame, options: ParseOptions) -> DataFrame:
    """Take lines (position, context, raw) with flat rows apart: position, entries. Without broken ones."""
    said, line = options.row_op, F.col(LINE)
    paths = [parts_of(name)[1] for name in said.columns]
    written = [F.get_json_object(line, "$" + "".join(f"['{part}']" for part in path)) for path in paths]
    whole = F.coalesce(said.kind(*written) == "upsert", F.lit(False))
    return _with_entries(with_plain_rows(lines, options), F.when(whole, F.from_json(said.row_in(line), _MAP)))


def _with_entries(lines: DataFrame, members: Column) -> DataFrame:
    entries = F.map_entries(members).cast("array<struct<name:string,text:string>>")
    rows = lines.where(~F.col(CONTEXT)).select(POSITION, entries.alias(ENTRIES))
    return rows.where(F.col(ENTRIES).isNotNull())


def facts(rows: DataFrame, table: TableSpec, options: ParseOptions) -> DataFrame:
    """Count by file and name what rows (position, entries) have; `table` is called as the source calls it.

    `rows`: how many have the member; `values`: how many of these are not null; `fits`: how many of these can be read
    as declared; `first`: the first line that has it; `misfit`, `line`: the first text that cannot be read, and where.
    The row without a name counts all rows of the file.
    """
    row_itself = F.struct(F.lit(None).cast("string").alias("name"), F.lit(None).cast("string").alias("text"))
    entries = F.explode(F.concat(F.col(ENTRIES), F.array(row_itself))).alias("entry")
    place = F.col(POSITION)
    found = rows.select(place["file"].alias("file"), place["line"].alias("line"), entries)
    found = found.select("file", "line", "entry.name", "entry.text")
    text = F.when(~_is_left_out(F.col("name"), F.col("text"), table), F.col("text"))
    fits = _fits(F.col("name"), text, table, options)
    misfit = text.isNotNull() & ~fits
    return found.groupBy("file", "name").agg(
        F.count("*").alias("rows"),
        F.count(text).alias("values"),
        F.count_if(text.isNotNull() & fits).alias("fits"),
        F.min("line").alias("first"),
        F.min_by(F.substring("text", 1, 100), F.when(misfit, F.col("line"))).alias("misfit"),
        F.min(F.when(misfit, F.col("line"))).alias("line"),
    )


def _is_left_out(name: Column, text: Column, table: TableSpec) -> Column:
    found = [F.when(name == field.name, is_placeholder(text, field.dataType)) for field in table.columns]
    return F.coalesce(*found, F.lit(False))


def _fits(name: Column, text: Column, table: TableSpec, options: ParseOptions) -> Column:
    read = [
        F.when(name == field.name, parse_text(text, field.dataType, of_column).isNotNull())
        for field in table.columns
        for of_column in [options.of_column(table.name_in_source(field.name))]
        if not isinstance(field.dataType, StringType)
    ]
    return F.coalesce(*read, F.lit(True))


def always_fits(found: DataType, declared: DataType) -> bool:
    """Whether every value of one type is a value of the declared one, or a count of time as sources write it."""
    if found.simpleString() == declared.simpleString():
        return True
    match found, declared:
        case (IntegralType(), IntegralType()):
            fits = _DIGITS[type(found)] <= _DIGITS[type(declared)]
        case (IntegralType(), DecimalType()):
            fits = _DIGITS[type(found)] <= declared.precision - declared.scale
        case (DecimalType(), DecimalType()):
            whole = [dtype.precision - dtype.scale for dtype in (found, declared)]
            fits = found.scale <= declared.scale and whole[0] <= whole[1]
        case (FloatType(), DoubleType()) | (TimestampNTZType(), TimestampType()):
            fits = True
        case _:
            counts = isinstance(declared, DateType | TimestampType | TimestampNTZType)
            fits = counts and isinstance(found, LongType | IntegerType)
    return fits


def widens(found: DataType, declared: DataType) -> bool:
    """Whether a type has room for every value of another, and gives each the same hash."""
    return found != declared and family(found) == family(declared) and always_fits(found, declared)


def undeclared(names: Sequence[str], table: TableSpec, options: ParseOptions) -> list[str]:
    """Names that no column of the table has, without those that say what a flat row does."""
    return [name for name in names if name not in (*table.columns.names, *options.row_op.columns)]
