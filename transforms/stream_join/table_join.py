"""Decides which stream records are due, and joins each with its row of the table (KIP-923).

A record waits until the stream's time has passed its own by the grace period. Meanwhile the table may learn what was so
at that time. What waits is therefore a range of the stream's records by time, and no table of its own.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from lakejoin.transforms.model.event_time import behind_clock, instant, moved_back, with_clock
from lakejoin.transforms.model.join_sides import beside, foreign_key
from lakejoin.transforms.model.schemas import (
    BATCH,
    FOREIGN_KEY,
    HASH,
    HASH_TYPE,
    LEFT_HASH,
    MET,
    MET_HASH,
    MET_KEY,
    MET_VALUE,
    POSITION,
    POSITION_TYPE,
    RIGHT_HASH,
    TIME,
    VERDICT,
    named,
    no_batch,
)
from lakejoin.transforms.model.selection import judged, marks_of, selected
from lakejoin.transforms.model.specs import StreamJoinSpec

ACCEPTED = ("applied", "late")
"""Status of the stream records that a join takes; a `late` one was dropped by the joins that were there at its time."""
ROUTE = "_lj_route"
"""What a stream's join does with a record of the batch: `at_once`, `waits`, `late` or `ignored`."""


def stream_joined_schema(join: StreamJoinSpec) -> StructType:
    """Schema of the joined table of a stream: the record, what it met, and where the record stood."""
    return StructType(
        [
            *join.columns,
            StructField(BATCH, LongType()),
            StructField(POSITION, POSITION_TYPE),
            StructField(TIME, TimestampType()),
            StructField(LEFT_HASH, HASH_TYPE),
            StructField(RIGHT_HASH, HASH_TYPE),
        ]
    )


def route(
    records: DataFrame, join: StreamJoinSpec, clock: datetime | None, *, in_one_task: bool, some_late: bool
) -> DataFrame:
    """Say for each accepted record of a batch what the join does with it, as `ROUTE`; adds `FOREIGN_KEY`.

    `records`: applied records of the stream. `clock`: the join's stream time before the batch. `in_one_task`: as for
    `with_clock`. `some_late`: False where the times of the batch show that none can be late, which spares following
    the clock.

    A record without a foreign key need not wait: an inner join ignores it, and a left join joins it at once.
    """
    keyed = records.withColumn(FOREIGN_KEY, foreign_key(join))
    refers = F.col(FOREIGN_KEY).isNotNull()
    without = F.lit("at_once" if join.how == "left" else "ignored")
    if join.grace is None:
        return keyed.withColumn(ROUTE, F.when(refers, "at_once").otherwise(without))
    late = F.lit(False)
    if some_late:
        keyed = with_clock(keyed, refers, clock, in_one_task=in_one_task)
        late = behind_clock(join.grace)
    after_grace = "late" if join.drops_late else "at_once"
    way = F.when(~refers, without).when(late, F.lit(after_grace)).otherwise("waits")
    return keyed.withColumn(ROUTE, way)


def waiting(records: DataFrame, join: StreamJoinSpec, clock: datetime | None) -> DataFrame:
    """The records of a stream that wait at a stream time, with their `FOREIGN_KEY`.

    `records`: rows of the stream's log. What lies at or before stream time less grace was released, or came late.
    """
    assert join.grace is not None
    accepted = records.where(F.col(VERDICT).isin(*ACCEPTED))
    bound = moved_back(clock, join.grace)
    if bound is not None:
        accepted = accepted.where(F.col(TIME) > instant(bound))
    keyed = accepted.withColumn(FOREIGN_KEY, foreign_key(join))
    return keyed.where(F.col(FOREIGN_KEY).isNotNull())


def is_due(join: StreamJoinSpec, clock: datetime | None) -> Column:
    """Which waiting records leave at a stream time, bounds inclusive."""
    bound = moved_back(clock, join.grace)
    return F.lit(join.grace is None) if bound is None else F.col(TIME) <= instant(bound)


def look_up(records: DataFrame, right: DataFrame) -> DataFrame:
    """Put beside each record the table's row as it is now, as `MET_HASH` and `MET_VALUE` (null: none).

    `records`: with `FOREIGN_KEY`. `right`: primary_key, hash (null for a tombstone) and value.
    """
    rows = beside(right.where(F.col("hash").isNotNull()), MET, "hash", "value")
    return records.join(rows, F.col(FOREIGN_KEY) == F.col(MET_KEY), "left").drop(MET_KEY)


def emit_records(met: DataFrame, join: StreamJoinSpec) -> DataFrame:
    """Rows of the joined table: every record in a left join, those that met a row in an inner one.

    They have what `judged` adds; those that do not meet the condition of the join are among them.
    """
    internal = {POSITION: POSITION, TIME: TIME, LEFT_HASH: HASH, RIGHT_HASH: MET_HASH}
    rows = met if join.how == "left" else met.where(F.col(MET_HASH).isNotNull())
    pairs = rows.select(
        *[named(name) for name in join.left_columns.names],
        *[F.col(MET_VALUE)[n].alias(join.prefix + n) for n in join.right_columns.names],
        *[named(source).alias(name) for name, source in internal.items()],
    )
    return judged(pairs, join).select(*selected(join), no_batch(), *map(named, internal), *marks_of(join))
