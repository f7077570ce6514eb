"""Keeps the history of a result: which row each key had, after which batch and from when until when.

A version begins with the batch that makes a row other than it was. It ends with the one that makes it another, or takes
it away. An emission that leaves the row as it was begins none.
"""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StructField, StructType, TimestampType

from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    BATCH,
    HASH,
    HASH_TYPE,
    VALID_FROM,
    VALID_TO,
    VALIDITY,
    key_struct,
    named,
)

IS_CURRENT = "is_current"
"""Whether a version is the row that the result has now, where that is asked for."""
UNTIL = "_lj_until"
"""Number of the batch that ended the version; null while none has. `BATCH` is that of the one that began it."""
_ROW, _NOW, _WAS, _STEP = "_lj_row", "_lj_now", "_lj_was", "_lj_step"


def own_columns(join: ResultSpec) -> tuple[str, ...]:
    """The columns that a history has beside those of the result, and people see."""
    marks = join.history is not None and join.history.marks_current
    return (*VALIDITY, *[IS_CURRENT] * marks)


def history_schema(join: ResultSpec) -> StructType:
    """Schema of `joins/J/history`: a version of a row; `HASH` is that of all columns of the result.

    `ResultSpec.sequences` are those of the rows that it was made of, null where that is not known. By event time no
    batch ends a version, which has no `UNTIL`: `BATCH` is then the one that wrote it.
    """
    types = {VALID_FROM: TimestampType(), VALID_TO: TimestampType(), IS_CURRENT: BooleanType()}
    own = [StructField(name, types[name]) for name in own_columns(join)]
    batches = [BATCH] if by_event_time(join) else [BATCH, UNTIL]
    internal = [*[StructField(name, LongType()) for name in batches], StructField(HASH, HASH_TYPE)]
    return StructType([*join.columns, *own, *internal, *join.sequences])


def by_event_time(join: ResultSpec) -> bool:
    """Whether the history of a result goes by event time."""
    return join.history is not None and join.history.by_event_time


def current(versions: DataFrame) -> DataFrame:
    """The versions that no batch has ended."""
    return versions.where(F.col(UNTIL).isNull())


def next_versions(
    emissions: DataFrame, versions: DataFrame, join: ResultSpec, number: Column, time: Column, *, whole: bool
) -> DataFrame:  # fmt: skip
    """Return the versions that a batch ends, with their ends, and those that it begins.

    `emissions`: columns of the result, `ResultSpec.sequences` and `TOMBSTONE`, at most one of each key. `versions`: the
    current ones, of at least these keys. `number` and `time` of the batch. `whole`: the emissions are all rows that the
    result has, and a version of any other key ends.
    """
    columns = [named(name) for name in (*join.columns.names, *[field.name for field in join.sequences])]
    row = F.when(~named(TOMBSTONE), F.struct(*columns)).alias(_ROW)
    now = F.when(~named(TOMBSTONE), value_hash(join.columns)).alias(_NOW)
    came = emissions.select(key_struct(join.joined_key).alias("came_key"), row, now)
    was = versions.select(key_struct(join.joined_key).alias("was_key"), F.struct("*").alias(_WAS))
    pairs = [(F.col("came_key")[name], F.col("was_key")[name]) for name in join.joined_key]
    same_key = reduce(and_, [a.eqNullSafe(b) if join.key_may_be_null else a == b for a, b in pairs])
    met = came.join(was, same_key, "full" if whole else "left")
    changed = met.where(~F.col(_NOW).eqNullSafe(F.col(_WAS)[HASH]))
    of_ended = {VALID_TO: time, IS_CURRENT: F.lit(False), UNTIL: number}
    of_begun = {
        VALID_FROM: time, VALID_TO: F.lit(None), IS_CURRENT: F.lit(True),
        BATCH: number, UNTIL: F.lit(None), HASH: F.col(_NOW),
    }  # fmt: skip
    ended = version(join, of_ended, _WAS)
    begun = version(join, of_begun, _ROW)
    steps = F.array(F.when(F.col(_WAS).isNotNull(), ended), F.when(F.col(_ROW).isNotNull(), begun))
    return changed.select(F.explode(F.array_compact(steps)).alias(_STEP)).select(f"{_STEP}.*")


def version(join: ResultSpec, given: dict[str, Column], others: str) -> Column:
    """A version, of which some columns are given and the others are fields of a struct."""
    return F.struct(
        *[
            given.get(field.name, F.col(others)[field.name]).cast(field.dataType).alias(field.name)
            for field in history_schema(join)
        ]
    )
