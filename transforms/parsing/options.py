"""Defines what the parsers are told, and what the frames of parsed records look like.

Parsing has three steps. The parser of a format (`transforms.parsing.debezium`, `transforms.parsing.flat_rows`) takes
lines apart into sources, one for each declared column. `transforms.parsing.typed_values` reads a source by the declared
type. `transforms.parsing.validation` accepts or quarantines the record. A line always gives exactly one record that is
not derived, even if it is quarantined.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

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
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Question
from lakejoin.transforms.parsing.csv_dialect import RFC_4180, CsvDialect
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, RowOp

TimeUnit = Literal["micros", "millis", "nanos"]
Absent = Literal["clear", "keep"]
Snapshots = Literal["in_order", "oldest"]
Infinity = Literal["max", "null", "quarantine"]
Encoding = Literal["string", "precise", "days", TimeUnit, "base64", "base64-url-safe", "hex"]
"""How a source writes the values of a column, where one text has two meanings. Numbers in quotes: their digits, or the
base64 of the unscaled number (Debezium's `decimal.handling.mode`); whole numbers that are dates or times; binary as
text."""
Reason = Literal[
    "too_large",
    "invalid_utf8",
    "parse_error",
    "unknown_op",
    "null_key",
    "type_mismatch",
    "bad_timestamp",
    "null_sequence",
]
"""Why a record cannot be read; of several reasons the first in this order. What is wrong with one that can be read,
`transforms.changelog` and `transforms.model.event_time` say."""


DEEPEST = 998
"""Levels of a line that Spark's parser can read: it ends at 1,000, of which two are ours
(`transforms.parsing.json_lines`)."""


@dataclass(frozen=True)
class ParseOptions:
    """What a source says about its files, beside the columns of its table."""

    format: str
    """As `storage.sources.formats.known_formats` names it."""
    time: TimeUnit = "micros"
    """Unit of whole numbers in `timestamp` columns."""
    timezone: str | None = None
    """Zone of timestamps in text that name none; without it they are bad."""
    encodings: Mapping[str, Encoding] = field(default_factory=dict)
    """How values are written, by the names of the columns that say it."""
    encoding: Encoding | None = None
    """How the values at hand are written; None where their column does not say it."""
    tables: tuple[str, ...] = ()
    """Tables of the database whose events are read, as `table` or `schema.table`, with `*` for any signs; none: all."""
    absent: Absent | None = None
    """What becomes of a column that an update has no member for: it is null, or stays as it was. None: as `clear`, but
    nobody said so."""
    snapshots: Snapshots | None = None
    """What orders a snapshot's reads: their place, or, of one that has no position of its own, that it is older than
    every change. None: as `in_order`, but nobody said so."""
    epochs: tuple[int, ...] = ()
    """When the log of the database begins anew, in milliseconds since 1970 (`transforms.parsing.source_position`)."""
    infinity: Infinity = "quarantine"
    """What becomes of PostgreSQL's times without end: the last or first one there is, null, or no record."""
    of_debezium: bool = False
    """Debezium wrote the values: by `time.precision.mode: isostring` a time without a zone ends in `Z`."""
    row_op: RowOp = DEFAULT_OP
    """How a flat row tells what happened to it."""
    dialect: CsvDialect = RFC_4180
    """How CSV is written."""
    trusts_sequence: bool = False
    """The declared sequence is meant, even one that begins with what orders no commits."""
    max_line: int = 100_000_000
    """Bytes that a line may have, or the texts of a row together."""
    max_depth: int = DEEPEST
    """Levels of objects and arrays that a line may have."""
    described: bool = True
    """Records may say themselves how their values are written (`transforms.parsing.connect_schema`). To look for that
    makes a plan that takes twice as long to make, so a source in whose files nothing says it is read without."""
    asks: bool = False
    """The records are asked what in them can be read in two ways, and have a column with what they say to it."""
    flawless: bool = False
    """Every record is known to be acceptable: of a row of typed columns nobody asks why it should not be."""

    def of_column(self, name: str) -> "ParseOptions":
        """The options for the values of one column."""
        match self.encodings.get(name):
            case None:
                return self
            case "micros" | "millis" | "nanos" as unit:
                return replace(self, time=unit, encoding=unit)
            case encoding:
                return replace(self, encoding=encoding)


@dataclass(frozen=True)
class Cell:
    """One value of a record, before and after it was read by type."""

    name: str
    """What messages call it."""
    dtype: DataType
    source: Column
    """Column of the frame with what the record holds: text, or a value of a Parquet file."""
    value: Column
    """The source by type; null where it is none of it."""


@dataclass(frozen=True)
class Parts:
    """Records taken apart, their sources not yet read by type."""

    frame: DataFrame
    """Position, context, op, reason, detail and unavailable, beside the sources of all cells."""
    columns: Sequence[Cell]
    """The declared columns in their order; null where the operation needs none."""
    raw: Column
    """The record as text, for quarantine."""
    old_key: Sequence[Cell] = ()
    """The key before an update that may have changed it, else null; none in formats without such events."""
    sequence: Sequence[Cell] = ()
    """The sequence fields that are no declared columns, or that order a record otherwise than their column says."""
    clock: Column | None = None
    """Time of a record without event time."""
    asked: Sequence[Question] = ()
    """What is asked of the records."""
    flawless: bool = False
    """Every record is known to be acceptable."""


def source_of(table: TableSpec, name: str) -> str:
    """The column with what a record holds for a declared column, once it is taken apart."""
    return f"_lj_source_{table.columns.names.index(name)}"


def reason_is(reason: Reason) -> Column:
    """The reason as a literal, checked by the type checker."""
    return F.lit(reason)


def records_schema(table: TableSpec) -> StructType:
    """Schema of parsed records: the declared columns, and beside them what `apply_changes` needs."""
    return StructType(
        [
            *table.columns,
            StructField(POSITION, POSITION_TYPE),
            StructField(OP, StringType()),
            StructField(SEQUENCE, table.sequence),
            StructField(TIME, TimestampType()),
            StructField(CONTEXT, BooleanType()),
            StructField(DERIVED, BooleanType()),
            StructField(UNAVAILABLE, ArrayType(StringType())),
            StructField(REASON, StringType()),
            StructField(DETAIL, StringType()),
            StructField(RAW, StringType()),
        ]
    )
