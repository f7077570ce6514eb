"""However change data is cut, and in whatever order its days arrive, joined tables are the batch join."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import assume, given, settings
from pyspark.sql import SparkSession

from properties.corners import AT_ONCE, BACKWARDS, IN_ORDER
from properties.scenarios import UNSHRUNK, Scenario, scenarios
from properties.trial import Trial

_SIDE_BY_SIDE = 40
"""A batch costs the same for one sequence as for many."""

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("prunes")]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder for one lake, gone after the test."""
    with TemporaryDirectory(prefix="trial-") as path:
        yield Path(path)


@pytest.mark.parametrize("scenario", [IN_ORDER, BACKWARDS, AT_ONCE], ids=["in order", "backwards", "at once"])
def test_joined_tables_equal_the_join_of_their_inputs_in_known_corners(
    scenario: Scenario, folder: Path, spark: SparkSession
) -> None:
    """Each hand-made corner gives the relational join after every batch."""
    Trial(scenario, folder, spark).run()


@settings(UNSHRUNK, max_examples=2)
@given(scenario=scenarios(_SIDE_BY_SIDE))
def test_joined_tables_equal_the_join_of_their_inputs_after_every_batch(
    scenario: Scenario, spark: SparkSession
) -> None:
    """Random changes, cuts and orders of days: each batch ends with the join and counts every record."""
    assume(_is_large(scenario))
    with TemporaryDirectory(prefix="trial-") as path:
        Trial(scenario, Path(path), spark).run()


@pytest.mark.parametrize("purged", [False, True], ids=["tombstones kept", "tombstones purged"])
@settings(UNSHRUNK, max_examples=1)
@given(scenario=scenarios(_SIDE_BY_SIDE))
def test_fold_after_every_batch_changes_no_later_batch(
    scenario: Scenario, purged: bool, spark: SparkSession
) -> None:
    """Folding keeps every row; where it forgets deleted keys, what comes for them is held against `changes`."""
    assume(_is_large(scenario))
    with (
        TemporaryDirectory(prefix="trial-") as path,
        mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", 1),
    ):
        Trial(scenario, Path(path), spark, purged=purged).run()


def _is_large(scenario: Scenario) -> bool:
    # the smallest example is always tried first, and costs as much as a telling one
    return sum(map(len, scenario.sequences)) > 6 * _SIDE_BY_SIDE
