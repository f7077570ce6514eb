"""What a vacuum removes, what it keeps, and what is said of it before."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.live_files import extent, live_files
from lakejoin.storage.delta_table.vacuum import vacuum, waste

NOTHING_KEPT = timedelta(0)


def table_of(spark: SparkSession, path: str, versions: int) -> None:
    """A table that was written anew again and again, each version in a file of its own."""
    for version in range(versions):
        rows = spark.range(version * 10, version * 10 + 10).coalesce(1)
        rows.write.format("delta").mode("overwrite").save(path)


def read_at(spark: SparkSession, path: str, version: int) -> list[int]:
    """Read every row of a version, from its files."""
    rows = spark.read.format("delta").option("versionAsOf", version).load(path)
    return sorted(row["id"] for row in rows.collect())


@pytest.mark.failure(4)
@pytest.mark.bad_input(36)
@pytest.mark.spark
def test_vacuum_removes_what_is_said_to_be_waste_and_keeps_pinned_versions(
    spark: SparkSession, lake: Path
) -> None:
    """Files of unpinned old versions go, and one that a commit left which never came about; the rest can be read."""
    path = str(lake)
    table_of(spark, path, 4)
    orphan = lake / "part-00000-0-c000.snappy.parquet"
    orphan.write_bytes(b"x" * 1000)
    expected = {
        *[file.name for version in (0, 2) for file in live_files(path, version)],
        orphan.name,
    }
    found = waste(path, datetime.now(UTC) + timedelta(seconds=1), {1})
    assert {file.name for file in found.files} == expected
    before = extent(path)

    vacuum(spark, path, NOTHING_KEPT, {1})

    assert [(lake / name).exists() for name in expected] == [False] * 3
    assert not [name for name in expected if (lake / f".{name}.crc").exists()]
    assert read_at(spark, path, 1) == list(range(10, 20))
    assert read_at(spark, path, DeltaTable(path).version()) == list(range(30, 40))
    after = extent(path)
    assert after.files == before.files == 1
    assert after.live_bytes == before.live_bytes
    assert not waste(path, datetime.now(UTC) + timedelta(seconds=1), {1}).any


@pytest.mark.spark
def test_nothing_is_waste_within_the_retention(spark: SparkSession, lake: Path) -> None:
    """A version that was current at the horizon is kept, also when its files are older; so is the next one."""
    path = str(lake)
    table_of(spark, path, 3)
    (first,), (second,), (third,) = (live_files(path, version) for version in range(3))
    now = datetime.now(UTC)
    hours = {first.name: 30, second.name: 20, third.name: 1}
    for version, (name, age) in enumerate(hours.items()):
        for file in (lake / name, lake / "_delta_log" / f"{version:020}.json"):
            os.utime(file, times=(now.timestamp() - age * 3600,) * 2)

    assert not waste(path, now - timedelta(hours=25), set()).any
    assert [file.name for file in waste(path, now - timedelta(hours=10), set()).files] == [first.name]
    assert not waste(path, now - timedelta(hours=10), {0}).any
    vacuum(spark, path, timedelta(days=7), set())
    assert read_at(spark, path, 0) == list(range(10))


@pytest.mark.bad_input(36)
@pytest.mark.spark
def test_another_retention_than_deltas_is_stated_in_the_table(spark: SparkSession, lake: Path) -> None:
    """Once: the next vacuum finds it there, and one with Delta's own states nothing."""
    path = str(lake)
    table_of(spark, path, 1)
    for retention, version in ((timedelta(days=7), 0), (timedelta(days=60), 1), (timedelta(days=60), 1)):
        vacuum(spark, path, retention, set())
        assert DeltaTable(path).version() == version
    assert DeltaTable(path).metadata().configuration == {
        "delta.enableExpiredLogCleanup": "false",
        "delta.deletedFileRetentionDuration": "interval 5184000 seconds",
        "delta.logRetentionDuration": "interval 5184000 seconds",
    }
