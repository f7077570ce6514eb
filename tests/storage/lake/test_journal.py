"""The journal of a lake: its batches are dense, and at most one is under way. No Spark here."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.delta_log.transaction_id import Transaction
from storage.errors import LakeInconsistent
from storage.lake.bookkeeping import record
from storage.lake.journal import Journal
from storage.lake.layout import PLAN, PUBLISHED, Lake
from storage.lake.plan import Plan, Published

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def lake_with(folder: Path, planned: list[int], published: list[int]) -> Lake:
    """A lake whose bookkeeping has rows of these batches."""
    lake = Lake(str(folder / "lake"))
    for number in planned:
        plan = Plan(number, "batch", NOW, (), {}, {}, {}, (), (), "", {}, "0.1")
        assert record(lake.path(PLAN), plan, Transaction("plan", number, {}))
    for number in published:
        done = Published(number, "batch", NOW, (), {}, {}, {}, {}, {}, {})
        assert record(lake.path(PUBLISHED), done, Transaction("published", number, {}))
    return lake


def test_one_batch_may_be_under_way(tmp_path: Path) -> None:
    """The last one that was planned."""
    journal = Journal(lake_with(tmp_path, [1, 2], [1]))

    assert journal.unfinished is not None
    assert journal.unfinished.batch == 2


@pytest.mark.parametrize(
    ("planned", "published", "told"),
    [
        ([1, 3], [1], r"_plan: batches \[1, 3\] at its end are not dense"),
        ([2], [], r"_plan: batches \[2\] at its end are not dense"),
        ([1, 2, 3], [1, 3], r"_published: batches \[1, 3\] at its end are not dense"),
        ([1, 2], [], "2 batches are planned and 0 published"),
        ([1], [1, 2], "1 batches are planned and 2 published"),
    ],
)
def test_gap_in_the_batches_and_two_under_way_are_told(
    tmp_path: Path, planned: list[int], published: list[int], told: str
) -> None:
    """Something else than a run wrote there: nothing goes on from it."""
    with pytest.raises(LakeInconsistent, match=told):
        Journal(lake_with(tmp_path, planned, published))
