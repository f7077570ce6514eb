"""Finds what is wrong with a table by its log and the sizes of its files, and moves a damaged table aside."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.live_files import live_files, stored_files
from lakejoin.storage.delta_table.log_cleanup import commits_among
from lakejoin.storage.errors import LakeInconsistent, LakeUnusable
from lakejoin.storage.lake.layout import ASIDE, Lake
from lakejoin.storage.spark.hadoop import located


def damages(path: str) -> Iterator[str]:
    """Yield what is wrong with a table that exists: with its log, or with a data file of its newest version.

    Content is not read: a file of the right size that was altered passes.
    """
    stored = {file.name: file for file in stored_files(path)}
    for version, commit in sorted(commits_among(stored.values()).items()):
        # a file system may keep the name of a file and lose its content; Delta takes that for a commit of nothing
        if commit.size == 0:
            yield f"commit {version} of its log is empty"
    try:
        live = live_files(path)
    except (LakeInconsistent, LakeUnusable) as error:
        yield str(error).removeprefix(f"{path}: ")
        return
    for file in live:
        if file.name not in stored:
            yield f"{file.name} is gone"
        elif stored[file.name].size != file.size:
            yield f"{file.name} has {stored[file.name].size:,} bytes, expected {file.size:,}"


def set_aside(spark: SparkSession, lake: Lake, table: str, now: datetime) -> str:
    """Move a table out of the way, whatever state it is in; return where it is now."""
    source, target = lake.path(table), lake.path(f"{ASIDE}/{now:%Y%m%dT%H%M%S}/{table}")
    system, paths = located(spark, source, target)
    system.mkdirs(paths[1].getParent())
    if not system.rename(*paths):
        raise LakeUnusable(
            f"{source}: cannot be moved to {target}; move or remove it by hand, then repair again"
        )
    # the session may know the table that was here
    jvm: Any = spark._jvm  # noqa: SLF001 - the gateway to the JVM is a private part of PySpark
    jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(spark._jsparkSession, paths[0])  # noqa: SLF001
    return target
