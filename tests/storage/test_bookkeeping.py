"""Bookkeeping tables: a row a commit, once each, and few files."""

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from storage.bookkeeping import condense, record, row_files
from storage.errors import LakeUnusable
from storage.transaction import Transaction

SCHEMA = pa.schema([("batch", pa.int64())])


def batch(path: str, number: int) -> bool:
    """Record a batch; returns whether that made a commit."""
    return record(path, {"batch": number}, SCHEMA, Transaction("lake/plan", number, {}))


def batches(path: str) -> list[int]:
    """What is recorded."""
    return sorted(DeltaTable(path).to_pyarrow_table()["batch"].to_pylist())


def test_condensed_table_has_one_file_and_still_knows_its_commits(tmp_path: Path) -> None:
    """It is due after twenty rows, not before; a commit that comes once more is known, and the next one is made."""
    path = str(tmp_path / "_plan")
    for number in range(1, 21):
        assert not Path(path).exists() or not row_files(path).due
        batch(path, number)
    assert row_files(path).due

    condense(path, timedelta(0))

    assert (row_files(path).count, row_files(path).any) == (1, False)
    assert len([*Path(path).glob("*.parquet")]) == 1
    assert not batch(path, 20)
    assert batch(path, 21)
    assert batches(path) == [*range(1, 22)]


def test_files_stay_as_long_as_somebody_may_read_them(tmp_path: Path) -> None:
    """Who looked at the table before it was condensed can read it to the end."""
    path = str(tmp_path / "_plan")
    batch(path, 1)
    batch(path, 2)
    reader = DeltaTable(path)

    condense(path, timedelta(days=7))

    assert row_files(path).count == 1
    assert sorted(reader.to_pyarrow_table()["batch"].to_pylist()) == [1, 2]


def test_table_that_cannot_be_condensed_says_which(tmp_path: Path) -> None:
    """A run that condenses after its batch ends with a message."""
    path = str(tmp_path / "_plan")
    batch(path, 1)
    batch(path, 2)
    next(Path(path).glob("*.parquet")).unlink()
    with pytest.raises(LakeUnusable, match=r"_plan: cannot be written \("):
        condense(path, timedelta(days=7))
