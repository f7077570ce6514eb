"""Gives every source record of a batch its status (the column `_lj_verdict`), and counts the records by it."""

from functools import cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructType

from lakejoin.orchestration.batch.tables.versioned import EXPIRED
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.transforms.changelog.filtered_rows import FILTERED
from lakejoin.transforms.changelog.versions import is_version
from lakejoin.transforms.model.ignored_records import IGNORED, ignored_counts, without_none
from lakejoin.transforms.model.schemas import (
    CHANGED,
    CONTEXT,
    CURRENT,
    DELETED,
    DERIVED,
    DETAIL,
    EXISTED,
    INSERTED,
    OP,
    RAW,
    REASON,
    TIE,
    VERDICT,
    absent,
    changes_schema,
    named,
)
from lakejoin.transforms.model.specs import TableSpec

VERDICTS = ("applied", "out_of_order", "duplicate", "tombstone", "expired", "late", "ignored", "quarantined")

COUNTS = ("records", *VERDICTS, "history", "versions", "tie", "changed", "inserted", "removed")
"""What `count_verdicts` counts of a table."""
LOGGED = "_lj_logged"
"""Rows of a batch that its log of changes takes, derived ones as well."""


def records_schema(table: TableSpec) -> StructType:
    """Schema of applied records: the columns that the log keeps, and those that only the batch needs."""
    schema = StructType([*changes_schema(table.columns, table.sequence)])
    for name in (REASON, DETAIL, RAW):
        schema = schema.add(name, StringType())
    for name in (CHANGED, EXISTED, INSERTED):
        schema = schema.add(name, BooleanType())
    return schema


def with_set_aside(judged: DataFrame, records: DataFrame, table: TableSpec) -> DataFrame:
    """Put the records that could not be applied beside those that were, so that each is accounted for."""
    schema = records_schema(table)
    # a record that gave two rows is refused once
    refused = F.col(REASON).isNotNull() & ~F.col(DERIVED)
    expired = F.col(EXPIRED) if EXPIRED in records.columns else F.lit(False)
    verdict = F.when(F.col(REASON).isNotNull(), "quarantined").when(expired, "expired").otherwise("applied")
    beside = records.where(~F.col(CONTEXT) & (refused | (F.col(OP) == "truncate") | expired)).withColumns(
        {VERDICT: verdict, CURRENT: F.lit(False), TIE: F.lit(False), DELETED: F.lit(False)}
    )
    frames = []
    for frame in (judged, beside):
        present = set(frame.columns)
        columns = [named(f.name) if f.name in present else absent(f.name, f.dataType) for f in schema]
        frames.append(frame.select(*columns))
    return frames[0].unionByName(frames[1])


def first_records(log: DataFrame, table: TableSpec) -> DataFrame:
    """Records that are the first of a table, and each the only one of its key, of the rows that its log begins with.

    All other columns that applying it would give then follow from its status.
    """
    applied = F.col(VERDICT) == "applied"
    said = {CHANGED: applied, EXISTED: F.lit(False), INSERTED: applied & ~F.col(DELETED)}
    nothing = [absent(name, StringType()) for name in (REASON, DETAIL, RAW)]
    return log.select("*", *nothing).withColumns(said).select(*map(named, records_schema(table).names))


def count_verdicts(records: DataFrame) -> dict[str, int]:
    """Count the records of a batch by status, each source record once.

    Beside them: those that are ignored by their kinds (`IGNORED`), where that is known; `history` (of those out of
    order, what entered the history of a versioned table) and `versions` (all that did), `FILTERED` (rows that do not
    meet the condition of the table), ties, `changed` (applied
    changes, derived ones as well), the keys `inserted` and `removed`, plain inserts as `INSERTED`, and `LOGGED`.
    """
    return without_none(aggregated(records, *_counts()), {*IGNORED, FILTERED})


@cache
def _counts() -> tuple[Column, ...]:
    own = ~F.col(DERIVED)
    return (
        F.count_if(own).alias("records"),
        *[F.count_if(own & _counts_as(verdict)).alias(verdict) for verdict in VERDICTS],
        *ignored_counts(own & (F.col(VERDICT) == "ignored")),
        F.count_if(own & (F.col(VERDICT) == "history")).alias("history"),
        F.count_if(is_version()).alias("versions"),
        F.count_if(own & is_logged() & (F.col(OP) == FILTERED)).alias(FILTERED),
        F.count_if(F.col(TIE)).alias("tie"),
        F.count_if((F.col(VERDICT) == "applied") & (F.col(OP) != "truncate")).alias("changed"),
        F.count_if(F.col(CURRENT) & ~F.col(DELETED) & ~F.col(EXISTED)).alias("inserted"),
        F.count_if(F.col(CURRENT) & F.col(DELETED) & F.col(EXISTED)).alias("removed"),
        F.count_if(F.col(INSERTED)).alias(INSERTED),
        F.count_if(is_logged()).alias(LOGGED),
    )


def is_logged() -> Column:
    """Whether a record's row goes into the log of changes, or else into `quarantine`."""
    return F.col(VERDICT) != "quarantined"


def _counts_as(verdict: str) -> Column:
    """A version that came late is out of order for its key."""
    found = F.col(VERDICT) == verdict
    return found | (F.col(VERDICT) == "history") if verdict == "out_of_order" else found
