"""The journal of a lake: which batches there may be, and what those that were given up leave behind. No Spark here."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest

from lakejoin.storage.delta_log.snapshot import Snapshot
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.bookkeeping import condense, record
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, PUBLISHED, Lake
from lakejoin.storage.lake.plan import Kind, Plan, Published
from lakejoin.storage.sources.planned.planned_file import PlannedFile

NOW = datetime(2024, 1, 1, tzinfo=UTC)
PLANNED = Plan(1, "batch", NOW, (), {}, {}, {}, (), (), "", {}, "0.1")
FILE = PlannedFile("orders", "/x", "x", None, 1, 1, "", 1, True, 0, 1)


def lake_with(folder: Path, planned: list[int], published: list[int]) -> Lake:
    """A lake whose bookkeeping has rows of these batches."""
    lake = Lake(str(folder / "lake"))
    for number in planned:
        plan = replace(PLANNED, batch=number)
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


def journal_of(folder: Path, kinds: Iterable[Kind], **planned: object) -> Journal:
    """The journal of finished batches that ended as these kinds, and whose plans all name the same."""
    journal = Journal(Lake(str(folder / "lake")))
    for number, kind in enumerate(kinds, start=1):
        kept: Kind = "batch" if kind == "abandoned" else kind
        journal.plans.append(replace(PLANNED, batch=number, kind=kept, **planned))  # type: ignore[arg-type]
        journal.published.append(Published(number, kind, NOW, (), {}, {}, {}, {}, {}, {}))
    return journal


def test_join_begins_with_the_last_batch_that_was_not_given_up(tmp_path: Path) -> None:
    """What the one that was given up would have begun is begun by the next, or not at all."""
    assert journal_of(tmp_path, ["bootstrap", "bootstrap", "abandoned"], bootstrap=("left",)).begun == {
        "left": 2
    }
    assert journal_of(tmp_path, ["abandoned"], bootstrap=("left",)).begun == {}


def test_files_of_a_batch_that_was_given_up_or_read_quarantine_are_not_known_by_it(tmp_path: Path) -> None:
    """The former come again; and of the latter only lines were read that were known before."""
    assert journal_of(tmp_path, ["abandoned", "retry"], files=(FILE,)).known_files("orders") == {}
    assert journal_of(tmp_path, ["batch", "abandoned"], files=(FILE,)).known_files("orders") == {"x": FILE}


def test_files_of_plans_are_read_once_and_only_for_who_asks(tmp_path: Path) -> None:
    """A source with a million files is nearly all that `_plan` holds; and older versions of it may go meanwhile."""
    lake = lake_with(tmp_path, [1], [1])
    plan = replace(PLANNED, batch=2, files=(FILE,))
    record(lake.path(PLAN), plan, Transaction("plan", 2, {}))
    read, arrow = list[list[str]](), Snapshot.arrow

    def reading(snapshot: Snapshot, columns: list[str]) -> pa.Table:
        read.append(columns)
        return arrow(snapshot, columns)

    with patch.object(Snapshot, "arrow", reading):
        journal = Journal(lake)
        assert not any("files" in (columns or ()) for columns in read)
        condense(lake.path(PLAN), timedelta(0))
        assert journal.known_files("orders") == {"x": FILE}
        assert journal.first_lines("orders") == {"x": 0}
        assert journal.unfinished == plan

    assert sum("files" in (columns or ()) for columns in read) == 1


def test_file_is_replaced_by_the_batches_before_one(tmp_path: Path) -> None:
    """Not by that batch itself, which reads the state as it was before it."""
    journal = journal_of(tmp_path, ["batch", "replace", "replace"], files=(FILE,))

    assert [journal.replaced_files("orders", until) for until in (2, 3, 4)] == [{}, {"x": 2}, {"x": 3}]


def test_join_that_began_after_a_flush_has_waiting_records_of_its_own() -> None:
    """One that began with the flush, or before it, has released all that came up to then."""
    plan = replace(PLANNED, flushed=3, begun={"with": 3, "after": 4})

    assert [plan.released(join) for join in ("before", "with", "after")] == [3, 3, 0]
