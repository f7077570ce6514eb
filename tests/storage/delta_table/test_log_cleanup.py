"""When the log of a table is due for a checkpoint, and when that would lose a pinned version."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.live_files import StoredFile, stored_files
from lakejoin.storage.delta_table.log_cleanup import checkpoint, commits_among, entries
from lakejoin.storage.delta_table.retention import log_retention, state_retention, unstated

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def log(commits: dict[int, int], checkpoints: tuple[int, ...] = ()) -> list[StoredFile]:
    """Files of a log: the age of each commit in days."""
    files = [
        StoredFile(f"_delta_log/{version:020}.json", 1, NOW - timedelta(days=age))
        for version, age in commits.items()
    ]
    return files + [StoredFile(f"_delta_log/{v:020}.checkpoint.parquet", 1, NOW) for v in checkpoints]


@pytest.mark.parametrize(
    ("commits", "checkpoints", "pinned", "since", "due"),
    [
        (dict.fromkeys(range(50), 0), (), set(), 50, True),
        (dict.fromkeys(range(49), 0), (), set(), 49, False),
        (dict.fromkeys(range(100), 0), (40, 70), set(), 29, False),
        (dict.fromkeys(range(60), 31), (), {59}, 60, True),  # the newest version is never lost
        (dict.fromkeys(range(60), 31), (), {30}, 60, False),
        (dict.fromkeys(range(60), 29), (), {30}, 60, True),
        (
            dict.fromkeys(range(40, 100), 1),
            (40,),
            {39},
            59,
            False,
        ),  # the entries of a pinned version are gone
    ],
)
def test_checkpoint_is_due_after_many_commits_unless_a_pinned_version_needs_expired_ones(
    commits: dict[int, int], checkpoints: tuple[int, ...], pinned: set[int], since: int, due: bool
) -> None:
    """Delta removes entries of more than 30 days with each checkpoint."""
    found = entries(log(commits, checkpoints), NOW, pinned)
    assert (found.since, found.due) == (since, due)


@pytest.mark.parametrize(
    ("age", "retention", "expired"),
    [(32, 30, 60), (30, 30, 0), (29, 30, 0), (32, 40, 0), (42, 40, 60), (3, 2, 60)],
)
def test_checkpoint_is_due_for_what_expired_before_one_that_delta_made(
    age: int, retention: int, expired: int
) -> None:
    """Entries after it are needed to know the table; Delta removes by whole days."""
    commits = dict.fromkeys(range(100), age)
    now = NOW + timedelta(hours=6)
    found = entries(log(commits, (60,)), now, set(), timedelta(days=retention))
    assert (found.since, found.expired, found.due) == (39, expired, expired > 0)
    assert not entries(log(commits, (60,)), now, {50}).due


def aged(path: Path, days: int) -> None:
    """Make the entries of a log older."""
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    for file in (path / "_delta_log").iterdir():
        os.utime(file, (then, then))


@pytest.mark.spark
def test_expired_entries_are_removed_by_maintenance_and_by_no_commit(spark: SparkSession, lake: Path) -> None:
    """Delta makes a checkpoint within every tenth commit, and does not know which versions a batch under way pins."""
    path = str(lake)
    for number in range(15):
        spark.range(1).write.format("delta").mode("append").save(path)
        if number == 9:
            aged(lake, 40)
    assert min(commits_among(stored_files(path))) == 0
    assert spark.read.format("delta").option("versionAsOf", 5).load(path).count() == 6
    assert not unstated(path, timedelta(days=7)).any

    checkpoint(spark, path)

    assert min(commits_among(stored_files(path))) == 10
    assert spark.read.format("delta").load(path).count() == 15


@pytest.mark.spark
def test_table_of_an_earlier_version_is_told_that_maintenance_shortens_its_log(
    spark: SparkSession, lake: Path
) -> None:
    """Delta's property is false by default in our sessions only for tables that these make."""
    path = str(lake)
    spark.range(1).write.format("delta").option("delta.enableExpiredLogCleanup", "true").save(path)
    assert unstated(path, timedelta(days=7)).due
    state_retention(spark, path, timedelta(days=7))
    assert not unstated(path, timedelta(days=7)).any


@pytest.mark.parametrize(
    ("stated", "days", "remembered"),
    [
        (None, 7, 30),
        (None, 40, 40),  # maintenance states it before anything else
        ("interval 90 days", 7, 90),
        ("INTERVAL 1 week 2 days 12 hours", 7, 9.5),
        ("interval 90 days", 40, 40),
    ],
)
def test_what_a_table_says_of_its_log_is_what_expires(
    lake: Path, stated: str | None, days: int, remembered: float
) -> None:
    """Its owner may have said so; Delta removes by it, and neither earlier nor later is an entry's end told."""
    properties = {"delta.logRetentionDuration": stated} if stated else {}
    write_deltalake(str(lake), pa.table({"id": [1]}), configuration=properties)
    assert log_retention(str(lake), timedelta(days=days)) == timedelta(days=remembered)


@pytest.mark.spark
def test_checkpoint_shortens_what_must_be_read(spark: SparkSession, lake: Path) -> None:
    """The transaction identifiers, by which a rerun knows what it did, are in it."""
    path = str(lake)
    for batch in range(3):
        rows = spark.range(1).write.format("delta").mode("append")
        rows.option("txnAppId", "stage").option("txnVersion", batch).save(path)
    assert entries(stored_files(path), datetime.now(UTC), set()).since == 3

    checkpoint(spark, path)

    assert entries(stored_files(path), datetime.now(UTC), set()).since == 0
    assert DeltaTable(path).transaction_version("stage") == 2
