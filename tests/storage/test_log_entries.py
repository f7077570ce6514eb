"""When the log of a table is due for a checkpoint, and when that would lose a pinned version."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from storage.log_entries import checkpoint, entries
from storage.table_files import StoredFile, stored_files

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
