"""Asks what in the records of a source can be read in two ways, for which nothing is declared that says in which."""

import json
from collections.abc import Iterator
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from transforms.model.schemas import CONTEXT, POSITION, POSITION_TYPE, RAW, named
from transforms.model.specs import TableSpec
from transforms.parsing import debezium_envelope as envelope
from transforms.parsing.ambiguity import Question
from transforms.parsing.debezium_toast import is_placeholder
from transforms.parsing.flat_rows import OP_COLUMN
from transforms.parsing.json_lines import texts
from transforms.parsing.limits import readable
from transforms.parsing.options import ParseOptions
from transforms.parsing.schema_drift import ENTRIES
from transforms.parsing.typed_values import NUMBER, WHOLE, parse_text
from transforms.parsing.unscaled_numbers import BASE64

_MEMBERS, _OP, _EVENT = "_lj_members", "_lj_op", "_lj_event"
_CHANGES = ("c", "u", "d", "t")
_MOST_NAMES = 10_000
_EARLY = 120 * 86_400
"""Seconds around 1970: where times of our days come to lie that are read by too small a unit."""
_HEX = "^(?:[0-9a-fA-F]{2})+$"
_ABOUT = (*envelope.ORIGIN, "connector", "lsn", "ts_ms")


def of_events(lines: DataFrame, options: ParseOptions) -> DataFrame:
    """Take Debezium's events (position, context, raw) apart for `questions`; broken ones have nothing."""
    about = [*texts(["op", "ts_ms"]), StructField("source", texts(_ABOUT))]
    event = envelope.anywhere(StructType([*about, StructField("after", MapType(StringType(), StringType()))]))
    own = lines.where(~F.col(CONTEXT))
    parsed = own.withColumn(_EVENT, F.from_json(readable(F.col(RAW), options), event))
    if options.tables:
        parsed = parsed.where(envelope.is_of(F.col(_EVENT), options.tables))
    members = {_OP: "op", _MEMBERS: "after"}
    return parsed.withColumns({to: envelope.member(F.col(_EVENT), name) for to, name in members.items()})


def of_json_rows(lines: DataFrame, options: ParseOptions) -> DataFrame:
    """Take flat rows (position, context, raw) apart for `questions`; broken ones have nothing."""
    members = F.from_json(readable(F.col(RAW), options), "map<string,string>")
    rows = lines.where(~F.col(CONTEXT)).withColumn(_MEMBERS, members)
    return rows.withColumn(_OP, _member(OP_COLUMN))


def of_entries(rows: DataFrame, table: TableSpec) -> DataFrame:
    """Take rows (position, entries) apart for `value_questions`."""
    found = [table.name_in_source(name) for name in table.columns.names]
    texts_of = [F.get(F.filter(ENTRIES, partial(_is_called, name)), F.lit(0))["text"] for name in found]
    members = F.map_from_arrays(F.array(*map(F.lit, found)), F.array(*texts_of))
    return rows.select(POSITION, members.alias(_MEMBERS))


def _is_called(name: str, entry: Column) -> Column:
    return entry["name"] == name


def of_times(records: DataFrame, table: TableSpec) -> DataFrame:
    """Take records with nothing but times apart for `value_questions`, each as microseconds since 1970."""
    micros = [F.unix_micros(named(name).cast("timestamp")).cast("string") for name in table.columns.names]
    found = [F.lit(table.name_in_source(name)) for name in table.columns.names]
    members = F.map_from_arrays(F.array(*found), F.array(*micros))
    return records.where(~F.col(CONTEXT)).select(POSITION, members.alias(_MEMBERS))


def names(rows: DataFrame) -> DataFrame:
    """The names of all members of rows that were taken apart, each once: name."""
    return rows.select(F.explode(F.map_keys(_MEMBERS)).alias("name")).distinct().limit(_MOST_NAMES)


def questions(table: TableSpec, options: ParseOptions, *, events: bool, begun: bool) -> list[Question]:
    """What is to be asked of rows that `of_events`, or else `of_json_rows`, took apart.

    `begun`: earlier batches have read of the source.
    """
    asked = [*_of_values(table, options, in_quotes=events), *_of_columns(table, options)]
    return [*asked, *_of_order(table, options, begun=begun), *_of_tables(options)] if events else asked


def value_questions(table: TableSpec, options: ParseOptions) -> list[Question]:
    """What is to be asked of rows that `of_entries` or `of_times` took apart."""
    return list(_of_values(table, options, in_quotes=False))


def _member(name: str) -> Column:
    return F.try_element_at(F.col(_MEMBERS), F.lit(name))


def _of_values(table: TableSpec, options: ParseOptions, *, in_quotes: bool) -> Iterator[Question]:
    """Ask of the values whose column does not say how they are written. `in_quotes`: numbers may be base64."""
    for field in table.columns:
        if field.name in options.encodings:
            continue
        name = table.name_in_source(field.name)
        text = _member(name)
        match field.dataType:
            case NumericType() if in_quotes:
                quoted, number, base64 = _is_quoted(name, text), text.rlike(NUMBER), _is_base64(text)
                yield Question(
                    "number",
                    field.name,
                    quoted & number & base64,
                    text,
                    number & ~base64,
                    quoted & base64 & ~number,
                )
            case BinaryType():
                value = F.when(~is_placeholder(text, field.dataType), text)
                in_hex, base64 = value.rlike(_HEX), _is_base64(value)
                yield Question(
                    "binary", field.name, in_hex & base64, text, base64 & ~in_hex, in_hex & ~base64
                )
            case TimestampType() | TimestampNTZType():
                whole = F.when(text.rlike(WHOLE) & (text != "0"), text)
                at = parse_text(whole, TimestampType(), options)
                early = F.abs(F.unix_micros(at)) < _EARLY * 1_000_000
                odd = whole.isNotNull() & (at.isNull() | early)
                yield Question("time", field.name, odd, text, whole.isNotNull() & ~odd)


def _is_quoted(name: str, text: Column) -> Column:
    """Whether a member of the line is a text. Written with other spaces than one it is taken for a number."""
    member = json.dumps(name, ensure_ascii=False)
    forms = [F.concat(F.lit(f'{member}:{space}"'), text, F.lit('"')) for space in ("", " ")]
    return F.col(RAW).contains(forms[0]) | F.col(RAW).contains(forms[1])


def _is_base64(text: Column) -> Column:
    return text.rlike(BASE64) & (text != "")


def _of_columns(table: TableSpec, options: ParseOptions) -> Iterator[Question]:
    """Ask for columns that updates lack, or all rows."""
    upsert, inserts = F.col(_OP).isin("c", "r", "u"), F.col(_OP).isin("c", "r")
    for field in table.columns:
        name, has = table.name_in_source(field.name), F.col(_MEMBERS).isNotNull()
        found = F.coalesce(F.map_contains_key(_MEMBERS, F.lit(name)), F.lit(False))
        lacks, op = has & ~found, F.col(_OP)
        if field.name not in table.key and options.absent is None:
            updates, others = lacks & (op == "u"), upsert & found
            # a source that got the column later lacks it in all that is before
            behind = F.max(F.when(updates, F.col(POSITION))) > F.min(F.when(others, F.col(POSITION)))
            text = F.to_json(_MEMBERS)
            yield Question("absent", field.name, updates, text, others, lacks & inserts, placed=behind)
        if field.name not in table.written:
            yield Question("name", field.name, upsert & lacks, F.to_json(_MEMBERS), found)


def _of_tables(options: ParseOptions) -> Iterator[Question]:
    """Ask whether events of two tables are meant."""
    if not options.tables:
        name, whole = envelope.origin(F.col(_EVENT))
        of_row = F.when(name.isNotNull() & F.col(_OP).isin(*_CHANGES, "r"), whole)
        yield Question(
            "table", "", of_row.isNotNull(), of_row, differs=F.when(of_row.isNotNull(), F.xxhash64(of_row))
        )


def _of_order(table: TableSpec, options: ParseOptions, *, begun: bool) -> Iterator[Question]:
    """Ask whether the sequence orders changes, and what orders a snapshot's reads among them."""
    order = envelope.envelope_sequence(table)
    source, op = envelope.member(F.col(_EVENT), "source"), F.col(_OP)
    first = table.sequence.names[0] if table.sequence.names[0] in order else ""
    if first == "tx_id" and not options.trusts_sequence:
        yield Question("sequence", first, source["connector"] == "postgresql", source["connector"])
    if first == "ts_ms" and not options.trusts_sequence:
        yield Question("sequence", first, source["ts_ms"].isNotNull(), source["ts_ms"])
    if options.snapshots is not None:
        return
    reads, changes = op == "r", op.isin(*_CHANGES)
    if "lsn" in order:
        yield Question("read", "lsn", reads & source["lsn"].isNull(), F.lit("no lsn"))
    elif first == "ts_ms" or table.sequence == POSITION_TYPE:
        behind = F.max(F.when(reads, F.col(POSITION))) > F.min(F.when(changes, F.col(POSITION)))
        yield Question(
            "read", "", reads, F.lit("op r"), placed=None if begun else F.coalesce(behind, F.lit(False))
        )
