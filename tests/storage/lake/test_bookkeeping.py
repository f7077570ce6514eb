"""Bookkeeping tables: a row a commit, once each, and few files."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakejoin.storage.delta_log.torn_commits import damaged_commits
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.errors import LakeUnusable
from lakejoin.storage.lake import bookkeeping
from lakejoin.storage.lake.bookkeeping import condense, record, row_files
from lakejoin.storage.lake.layout import Lake


@dataclass(frozen=True)
class Batch:
    """A row."""

    batch: int


def batch(path: str, number: int) -> bool:
    """Record a batch; returns whether that made a commit."""
    return record(path, Batch(number), Transaction("lake/plan", number, {}))


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


def test_row_that_another_run_commits_meanwhile_is_not_committed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit stands on the version that was looked at, in which the other one is not yet."""
    path, write = str(tmp_path / "_plan"), bookkeeping.write_deltalake
    batch(path, 1)

    def late(*place: object, **options: object) -> None:
        monkeypatch.setattr(bookkeeping, "write_deltalake", write)
        assert batch(path, 2)
        write(*place, **options)

    monkeypatch.setattr(bookkeeping, "write_deltalake", late)

    assert not batch(path, 2)
    assert batches(path) == [1, 2]


@pytest.mark.parametrize("retention", [timedelta(days=7), timedelta(minutes=30)])
def test_files_stay_as_long_as_somebody_may_read_them(retention: timedelta, tmp_path: Path) -> None:
    """Who looked at the table before it was condensed can read it to the end; Delta counts in hours, none in half."""
    path = str(tmp_path / "_plan")
    batch(path, 1)
    batch(path, 2)
    reader = DeltaTable(path)

    condense(path, retention)

    assert row_files(path).count == 1
    assert sorted(reader.to_pyarrow_table()["batch"].to_pylist()) == [1, 2]


class PowerLoss(BaseException):
    """The machine goes down."""


class Disk:
    """A disk that loses what it was not told to keep, when it is told so for the `last` time of a table."""

    def __init__(self, table: Path, last: int) -> None:
        self._table, self._left, self._kept = table, last, set[Path]()

    def fsync(self, opened: int) -> None:
        """Keep a file; the table's folder is the last of what is kept at a time."""
        if self._left == 0:
            raise PowerLoss
        file = os.fstat(opened)
        self._kept |= {path for path in self._table.rglob("*") if os.path.samestat(path.stat(), file)}
        self._left -= os.path.samestat(self._table.stat(), file)

    def come_back(self) -> None:
        """Leave of every other file its name."""
        for file in self._table.rglob("*"):
            if file.is_file() and file not in self._kept:
                os.truncate(file, 0)


@pytest.mark.failure(16)
@pytest.mark.parametrize("kept", [1, 2, 3])
def test_power_loss_while_a_table_is_condensed_leaves_its_rows(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the new file, its successors' removal, or a checkpoint is on the disk."""
    path = tmp_path / "_plan"
    for number in (1, 2, 3):
        batch(str(path), number)
    disk = Disk(path, kept)
    monkeypatch.setattr(os, "fsync", disk.fsync)

    with pytest.raises(PowerLoss):
        condense(str(path), timedelta(0))

    disk.come_back()
    for damaged in damaged_commits(tmp_path, ["_plan"]):
        assert damaged.last
        damaged.set_aside()
    assert batches(str(path)) == [1, 2, 3]
    assert Lake(str(tmp_path)).snapshot("_plan") is not None


@pytest.mark.failure(16)
def test_empty_commit_that_a_checkpoint_holds_does_no_harm(tmp_path: Path) -> None:
    """What stands in the checkpoint is read from there."""
    path = tmp_path / "_plan"
    batch(str(path), 1)
    batch(str(path), 2)
    condense(str(path), timedelta(0))
    os.truncate(max(path.glob("_delta_log/*.json")), 0)

    snapshot = Lake(str(tmp_path)).snapshot("_plan")

    assert not damaged_commits(tmp_path, ["_plan"])
    assert snapshot is not None
    assert len(snapshot.read()) == 2


def test_table_that_cannot_be_condensed_says_which(tmp_path: Path) -> None:
    """A run that condenses after its batch ends with a message."""
    path = str(tmp_path / "_plan")
    batch(path, 1)
    batch(path, 2)
    next(Path(path).glob("*.parquet")).unlink()
    with pytest.raises(LakeUnusable, match=r"_plan: its rows cannot be put into one file \("):
        condense(path, timedelta(days=7))
