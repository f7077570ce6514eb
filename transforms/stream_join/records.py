"""Gives each record of a stream its status: an event of the stream, ignored, a duplicate, or quarantined."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lakejoin.transforms.model.expressions import meets
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.schemas import (
    BATCH,
    CONTEXT,
    DERIVED,
    DETAIL,
    HASH,
    HASH_TYPE,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIME,
    UNAVAILABLE,
    VERDICT,
    named,
)
from lakejoin.transforms.model.specs import TableSpec

_SEEN = "_lj_seen"


def stream_schema(stream: TableSpec) -> StructType:
    """Schema of `streams/S/records`: a record of the stream and what became of it."""
    return StructType(
        [
            *stream.columns,
            StructField(BATCH, LongType()),
            StructField(POSITION, POSITION_TYPE),
            StructField(SEQUENCE, stream.sequence),
            StructField(TIME, TimestampType()),
            StructField(HASH, HASH_TYPE),
            StructField(VERDICT, StringType()),
        ]
    )


def is_event(where: str | None) -> Column:
    """Which source records are events of a stream; `where`: SQL over the row. Deletes are none.

    A row for which `where` cannot be computed is none either.
    """
    if where is None:
        return F.col(OP) == "upsert"
    return (F.col(OP) == "upsert") & meets(where)


def judge_records(
    records: DataFrame, seen: DataFrame | None, stream: TableSpec, where: str | None
) -> DataFrame:
    """Give every source record of a stream its status: applied, ignored, duplicate or quarantined.

    `records`: what the parsers yield. `seen`: key and sequence of earlier records that these may repeat; None where
    the position orders the stream, for it repeats never. Returns the columns of `stream_schema` without the batch, and
    reason, detail and raw.
    """
    left_out = is_event(where) & F.col(REASON).isNull() & F.col(UNAVAILABLE).isNotNull()
    own = records.where(~F.col(CONTEXT) & ~F.col(DERIVED)).withColumns(
        {
            REASON: F.when(left_out, F.lit("unavailable_value")).otherwise(F.col(REASON)),
            DETAIL: F.when(left_out, F.array_join(UNAVAILABLE, ", ")).otherwise(F.col(DETAIL)),
        }
    )
    left_as = (
        F.when(F.col(OP) == "ignored", F.col(DETAIL)).when(F.col(OP) == "upsert", "where").otherwise("delete")
    )
    verdict = (
        F.when(F.col(REASON).isNotNull(), "quarantined").when(is_event(where), "applied").otherwise("ignored")
    )
    judged = own.withColumn(VERDICT, verdict).withColumn(
        DETAIL, F.when(F.col(VERDICT) == "ignored", left_as).otherwise(F.col(DETAIL))
    )
    if seen is not None:
        judged = _without_repeats(judged, seen, stream)
    hashed = judged.withColumn(HASH, F.when(F.col(VERDICT) == "applied", value_hash(stream.columns)))
    columns = [f.name for f in stream_schema(stream) if f.name != BATCH]
    return hashed.select(*[named(name) for name in columns], REASON, DETAIL, RAW)


def _without_repeats(judged: DataFrame, seen: DataFrame, stream: TableSpec) -> DataFrame:
    """A record with key and sequence of an earlier one is a duplicate, whatever else it says."""
    identity = [*[named(name) for name in stream.key], F.col(SEQUENCE)]
    names = [*stream.key, SEQUENCE]
    before = seen.select(*identity).distinct().withColumn(_SEEN, F.lit(True))
    marked = judged.join(before, names, "left")
    applied = F.col(VERDICT) == "applied"
    earlier = F.row_number().over(Window.partitionBy(*identity, VERDICT).orderBy(POSITION)) > 1
    repeats = applied & (F.coalesce(_SEEN, F.lit(False)) | earlier)
    return marked.withColumn(VERDICT, F.when(repeats, "duplicate").otherwise(F.col(VERDICT))).drop(_SEEN)
