"""What is said of a table that is damaged, incomplete or closed to the user."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.errors import LakeInconsistent, LakeUnusable
from lakejoin.storage.lake.layout import QUARANTINE, Lake
from lakejoin.storage.lake.table_counts import quarantined, row_count


@pytest.fixture
def table(lake: Path) -> Path:
    """Return the quarantine of a lake, with one row."""
    rows = pa.table({"_lj_batch": [1], "table": ["orders"], "file": ["a.jsonl"], "reason": ["parse_error"]})
    write_deltalake(str(lake / QUARANTINE), rows)
    return lake / QUARANTINE


def commit(table: Path) -> Path:
    """The last commit of a table."""
    return max((table / "_delta_log").glob("*.json"))


def test_whole_table_is_read(lake: Path, table: Path) -> None:
    """Nothing is said of it."""
    assert quarantined(Lake(str(lake)), 1) == {("orders", "a.jsonl", "parse_error", 1): 1}
    assert row_count(Lake(str(lake)), QUARANTINE, 0) == 1


@pytest.mark.bad_input(42)
@pytest.mark.parametrize("size", [0, 50], ids=["empty", "torn"])
def test_damaged_log_is_named(lake: Path, table: Path, size: int) -> None:
    """A commit that power loss left empty or torn stops whoever reads the lake, with the way out."""
    with commit(table).open("r+") as file:
        file.truncate(size)

    with pytest.raises(LakeInconsistent, match=f"{table}: is damaged, .* Restore it from a copy"):
        quarantined(Lake(str(lake)), 1)


@pytest.mark.bad_input(41)
@pytest.mark.parametrize("content", [None, b"x"], ids=["gone", "no Parquet"])
def test_damaged_data_is_named(lake: Path, table: Path, content: bytes | None) -> None:
    """So does a data file that is not there any more, or is none."""
    for file in table.glob("*.parquet"):
        file.unlink() if content is None else file.write_bytes(content)
    snapshot = Lake(str(lake)).snapshot(QUARANTINE)
    assert snapshot is not None

    with pytest.raises(LakeInconsistent, match=f"^{table}: is damaged, .* Restore it from a copy"):
        snapshot.read()
    with pytest.raises(LakeInconsistent, match=f"^{table}: is damaged, .* Restore it from a copy"):
        quarantined(Lake(str(lake)), 1)


def test_table_that_is_gone_is_named(lake: Path) -> None:
    """A version that was published must be there."""
    with pytest.raises(LakeInconsistent, match=f"{lake}/joins/j/joined: is damaged, or a part of it is gone"):
        row_count(Lake(str(lake)), "joins/j/joined", 3)


def test_table_that_may_not_be_read_is_not_damaged() -> None:
    """There the user needs a right, and no copy."""
    with (
        pytest.raises(LakeUnusable, match=r"/lake/_plan: cannot be read .*13.* right to read it"),
        reading_table("/lake/_plan"),
    ):
        raise PermissionError(13, "Permission denied")


def test_table_that_was_never_made_is_none(lake: Path) -> None:
    """A lake without it, a lake that does not exist, and a directory without a log are the same."""
    (lake / "empty").mkdir(parents=True)

    assert Lake(str(lake)).snapshot("empty") is None
    assert Lake(str(lake / "nowhere")).snapshot("empty") is None


def test_scratch_of_a_run_is_its_own_where_no_lock_keeps_others_away(lake: Path) -> None:
    """Two runs on object storage never write over each other's frames; a directory is locked."""
    remote = Lake("s3a://bucket/lake")

    assert remote.scratch().startswith("s3a://bucket/lake/_scratch/")
    assert remote.scratch() != remote.scratch()
    assert Lake(str(lake)).scratch() == str(lake / "_scratch")
