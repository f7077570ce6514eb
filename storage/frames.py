"""Frames that a batch uses several times: computed once, and cut off from the plan that made them.

A cached frame would do for the first, but its plan lives on in every plan built on it, and Spark analyses all of it
again at each step: with a frame used twice at each of five steps, most of a small batch's time went there.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

SMALL = 200_000
"""Up to this many records a batch is worked off without shuffles: what it holds fits one task."""

_ADAPTIVE = "spark.sql.adaptive.enabled"
_PARTITIONS = "spark.sql.shuffle.partitions"


def keep(frame: DataFrame) -> DataFrame:
    """The same rows, computed when they are first asked for, and then kept until `release`."""
    return frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK)


def release(frame: DataFrame) -> None:
    """Free a kept frame; any other is left as it is."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - a kept frame is a leaf that Python cannot free
    if plan.nodeName().startswith("LogicalRDD"):
        plan.rdd().unpersist(False)


@contextmanager
def sized(spark: SparkSession, records: int) -> Iterator[None]:
    """Settings for a batch of so many records: a small one neither shuffles nor plans twice."""
    if records > SMALL:
        yield
        return
    before = {name: spark.conf.get(name) for name in (_ADAPTIVE, _PARTITIONS)}
    spark.conf.set(_ADAPTIVE, "false")
    spark.conf.set(_PARTITIONS, "1")
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))
