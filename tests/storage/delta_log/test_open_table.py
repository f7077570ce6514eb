"""A version of a table is read once in a process, and never where the table has become another one."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from lakejoin.storage.delta_log.open_table import opened


def write(path: str, *numbers: int) -> None:
    """A commit with a row for each number."""
    write_deltalake(path, pa.table({"number": list(numbers)}), mode="append")


def numbers(table: DeltaTable) -> set[int]:
    """The rows of a table."""
    return {*table.to_pyarrow_table()["number"].to_pylist()}


def test_version_is_read_once(tmp_path: Path) -> None:
    """Whoever asks next gets the same one, also by its number."""
    path = str(tmp_path / "log")
    write(path, 1)
    first = opened(path)
    assert opened(path) is first
    assert opened(path, 0) is first


def test_newest_version_is_the_one_that_was_committed_last(tmp_path: Path) -> None:
    """By whomever; the one before can still be had."""
    path = str(tmp_path / "log")
    write(path, 1)
    assert numbers(opened(path)) == {1}
    write(path, 2)
    assert numbers(opened(path)) == {1, 2}
    assert numbers(opened(path, 0)) == {1}
    assert numbers(opened(path)) == {1, 2}


def test_table_that_was_put_back_is_read_anew(tmp_path: Path) -> None:
    """Its newest version is an earlier one."""
    path, copy = str(tmp_path / "log"), tmp_path / "copy"
    write(path, 1)
    shutil.copytree(path, copy)
    write(path, 2)
    assert opened(path).version() == 1
    shutil.rmtree(path)
    copy.rename(path)
    assert (opened(path).version(), numbers(opened(path))) == (0, {1})


def test_table_that_was_made_anew_is_read_anew(tmp_path: Path) -> None:
    """Also where its versions have the numbers of those before."""
    path = str(tmp_path / "log")
    write(path, 1)
    assert numbers(opened(path)) == {1}
    shutil.rmtree(path)
    write(path, 3)
    assert numbers(opened(path)) == {3}


def test_table_that_is_gone_is_not_found(tmp_path: Path) -> None:
    """What was read before is not what is there."""
    path = str(tmp_path / "log")
    write(path, 1)
    opened(path)
    shutil.rmtree(path)
    with pytest.raises(TableNotFoundError):
        opened(path)


def test_version_of_which_only_a_checkpoint_is_left_is_read_each_time(tmp_path: Path) -> None:
    """Nothing tells whether it is what it was."""
    path = str(tmp_path / "log")
    write(path, 1)
    DeltaTable(path).create_checkpoint()
    (tmp_path / "log" / "_delta_log" / f"{0:020}.json").unlink()
    assert numbers(opened(path)) == {1}
    assert opened(path) is not opened(path)
