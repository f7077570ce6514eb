"""Decides which versions a versioned store accepts when many are put at once.

They are looked at one after the other, as if each had been put alone: a version from a later time may be what makes the
next one too old.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.storage.stores.write.layout import PLACE
from lakejoin.storage.stores.write.put_errors import blamed
from lakejoin.storage.stores.write.puts import Writer
from lakejoin.transforms.model.event_time import EPOCH, latest, moved_back
from lakejoin.transforms.model.schemas import named

_EXPIRED = "_lj_expired"
_MICROSECOND = timedelta(microseconds=1)


def accepted_rows(
    rows: Sequence[tuple[Any, ...]], time: int, bound: datetime | None, retention: timedelta | None
) -> list[tuple[Any, ...]]:
    """Return the rows that are not too old; `time` is the number of the column with their time."""
    if retention is None:
        return list(rows)
    kept = []
    for row in rows:
        if bound is None or row[time] >= bound:
            kept.append(row)
            bound = latest(bound, moved_back(row[time], retention))
    return kept


def accepted(
    writer: Writer, entries: DataFrame, order: str | None, bound: datetime | None, retention: timedelta | None
) -> tuple[int, int]:
    """Put the rows of a frame that are not too old; return how many were put, and how many were too old."""
    rows = writer.numbered(entries, order)
    with blamed(writer.path, writer.layout):
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)  # which computes what is constant
    try:
        with blamed(writer.path, writer.layout):
            judged = rows if retention is None else _judged(rows, bound, retention)
            judged = judged.persist(StorageLevel.MEMORY_AND_DISK) if judged is not rows else judged
            expired = 0 if judged is rows else judged.where(named(_EXPIRED)).count()
            total = rows.count()
        if total > expired:
            writer.put_frame(judged if judged is rows else judged.where(~named(_EXPIRED)), PLACE)
        judged.unpersist()
    finally:
        rows.unpersist()
    return total - expired, expired


def _judged(rows: DataFrame, bound: datetime | None, retention: timedelta) -> DataFrame:
    """Rows with whether they are too old, or the same frame where none can be.

    The running maximum goes over all keys, so in one partition: of a frame whose times span more than the retention.
    """
    micros, allowed = F.unix_micros(named("valid_from")), retention // _MICROSECOND
    found = rows.agg(F.min(micros).alias("least"), F.max(micros).alias("greatest")).first()
    if found is None or found["least"] is None:
        return rows
    start = None if bound is None else (bound - EPOCH) // _MICROSECOND + allowed
    greatest = found["greatest"] if start is None else max(start, found["greatest"])
    if found["least"] >= greatest - allowed:
        return rows
    before = Window.orderBy(named(PLACE)).rowsBetween(Window.unboundedPreceding, -1)
    newest = F.greatest(F.max(micros).over(before), F.lit(start).cast("bigint"))
    return rows.withColumn(_EXPIRED, F.coalesce(micros < newest - F.lit(allowed), F.lit(False)))
