"""Frames that a batch uses several times: computed once, and cut off from the plan that made them.

A cached frame would do for the first, but its plan lives on in every plan built on it, and Spark analyses all of it
again at each step: with a frame used twice at each of five steps, most of a small batch's time went there.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

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


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """No rows of a schema, known to be none: Spark removes what is joined with or added to it from the plan.

    `createDataFrame([])` would be a frame like any other, read through a Python process at every use.
    """
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(0).where(F.lit(False)).select(*columns)


def one_row(spark: SparkSession, values: Mapping[str, object], schema: str) -> DataFrame:
    """A frame of one row, made without a Python process. `schema`: as DDL, its columns among the names of `values`."""
    text = json.dumps(values, default=_json)
    options = {"mode": "FAILFAST", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX"}
    return spark.range(1).select(F.from_json(F.lit(text), schema, options).alias("row")).select("row.*")


def _json(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} has no place in a bookkeeping table")
