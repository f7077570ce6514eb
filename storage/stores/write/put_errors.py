"""Turns what Spark and Delta say of rows that are put into errors of the stores."""

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.errors import LakeBusy, reason_of
from lakejoin.storage.stores.errors import NullKey, StoreReadOnly, WrongKey, WrongRange
from lakejoin.storage.stores.write.layout import Layout
from lakejoin.transforms.model.schemas import named

_TOO_LARGE = ("CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")
_TURNED_ROUND = "lakejoin-session-turned-round"
"""What a row says of itself that is a session which ends before it starts."""


def check_session(path: str, spark: SparkSession) -> None:
    """Raise `StoreReadOnly` where the session that a store was opened with was stopped."""
    context = spark.sparkContext
    if context._jsc is None or context._jsc.sc().isStopped():  # noqa: SLF001 - PySpark has no public call
        raise StoreReadOnly(
            f"{path}: expected a Spark session that runs, found one that was stopped; open the store again with a new "
            "session; nothing was put"
        )


def observed_time(layout: Layout) -> Column:
    """Return the time of a row in microseconds; the row of a session that ends before it starts fails the put."""
    if not layout.times:
        return F.lit(None).cast("bigint")
    time = F.unix_micros(named(layout.times[0]))
    if layout.kind != "session":
        return time
    return F.when(named("start") > named("end"), F.raise_error(_TURNED_ROUND)).otherwise(time)


@contextmanager
def blamed(path: str, layout: Layout) -> Iterator[None]:
    """Raise `NullKey`, `WrongKey`, `WrongRange` or `LakeBusy` for what Spark or Delta says of rows or other writers."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        said = str(error)
        if "DELTA_NOT_NULL_CONSTRAINT_VIOLATED" in said:
            names = ", ".join((*layout.key, *layout.times))
            raise NullKey(
                f"{path}: expected {names} not to be null, found a row with null in one of them; give each a value; "
                "nothing was put"
            ) from error
        if _TURNED_ROUND in said:
            raise WrongRange(
                f"{path}: expected sessions that end no earlier than they start, found a row with the start after the "
                "end; nothing was put"
            ) from error
        if any(condition in said for condition in _TOO_LARGE):
            raise WrongKey(
                f"{path}: expected values that the store's types hold, found one that is too large "
                f"({reason_of(error)}); nothing was put"
            ) from error
        if "DELTA_CONCURRENT" in said:
            raise LakeBusy(others_put(path)) from error
        raise


def others_put(path: str) -> str:
    """Return what is said to the second of two writers."""
    return (
        f"{path}: someone else put rows at the same time; theirs stand, these were not put. Put them again."
    )
