"""Asks what in the records of a source can be read in two ways, for which nothing is declared that says in which."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, NumericType, TimestampNTZType, TimestampType

from lakejoin.transforms.model.schemas import CONTEXT, DERIVED, OP, POSITION, POSITION_TYPE, REASON, named
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing import debezium_envelope as envelope
from lakejoin.transforms.parsing.ambiguity import CONTRARY, DOUBTFUL, NAMES, PLAIN, ROW_OP, Question
from lakejoin.transforms.parsing.options import ParseOptions, Parts, source_of
from lakejoin.transforms.parsing.source_position import SOURCE
from lakejoin.transforms.parsing.typed_values import NUMBER, PER_SECOND, WHOLE, bounds_of
from lakejoin.transforms.parsing.unscaled_numbers import BASE64

_FLAT = "_lj_flat"
_CHANGES = ("c", "u", "d", "t")
_EARLY = 120 * 86_400
"""Seconds around 1970: where times of our days come to lie that are read by too small a unit."""
_HEX = "^(?:[0-9a-fA-F]{2})+$"


@dataclass(frozen=True)
class Members:
    """What a record says by the names that it has, where each has names of its own; columns of its frame."""

    op: Column
    """What happened to the row, as the source writes it: c, r, u, d or t."""
    row: Column
    """The row that an insert or update leaves, as JSON."""
    flat: Column
    """The text of that row, empty where it may hold objects."""
    names: Mapping[str, str]
    """By column, the member of the row that holds it, perhaps deep within; without those that are elsewhere."""
    line: Column | None = None
    """The text of a whole event of Debezium's, whose numbers may stand in quotes."""
    event: Column | None = None
    """The event."""
    origin: tuple[Column, Column] | None = None
    """The table of the database that it is of, and the same with its schema; None where it says none."""
    known: Mapping[str, Column] = field(default_factory=dict)
    """Whether the event itself says how the value of a column is written."""
    unplaced: Column | None = None
    """Whether a row, without an event around it, is a snapshot's read that has nothing of the sequence; None for
    sequences that every row has."""


def _has_row() -> Column:
    """Whether a record leaves a row."""
    return F.col(OP) == "upsert"


def is_asked() -> Column:
    """Whether a record is one that can be read, and of the table."""
    return F.col(REASON).isNull() & (F.col(OP) != "ignored")


def with_questions(
    parts: Parts, table: TableSpec, options: ParseOptions, members: Members | None = None
) -> Parts:
    """Ask records that were taken apart. `members`: where each has names of its own."""
    frame = parts.frame if members is None else _with_names(parts.frame, members)
    return replace(parts, frame=frame, asked=questions(table, options, members))


def _with_names(frame: DataFrame, members: Members) -> DataFrame:
    """Put `NAMES` and `ROW_OP` beside records.

    To take a row apart once more takes as long as to read it. So first its text is searched: one that holds no object
    has the member `name` where it has `"name":`. Written with spaces or escapes it is not found there.
    """
    texts = [f"{json.dumps(name, ensure_ascii=False)}:" for name in members.names.values()]
    in_text = reduce(and_, [F.col(_FLAT).contains(text) for text in texts], F.lit(True))
    found = F.when(_has_row() & ~in_text, F.json_object_keys(members.row))
    frame = frame.withColumn(_FLAT, members.flat)
    return frame.withColumns({NAMES: found, ROW_OP: F.when(_has_row(), members.op)})


def of_times(records: DataFrame, table: TableSpec) -> DataFrame:
    """Take records with nothing but times apart for `questions`, each as microseconds since 1970."""
    micros = [
        F.unix_micros(named(name).cast("timestamp")).cast("string").alias(source_of(table, name))
        for name in table.columns.names
    ]
    return records.select(POSITION, CONTEXT, DERIVED, *micros)


def questions(
    table: TableSpec, options: ParseOptions, members: Members | None = None, *, begun: bool = False
) -> list[Question]:
    """What is to be asked of records that were taken apart: columns `source_of`, and what `_with_names` adds.

    `begun`: earlier batches have read of the source.
    """
    event = members.event if members else None
    asked = list(_of_values(table, options, members))
    if members is not None:
        asked += _of_columns(table, options, members)
    if members is not None and event is not None:
        asked += _of_order(table, options, members.op, event, begun=begun)
    if members is not None and members.unplaced is not None and options.snapshots is None:
        asked.append(Question("read", "lsn", F.when(members.unplaced, DOUBTFUL), F.lit("no lsn")))
    if members is not None and members.origin is not None:
        asked += _of_tables(options, members.op, members.origin)
    return asked


def _of_values(table: TableSpec, options: ParseOptions, members: Members | None) -> Iterator[Question]:
    """Ask of values whose column does not say how they are written."""
    line, known = (members.line, members.known) if members else (None, {})
    for column in table.columns:
        if column.name in options.encodings:
            continue
        text, is_known = F.col(source_of(table, column.name)), known.get(column.name, F.lit(False))
        match column.dataType:
            case NumericType() if line is not None:
                quoted, base64 = _is_quoted(line, table.name_in_source(column.name), text), _is_base64(text)
                digits = F.when(~base64 | is_known, PLAIN).when(quoted, DOUBTFUL)
                says = F.when(text.rlike(NUMBER), digits).when(base64 & quoted, CONTRARY)
                yield Question("number", column.name, says, text)
            case BinaryType():
                base64 = _is_base64(text)
                in_hex = F.when(is_known, PLAIN).when(base64, DOUBTFUL).otherwise(CONTRARY)
                yield Question(
                    "binary", column.name, F.when(text.rlike(_HEX), in_hex).when(base64, PLAIN), text
                )
            case TimestampType() | TimestampNTZType():
                number, (least, greatest) = text.try_cast("bigint"), bounds_of(options.time)
                early = F.abs(number) < _EARLY * PER_SECOND[options.time]
                says = F.when(number.between(least, greatest) & ~early, PLAIN).otherwise(DOUBTFUL)
                yield Question("time", column.name, F.when(text.rlike(WHOLE) & (text != "0"), says), text)


def _is_quoted(line: Column, name: str, text: Column) -> Column:
    """Whether a member of the line is a text. Written with other spaces than one it is taken for a number."""
    member = json.dumps(name, ensure_ascii=False)
    forms = [F.concat(F.lit(f'{member}:{space}"'), text, F.lit('"')) for space in ("", " ")]
    return line.contains(forms[0]) | line.contains(forms[1])


def _is_base64(text: Column) -> Column:
    return text.rlike(BASE64) & (text != "")


def _of_columns(table: TableSpec, options: ParseOptions, members: Members) -> Iterator[Question]:
    """Ask for columns that updates lack, or all rows."""
    has_row = F.col(ROW_OP).isNotNull()
    for column in table.columns:
        if column.name not in members.names:
            continue
        name = members.names[column.name]
        lacks = F.col(NAMES).isNotNull() & ~F.array_contains(NAMES, name)
        if column.name not in table.key and options.absent is None:
            of_update = F.when(F.col(ROW_OP) == "u", DOUBTFUL).otherwise(CONTRARY)
            says = F.when(lacks, of_update).when(has_row, PLAIN)
            # a source that got the column later lacks it in all that is before
            behind = F.max(_at(says, DOUBTFUL)) > F.min(_at(says, PLAIN))
            yield Question("absent", column.name, says, members.row, placed=behind)
        if column.name not in table.written:
            other = F.get(F.filter(NAMES, partial(_is_nearly, name)), F.lit(0))
            says = F.when(lacks, F.when(other.isNotNull(), DOUBTFUL)).when(has_row, PLAIN)
            yield Question("name", column.name, says, other)


def _is_nearly(name: str, other: Column) -> Column:
    return F.lower(other) == name.lower()


def _at(says: Column, what: int) -> Column:
    """The position of a record that says something."""
    return F.when(says == what, F.col(POSITION))


def _of_tables(options: ParseOptions, op: Column, origin: tuple[Column, Column]) -> Iterator[Question]:
    """Ask whether records of two tables are meant."""
    if not options.tables:
        name, whole = origin
        of_row = F.when(name.isNotNull() & op.isin(*_CHANGES, "r"), whole)
        differs = F.when(of_row.isNotNull(), F.xxhash64(of_row))
        yield Question("table", "", F.when(of_row.isNotNull(), DOUBTFUL), of_row, differs=differs)


def _of_order(
    table: TableSpec, options: ParseOptions, op: Column, event: Column, *, begun: bool
) -> Iterator[Question]:
    """Ask whether the sequence orders changes, and what orders a snapshot's reads among them."""
    order = envelope.envelope_sequence(table)
    source = envelope.member(event, "source")
    if SOURCE in order:
        return
    first = table.sequence.names[0] if table.sequence.names[0] in order else ""
    if first == "tx_id" and not options.trusts_sequence:
        says = F.when(source["connector"] == "postgresql", DOUBTFUL)
        yield Question("sequence", first, says, source["connector"])
    if first == "ts_ms" and not options.trusts_sequence:
        yield Question("sequence", first, F.when(source["ts_ms"].isNotNull(), DOUBTFUL), source["ts_ms"])
    if options.snapshots is not None:
        return
    if "lsn" in order:
        says = F.when((op == "r") & source["lsn"].isNull(), DOUBTFUL)
        yield Question("read", "lsn", says, F.lit("no lsn"))
    elif first == "ts_ms" or table.sequence == POSITION_TYPE:
        says = F.when(op == "r", DOUBTFUL).when(op.isin(*_CHANGES), PLAIN)
        behind = F.coalesce(F.max(_at(says, DOUBTFUL)) > F.min(_at(says, PLAIN)), F.lit(False))
        yield Question("read", "", says, F.lit("op r"), placed=None if begun else behind)
