"""Parses Debezium events: r, c and u upsert their `after`, d deletes, t truncates, m is ignored.

An event without value is a tombstone, which Debezium sends behind a delete so that topics can be compacted. What is no
event of a row (heartbeats, boundaries of transactions, changes of a schema, empty lines) is ignored. An update
that changed the key gives two records; the delete of the old key is derived. Old values are never taken from `before`,
with one exception: a delete has no other row, so its key, event time and sequence come from there.
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from lakejoin.transforms.model.ignored_records import is_ignored
from lakejoin.transforms.model.schemas import DETAIL, OP, RAW, REASON, UNAVAILABLE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing import debezium_envelope as envelope
from lakejoin.transforms.parsing.connect_schema import columns_of
from lakejoin.transforms.parsing.debezium_toast import is_placeholder, stood_for
from lakejoin.transforms.parsing.json_lines import (
    absent_from,
    is_broken,
    line_reason,
    parse_digits,
    parse_line,
    record_of,
)
from lakejoin.transforms.parsing.json_values import EXACT, Texts, is_known, read_texts
from lakejoin.transforms.parsing.limits import short_text
from lakejoin.transforms.parsing.mongo_updates import in_parts, is_update, not_named
from lakejoin.transforms.parsing.nested_json import decimals_of
from lakejoin.transforms.parsing.options import Cell, ParseOptions, Parts, reason_is, source_of
from lakejoin.transforms.parsing.questions import Members
from lakejoin.transforms.parsing.record_forms import LINE, with_plain_events
from lakejoin.transforms.parsing.row_ops import is_of
from lakejoin.transforms.parsing.source_position import MEMBERS, SOURCE, position_in_source
from lakejoin.transforms.parsing.typed_values import parse_text, without_infinity

_OPS = {"r": "upsert", "c": "upsert", "u": "upsert", "d": "delete", "t": "truncate", "m": "ignored"}
_EXPECTED = "r, c, u, d, t or m"
_FLAT_ROW = r'"after":(\{[^{}]*\})'
_PARSED, _CLOCK = "_lj_parsed", "_lj_clock"
_NONE_AS, _KIND = "_lj_none_as", "_lj_kind"
_WRITTEN_OP, _AFTER, _BEFORE, _KEY = "_lj_written_op", "_lj_after", "_lj_before", "_lj_key"


@dataclass(frozen=True)
class _Event:
    """The rows and the key of an event, as columns."""

    table: TableSpec
    after: Column
    before: Column
    key: Column

    def source(self, name: str) -> Column:
        """What the event holds for a column: of the row after it, or of what there is of a deleted one."""
        op = F.col(OP)
        if name not in self.table.key:
            source = F.when(op == "upsert", self.after[name])
            in_before = envelope.is_in_before(self.table, name)
            return source.when(op == "delete", self.before[name]) if in_before else source
        return F.coalesce(
            F.when(op == "upsert", self.after[name]),
            F.when(op.isin("upsert", "delete", "tombstone"), self.key[self.table.name_in_source(name)]),
            F.when(op == "delete", self.before[name]),
        )


def members(table: TableSpec, options: ParseOptions) -> Members:
    """What an event that `take_apart` took apart says by the names that it has."""
    record = _record(table, options)
    row, flat = envelope.text_after(F.col(LINE)), F.regexp_extract(F.col(LINE), _FLAT_ROW, 1)
    in_row = {name: table.name_in_source(name) for name in table.columns.names}
    known = {
        name: is_known(table, source_of(table, name)) for name in table.columns.names if options.described
    }
    op = F.col(_WRITTEN_OP)
    if _has_documents(table):
        # an update that says what it set lacks the rest on purpose
        op = F.when(~is_update(F.col(LINE)), op)
    return Members(op, row, flat, in_row, F.col(LINE), record, envelope.origin(record), known)


def _has_documents(table: TableSpec) -> bool:
    return "_id" in table.as_written.key


def _record(table: TableSpec, options: ParseOptions) -> Column:
    return _renamed(record_of(F.col(_PARSED)), _type(table, options), table)


def _renamed(record: Column, dtype: StructType, table: TableSpec) -> Column:
    """An event whose columns are called as they are declared, and no longer as in the source."""
    return record.cast(dtype) if table.written else record


def _type(table: TableSpec, options: ParseOptions) -> StructType:
    origin = envelope.ORIGIN if options.tables or options.asks else ()
    order = envelope.ORDER if options.asks else ()
    position = MEMBERS if SOURCE in envelope.envelope_sequence(table) else ()
    return envelope.event_type(table, (*origin, *order, *position), with_schema=options.described)


def take_apart(lines: DataFrame, table: TableSpec, options: ParseOptions) -> Parts:
    """Take lines (position, context, raw) apart: Debezium's events, their values not yet read by type."""
    order, record = envelope.envelope_sequence(table), _record(table, options)
    frame = with_plain_events(lines, options, documents=_has_documents(table))
    frame = frame.withColumn(_PARSED, parse_line(F.col(LINE), _type(table.as_written, options)))
    frame = frame.withColumns(
        {
            _WRITTEN_OP: envelope.member(record, "op"),
            _AFTER: envelope.member(record, "after"),
            _BEFORE: envelope.member(record, "before"),
        }
    )
    # a column of its own, for what is used at several places is computed at each
    lacks_key = reduce(or_, [F.col(_AFTER)[name].isNull() for name in table.key])
    frame = frame.withColumn(_KEY, F.when(lacks_key, envelope.key(record, table)))
    row = _Event(table, F.col(_AFTER), F.col(_BEFORE), F.col(_KEY))
    frame = _with_op(frame, record, table, options).withColumns(
        {
            **{
                source_of(table, f.name): without_infinity(_text_source(row, f.name), f.dataType, options)
                for f in table.columns
            },
            **{_order(name): _position(record, name, options) for name in order},
            _CLOCK: envelope.order(record, "ts_ms"),
            UNAVAILABLE: _unavailable(table, options),
        }
    )
    frame, exact = _with_exact(frame, table)
    decimals = decimals_of(table.columns)
    texts = Texts(
        exact={name: exact.source(name) for name in decimals},
        before={name: F.col(_BEFORE)[name] for name in table.key},
        exact_before={name: exact.before[name] for name in table.key if name in decimals},
        moves=F.col(_WRITTEN_OP) == "u",
        schema=columns_of(envelope.schema(record)) if options.described else None,
        documents=_has_documents(table),
    )
    frame, columns, old_key = read_texts(frame, table, options, texts)
    return Parts(
        frame=frame,
        columns=columns,
        raw=short_text(F.col(RAW)),
        old_key=old_key,
        sequence=[
            Cell(field.name, field.dataType, text, text.try_cast(field.dataType))
            for field in table.sequence
            if field.name in order
            for text in [F.col(_order(field.name))]
        ],
        clock=parse_text(F.col(_CLOCK), TimestampType(), replace(options, time="millis", timezone=None)),
    )


def _order(name: str) -> str:
    return f"_lj_by_{name}"


def _with_op(frame: DataFrame, record: Column, table: TableSpec, options: ParseOptions) -> DataFrame:
    written, line = F.col(_WRITTEN_OP), F.col(LINE)
    known = F.create_map(*[F.lit(text) for pair in _OPS.items() for text in pair])
    rowless = F.col(_BEFORE).isNull() & F.col(_AFTER).isNull()
    broken = is_broken(F.col(_PARSED))
    none_as = F.when(written.isNull() & rowless, envelope.ignored_as(record, line, broken))
    # a column of its own, for what is used at several places is computed at each
    frame = frame.withColumn(_NONE_AS, none_as)
    is_none, kind = F.col(_NONE_AS).isNotNull(), F.coalesce(F.col(_NONE_AS), F.lit("message"))
    tombstone = F.when(rowless & envelope.has_null_value(record, line), F.lit("tombstone"))
    without_op = F.when(is_none, F.lit("ignored")).otherwise(tombstone)
    op = F.when(written.isNull(), without_op).otherwise(known[written])
    if options.tables:
        # of a tombstone nobody may say whose it is: taken for one of this table's, it would delete another's key; the
        # delete that it follows says so itself
        own = F.when(op == "tombstone", envelope.is_tombstone_of(line, options.tables)).otherwise(
            is_of(*envelope.origin(record), options.tables)
        )
        is_other = op.isNotNull() & ~own
        kind = F.when(is_other, F.when(op == "tombstone", op).otherwise("other_table")).otherwise(kind)
        op = F.when(is_other, "ignored").otherwise(op)
    frame = frame.withColumns({OP: op, _KIND: kind})
    expected = _type(table.as_written, options)
    bad_line, why = line_reason(F.coalesce(line, F.col(RAW)), F.col(_PARSED), expected, options)
    bad_line = F.when(~is_none, bad_line)
    if _has_documents(table):
        part = in_parts(line, map(table.name_in_source, table.columns.names))
        bad_line = F.coalesce(bad_line, F.when(part.isNotNull(), reason_is("parse_error")))
        why = F.coalesce(why, part)
    unknown, no_row = F.col(OP).isNull(), (F.col(OP) == "upsert") & F.col(_AFTER).isNull()
    shown = F.coalesce(F.concat(F.lit('op "'), F.substring(written, 1, 100), F.lit('"')), F.lit("no op"))
    reason = F.when(bad_line.isNotNull(), bad_line).when(unknown, reason_is("unknown_op"))
    detail = F.when(bad_line.isNotNull(), why).when(
        unknown, F.concat(shown, F.lit(f", expected {_EXPECTED}"))
    )
    return frame.withColumns(
        {
            REASON: reason.when(no_row, reason_is("parse_error")),
            DETAIL: detail.when(no_row, F.lit("op r, c or u without a row `after`")).when(
                is_ignored(), F.col(_KIND)
            ),
        }
    )


def _text_source(event: _Event, name: str) -> Column:
    source = event.source(name)
    if name in event.table.key:
        return source
    return F.when(~is_placeholder(source, event.table.columns[name].dataType), source)


def _position(record: Column, name: str, options: ParseOptions) -> Column:
    """What orders an event; below every position of a log where a snapshot's read has none, if so declared."""
    is_read = F.col(_WRITTEN_OP) == "r"
    if name == SOURCE:
        return position_in_source(
            envelope.member(record, "source"), F.coalesce(is_read, F.lit(False)), options.epochs
        )
    found = envelope.order(record, name)
    if name != "lsn" or options.snapshots != "oldest":
        return found
    return F.when(is_read & found.isNull(), F.lit("0")).otherwise(found)


def _unavailable(table: TableSpec, options: ParseOptions) -> Column:
    """Names of the columns that an upsert left out; null for none, as almost always."""
    fields = [field for field in table.columns if field.name not in table.key]
    values = {field.name: (F.col(_AFTER)[field.name], field.dataType) for field in fields}
    names = stood_for(F.col(LINE), values)
    wanted = {field.name: table.name_in_source(field.name) for field in fields}
    if options.absent == "keep":
        absent = absent_from(F.json_object_keys(envelope.text_after(F.col(LINE))), wanted)
        names = F.concat(F.coalesce(names, F.array().cast("array<string>")),
                         F.when(F.col(_WRITTEN_OP) == "u", absent).otherwise(F.array()))  # fmt: skip
    if _has_documents(table):
        names = F.when(is_update(F.col(LINE)), not_named(F.col(LINE), wanted)).otherwise(names)
    return F.when((F.col(OP) == "upsert") & (F.size(names) > 0), names)


def _with_exact(frame: DataFrame, table: TableSpec) -> tuple[DataFrame, _Event]:
    """Put beside the texts those of decimals with all their digits, where the first may have lost some."""
    decimals, written = decimals_of(table.columns), table.as_written
    record = _renamed(record_of(F.col(EXACT)), envelope.row_type(table, decimals), table)
    if decimals:
        found = [
            (table.name_in_source(n), dtype, F.col(source_of(table, n))) for n, dtype in decimals.items()
        ]
        names = decimals_of(written.columns)
        frame = frame.withColumn(EXACT, parse_digits(F.col(LINE), envelope.row_type(written, names), found))
    after, before = envelope.member(record, "after"), envelope.member(record, "before")
    return frame, _Event(table, after, before, envelope.key(record, table))
