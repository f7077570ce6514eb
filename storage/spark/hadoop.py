"""Uses Hadoop's file systems, which reach every place a lake can be, and also remove the checksums beside files."""

# ruff: noqa: SLF001 - the gateway to the JVM is a private part of PySpark

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession


def located(spark: SparkSession, *paths: str) -> tuple[Any, list[Any]]:
    """The one file system of these paths, at least one, and the paths as it takes them."""
    jvm: Any = spark._jvm
    found = [jvm.org.apache.hadoop.fs.Path(path) for path in paths]
    return found[0].getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), found


def remove(spark: SparkSession, paths: Sequence[str], *, folders: bool = False) -> None:
    """Remove files of one file system; with `folders` also those, with all that is in them. None need be there."""
    if not paths:
        return
    system, found = located(spark, *paths)
    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(lambda path: system.delete(path, folders), found))
