"""Keeps the history of a result by event time: which row was true when, revised when late records come.

Before a bound nothing can change any more. What the history has from before it stays, and goes on where the row that
the join has from the bound on is the same.
"""

from datetime import datetime
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.transforms.foreign_key_join.history import IS_CURRENT, history_schema, version
from lakejoin.transforms.foreign_key_join.temporal_join import SPAN
from lakejoin.transforms.model.event_time import instant
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, HASH, VALID_FROM, VALID_TO, key_struct, named

GONE = "_lj_gone"
"""True for a row that the history no longer has, in the place of which there is no other that begins with it."""
_BEGINS, _RUN, _ROW, _NOW, _WAS, _MADE = "_lj_begins", "_lj_run", "_lj_row", "_lj_now", "_lj_was", "_lj_made"


def reaching(rows: DataFrame, since: datetime | None) -> DataFrame:
    """The rows of a history that a batch may revise: those that reach a time, or go beyond it."""
    if since is None:
        return rows
    return rows.where(F.col(VALID_TO).isNull() | (F.col(VALID_TO) >= instant(since)))


def revised(
    rows: DataFrame, stored: DataFrame, join: ResultSpec, number: Column, since: datetime | None
) -> DataFrame:
    """Return what a batch changes in a history: rows that it writes, and those that go, as `GONE`.

    `rows`: of `temporal_join`, of some left keys. `stored`: rows of `history_schema` of the same keys, at least those
    of `reaching`. `since`: before it the history stays as it is. `number`: of the batch. A row is identified by its
    left key and `VALID_FROM`.
    """
    wanted = _coalesced(_from(rows, join, since).unionByName(_settled(stored, join, since)), join)
    return _differences(wanted, stored, join, number)


def _compared(join: ResultSpec) -> list[str]:
    """What a row is made of, beside its times."""
    return [*join.columns.names, HASH, *[field.name for field in join.sequences]]


def _from(rows: DataFrame, join: ResultSpec, since: datetime | None) -> DataFrame:
    """What the join has from a time on."""
    begin, end = F.col(SPAN)[VALID_FROM], F.col(SPAN)[VALID_TO]
    if since is not None:
        begin = F.greatest(begin, instant(since))
    hashed = rows.withColumns({HASH: value_hash(join.columns), VALID_FROM: begin, VALID_TO: end})
    found = hashed.select(*map(named, _compared(join)), VALID_FROM, VALID_TO)
    return found.where(F.col(VALID_TO).isNull() | (F.col(VALID_FROM) < F.col(VALID_TO)))


def _settled(stored: DataFrame, join: ResultSpec, since: datetime | None) -> DataFrame:
    """What the history has up to a time."""
    found = stored.select(*map(named, _compared(join)), VALID_FROM, VALID_TO)
    if since is None:
        return found.limit(0)
    bound = instant(since)
    return found.where(F.col(VALID_FROM) < bound).withColumn(VALID_TO, F.least(VALID_TO, bound))


def _coalesced(rows: DataFrame, join: ResultSpec) -> DataFrame:
    """Make one of rows that follow each other and are the same; it has the sequences of the first.

    So it does not matter at which moments versions of the sides came that changed nothing in the result.
    """
    left_key = [named(name) for name in join.joined_left_key]
    by_key = Window.partitionBy(*left_key).orderBy(VALID_FROM)
    goes_on = (F.lag(HASH).over(by_key) == F.col(HASH)) & (F.lag(VALID_TO).over(by_key) == F.col(VALID_FROM))
    begins = rows.withColumn(_BEGINS, F.when(F.coalesce(goes_on, F.lit(False)), 0).otherwise(1))
    runs = begins.withColumn(_RUN, F.sum(_BEGINS).over(by_key.rowsBetween(Window.unboundedPreceding, 0)))
    content = F.struct(*map(named, [*_compared(join), VALID_FROM]))
    one = runs.groupBy(*left_key, _RUN).agg(
        F.min_by(content, VALID_FROM).alias(_ROW), F.max_by(F.struct(VALID_TO), VALID_FROM).alias(_MADE)
    )
    return one.select(f"{_ROW}.*", F.col(_MADE)[VALID_TO].alias(VALID_TO))


def _differences(wanted: DataFrame, stored: DataFrame, join: ResultSpec, number: Column) -> DataFrame:
    identity = (*join.joined_left_key, VALID_FROM)
    same = [VALID_TO, HASH, *[field.name for field in join.sequences]]
    now = wanted.select(key_struct(identity).alias("now_key"), F.struct("*").alias(_NOW))
    was = stored.select(key_struct(identity).alias("was_key"), F.struct("*").alias(_WAS))
    pairs = [F.col("now_key")[name] == F.col("was_key")[name] for name in identity]
    met = now.join(was, reduce(and_, pairs), "full")
    stays = reduce(and_, [F.col(_NOW)[name].eqNullSafe(F.col(_WAS)[name]) for name in same])
    there = F.col(_NOW).isNotNull() & F.col(_WAS).isNotNull()
    given = {BATCH: number, IS_CURRENT: F.col(_NOW)[VALID_TO].isNull()}
    written = version(join, given, _NOW)
    gone = F.col(_NOW).isNull()
    return (
        met.where(~(there & stays))
        .select(F.when(gone, F.col(_WAS)).otherwise(written).alias(_MADE), gone.alias(GONE))
        .select(*[F.col(_MADE)[field.name].alias(field.name) for field in history_schema(join)], GONE)
    )
