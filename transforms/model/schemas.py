"""Names the internal columns of the frames between the stages, and gives the schemas of the tables.

Internal columns begin with `_lj_`, a prefix no declared column may have. Keys travel as structs (`primary_key`,
`foreign_key`), so that composite and single keys take the same path; Delta keeps statistics of their fields.
"""

from functools import cache
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

BATCH = "_lj_batch"
"""Number of the batch that wrote the row; null until the row is committed.

As a literal it would be in the code that Spark generates, and the JVM would compile every stage anew for each batch.
"""
POSITION = "_lj_position"
"""Where the record stood: date of its file (null without `{date}`), file name, line from 1. Its order is fixed."""
SEQUENCE = "_lj_sequence"
"""What orders the changes of one key: the declared sequence columns, or the position."""
OP = "_lj_op"
"""What the record does: one of `Op`."""
TIME = "_lj_time"
"""Event time where declared, else the clock of the batch (null until committed): the clock of tombstone retention.

In a stream's log null for what has none: no event of the stream.
"""
HASH = "_lj_hash"
"""Hash of the value (`hashing.value_hash`); null when the row is deleted."""
EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of `to_json`, without which Spark leaves the microseconds out."""
PRIMARY_KEY, FOREIGN_KEY = "_lj_primary_key", "_lj_foreign_key"
"""The keys of a row, under names that none of its own columns can have."""
MET = "_lj_met"
MET_KEY, MET_HASH, MET_VALUE = (f"{MET}_{name}" for name in ("key", "hash", "value"))
"""The row of the right side that a record is joined with; null for none."""
DELETED = "_lj_deleted"
"""True for the tombstone of a deleted key."""
VERDICT = "_lj_verdict"
"""Status of a source record: one of `Verdict`."""
CURRENT = "_lj_current"
"""True for the one change of a batch that is its key's state afterwards."""
DERIVED = "_lj_derived"
"""True for a change that stands for no source record of its own: truncation, the delete half of a key change."""
TIE = "_lj_tie"
"""True for an applied change whose sequence equals the one it replaces, with other content."""
CHANGED = "_lj_changed"
"""True for the records of a key that a record of the batch changed."""
EXISTED = "_lj_existed"
"""True if the record's key had a live row before the batch."""
INSERTED = "_lj_inserted"
"""True for the only change of its key in the batch, if it is the key's state afterwards and there was no row before."""
PURGED = "_lj_purged"
"""True for the tombstone of a key that the table's rows have forgotten: a record that comes late for it is expired."""
CONTEXT = "_lj_context"
"""True for the line before the batch's range, read only because a tombstone belongs to the delete before it."""
UNAVAILABLE = "_lj_unavailable"
"""Names of columns whose value the source did not send because it did not change (TOAST); null when none."""
REASON = "_lj_reason"
"""Why a record is quarantined; null for a good one."""
DETAIL = "_lj_detail"
"""The column or message that goes with the reason."""
RAW = "_lj_raw"
"""The record's raw text; null for a good one, which needs none."""

Op = Literal["upsert", "delete", "filtered", "tombstone", "truncate", "ignored", "restored"]
"""`filtered`: a row that does not meet the condition of its table. `restored`: a key's state as it is without a file
that was replaced; derived, of no record of its own."""
Verdict = Literal[
    "applied",
    "history",
    "out_of_order",
    "duplicate",
    "tombstone",
    "expired",
    "late",
    "ignored",
    "quarantined",
]
"""`history`: out of order for its key, but still a version of a versioned table."""

POSITION_TYPE = StructType().add("date", DateType()).add("file", StringType()).add("line", LongType())
QUARANTINE_SCHEMA = StructType(
    [
        StructField(BATCH, LongType()),
        StructField("table", StringType()),
        StructField("date", DateType()),
        StructField("file", StringType()),
        StructField("line", LongType()),
        StructField("reason", StringType()),
        StructField("detail", StringType()),
        StructField("raw", StringType()),
    ]
)
"""Schema of `quarantine`: a record of a table or stream that could not be accepted."""
HASH_TYPE = StructType().add("spec", ShortType()).add("high", LongType()).add("low", LongType())
VALID_FROM = "valid_from"
"""When a version began to be valid, inclusive: its event time; of a result the clock of the batch that made it, or, by
event time, when it began to be true."""
VALID_TO = "valid_to"
"""When the next version began, or there was none any more, exclusive; null for the last one."""
VALIDITY = (VALID_FROM, VALID_TO)
LEFT_HASH = "_lj_left_hash"
RIGHT_HASH = "_lj_right_hash"
LEFT_SEQUENCE, RIGHT_SEQUENCE = "_lj_left_sequence", "_lj_right_sequence"
"""The sequences of the rows that a version of a joined row is made of."""
RIGHT_KEY = "_lj_right_key"
"""The right key of a joined row, where the result selects no columns that hold it."""


def is_internal(name: str) -> bool:
    """Whether a column is internal, and not declared."""
    return name.startswith("_lj_")


def quoted(name: str) -> str:
    """The name as an identifier in backticks, safe in any column expression."""
    return "`" + name.replace("`", "``") + "`"


def as_literal(text: str) -> str:
    """The text as a literal of Spark's SQL, whatever signs it holds."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@cache  # every call of the JVM takes its time, and a batch names some hundred columns some hundred times
def named(name: str) -> Column:
    """The column of exactly this name, dots and all."""
    return F.col(quoted(name))


@cache
def absent(name: str, dtype: DataType) -> Column:
    """A column of this name and type without values."""
    return F.lit(None).cast(dtype).alias(name)


@cache
def no_batch() -> Column:
    """`BATCH` of rows that are not committed yet: null."""
    return F.lit(None).cast("bigint").alias(BATCH)


def key_struct(names: tuple[str, ...]) -> Column:
    """The named columns as one struct: a `primary_key`."""
    return F.struct(*[named(name).alias(name) for name in names])


def rows_schema(columns: StructType, sequence: StructType) -> StructType:
    """Schema of `tables/T/rows`: the current value of a key, or the tombstone of a deleted one."""
    return StructType(
        [
            *columns,
            StructField(BATCH, LongType()),
            StructField(POSITION, POSITION_TYPE),
            StructField(SEQUENCE, sequence),
            StructField(TIME, TimestampType()),
            StructField(HASH, HASH_TYPE),
            StructField(DELETED, BooleanType()),
        ]
    )


def changes_schema(columns: StructType, sequence: StructType) -> StructType:
    """Schema of `tables/T/changes`: a source record and what became of it."""
    return StructType(
        [
            *rows_schema(columns, sequence),
            StructField(OP, StringType()),
            StructField(VERDICT, StringType()),
            StructField(CURRENT, BooleanType()),
            StructField(DERIVED, BooleanType()),
            StructField(TIE, BooleanType()),
        ]
    )


def by_reference(value: Column) -> Column:
    """The same literal, but referred to by the code that Spark generates instead of written into it.

    Spark keeps generated code by its text, and writes numbers and times into that. With the number of a batch in it,
    all that writes rows would be compiled anew in each batch, by Java first and by the JVM's compilers then. An array
    is referred to, and Spark does not look up beforehand what is at a place that only a task knows.
    """
    nought = F.spark_partition_id() * 0
    return F.get(F.array(value), nought)


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows of a schema, known to be none: Spark removes what is joined with or added to it from the plan.

    `createDataFrame([])` would be a frame like any other, read through a Python process at every use.
    """
    none = spark.range(0).where(F.lit(False))
    return none.select(F.lit(None).cast(schema).alias("row")).select("row.*")
