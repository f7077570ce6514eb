"""Which versions of a lake's tables must stay, whatever their age. No Spark here."""

from datetime import UTC, datetime
from pathlib import Path

from lakejoin.orchestration.lake_state.fold_progress import pinned_versions
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan, Published

NOW = datetime(2024, 1, 1, tzinfo=UTC)
LOG, BASE = "tables/orders/changes", "tables/orders/rows"


def journal_with(folder: Path, *, under_way: bool) -> Journal:
    """The journal of a finished batch, after which its base was folded, and perhaps of a second batch."""
    journal = Journal(Lake(str(folder / "lake")))
    pinned = [{LOG: 3, BASE: 10}, {LOG: 7, BASE: 12}]
    journal.plans += [
        Plan(number, "batch", NOW, (), versions, {BASE: number}, {}, (), (), "", {}, "0.1")
        for number, versions in enumerate(pinned[: 1 + under_way], start=1)
    ]
    journal.published.append(
        Published(1, "batch", NOW, (), {LOG: 6, BASE: 11}, {}, {}, {}, {}, {}),
    )
    return journal


def test_versions_that_readers_see_stay(tmp_path: Path) -> None:
    """Those of the last snapshot as others read it, and as a plan after it has it: with the base from before."""
    found = pinned_versions(journal_with(tmp_path, under_way=False))

    assert found == {LOG: {6}, BASE: {10, 11}}


def test_versions_that_a_batch_under_way_pins_stay(tmp_path: Path) -> None:
    """It is run again from them, however long that takes."""
    found = pinned_versions(journal_with(tmp_path, under_way=True))

    assert found == {LOG: {6, 7}, BASE: {10, 11, 12}}
