"""Frames that a batch uses several times: computed once, and cut off from the plan that made them.

A cached frame would do for the first, but its plan lives on in every plan built on it, and Spark analyses all of it
again at each step: with a frame used twice at each of five steps, most of a small batch's time went there.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

SMALL = 200_000
"""Up to this many records a batch is worked off without shuffles: what it holds fits one task."""

_FOR_SMALL = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}

_computed_later: list[DataFrame] = []
"""What kept frames are computed from, until the batch ends. If the JVM collected these plans before that, the metrics
of their rows would have nowhere to go, and Spark would log an error for every task."""


def keep(frame: DataFrame, *, small: bool = False) -> DataFrame:
    """The same rows, computed when they are first asked for, and then kept until `release`. `small`: see `gather`."""
    gathered = gather(frame, small=small)
    _computed_later.append(gathered)
    return gathered.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK)


def gather(frame: DataFrame, *, small: bool) -> DataFrame:
    """The same rows, in one partition if they are few.

    Frames of one partition are joined and counted where they are, without a shuffle; and starting a task costs more
    than its share of so few rows.
    """
    return frame.coalesce(1) if small else frame


def release(frame: DataFrame) -> None:
    """Free a kept frame; any other is left as it is."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - a kept frame is a leaf that Python cannot free
    if plan.nodeName().startswith("LogicalRDD"):
        plan.rdd().unpersist(False)


@contextmanager
def sized(spark: SparkSession, records: int) -> Iterator[Callable[[], None]]:
    """Settings for a batch of so many records: a small one neither shuffles nor plans twice.

    Yields what puts the usual settings back early, for a small batch that turns out to touch many rows.
    """
    usual = {name: str(spark.conf.get(name)) for name in _FOR_SMALL}
    if records <= SMALL:
        _set(spark, _FOR_SMALL)
    try:
        yield lambda: _set(spark, usual)
    finally:
        _set(spark, usual)
        _computed_later.clear()


def _set(spark: SparkSession, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows of a schema, known to be none: Spark removes what is joined with or added to it from the plan.

    `createDataFrame([])` would be a frame like any other, read through a Python process at every use.
    """
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(0).where(F.lit(False)).select(*columns)
