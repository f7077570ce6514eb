"""When a base is folded, and which fold was begun and cut off. No Spark here."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.lake.bookkeeping import record
from lakejoin.storage.lake.layout import MAINTENANCE, Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.folds import Fold, Folds, is_due, pays_by_foreign_key

BASE = "tables/orders/rows"
SNAPSHOT = Plan(6, "batch", datetime(2024, 1, 1, tzinfo=UTC), (), {}, {BASE: 2}, {}, (), (), "", {}, "0.1")
"""After five finished batches, of which the base has two."""


def folds(folder: Path, *through: int) -> Folds:
    """The folds of a lake that were begun through these batches, and one of another base."""
    lake = Lake(str(folder / "lake"))
    begun = [*((BASE, batch) for batch in through), ("tables/customers/rows", 4)]
    for number, (base, batch) in enumerate(begun, start=1):
        fold = Fold(number, base, batch, None, None)
        assert record(lake.path(MAINTENANCE), fold, Transaction("maintenance", number, {}))
    return Folds(lake)


@pytest.mark.parametrize(
    ("behind", "held", "due"),
    [
        ([1] * 63, 0, False),
        ([1] * 64, 10**9, True),
        ([100_000, 99_999], 0, False),
        ([100_000, 100_000], 800_000, True),
        ([100_000, 100_000], 800_001, False),
    ],
)
def test_base_is_folded_after_many_batches_or_where_its_log_is_large_beside_it(
    behind: list[int], held: int, due: bool
) -> None:
    """A quarter of the base, but at least so many rows that reading them costs more than the fold."""
    assert is_due(behind, held) == due


@pytest.mark.parametrize(
    ("rows", "asked", "pays"),
    [
        (2_000_000, [], False),
        (2_000_000, [150_000, 100], True),
        (1_999_999, [150_000, 100], False),
        (2_000_000, [150_000, 0, 2_000], False),
        (2_000_000, [1, 0, 2_000, 2_001], True),
    ],
)
def test_left_rows_are_kept_by_foreign_key_where_every_second_batch_looks_few_keys_up(
    rows: int, asked: list[int], pays: bool
) -> None:
    """Of a large table; a batch that changed no right key looks none up, and one that changed many scans."""
    assert pays_by_foreign_key(rows, asked) == pays


@pytest.mark.parametrize(("through", "cut_off"), [(2, False), (3, True), (5, True), (6, False), (7, False)])
def test_fold_that_was_begun_is_repeated_unless_it_is_done_or_its_batches_are_lost(
    tmp_path: Path, through: int, cut_off: bool
) -> None:
    """One through a batch that is not finished is of a lake whose last batches were lost since."""
    found = folds(tmp_path, through).unfinished(BASE, SNAPSHOT)

    assert found == (Fold(1, BASE, through, None, None) if cut_off else None)


def test_last_fold_of_a_base_up_to_a_batch_is_the_one_that_counts(tmp_path: Path) -> None:
    """A later one, and one of another base, are not."""
    begun = folds(tmp_path, 2, 3, 5)

    assert [(fold := begun.last(BASE, batch)) and fold.through for batch in (1, 2, 3, 4, 5)] == [
        None,
        2,
        3,
        3,
        5,
    ]
    assert begun.unfinished(BASE, replace(SNAPSHOT, folded={BASE: 5})) is None
