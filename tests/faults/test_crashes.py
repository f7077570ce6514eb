"""A batch that is cut off at any of its commits ends, after a rerun, as if nothing had happened."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, When, commits
from faults.shop import Content, content, copy_of, make_shop, run
from orchestration.config import Pipeline
from storage.lake import Lake
from storage.plan import Journal

pytestmark = pytest.mark.spark

COMMITS = 13
"""Of the batch: plan, changes and quarantine of two tables, logs of two joins, a changelog, two joined, the end."""


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with one finished batch and input for the next."""
    pipeline = make_shop(tmp_path_factory.mktemp("shop") / "first", ["2024-01-01"])
    run(pipeline, spark)
    return make_shop(pipeline.path.parent, ["2024-01-01", "2024-01-02"])


@pytest.fixture(scope="module")
def undisturbed(
    first_day: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Content:
    """Return what the lake holds after the second batch, and see that it makes all the commits it should."""
    pipeline = copy_of(first_day, tmp_path_factory.mktemp("undisturbed") / "shop")
    with commits() as counted:
        run(pipeline, spark)
    assert len(counted.made) == COMMITS, counted.made
    return content(pipeline, spark)


POINTS: list[tuple[When, int]] = [("before", 0), *[("after", number) for number in range(COMMITS)]]
OFTEN = {("after", 5), ("after", 10)}
"""Points that every run of the tests tries: amid the logs, and between two joined tables."""


@pytest.mark.parametrize(
    ("when", "number"), [pytest.param(*p, marks=() if p in OFTEN else pytest.mark.slow) for p in POINTS]
)
def test_batch_cut_off_at_a_commit_ends_as_if_undisturbed(
    first_day: Pipeline, undisturbed: Content, when: When, number: int, tmp_path: Path, spark: SparkSession
) -> None:
    """Every table has the same rows, and the batch the same counts, after the run that follows."""
    pipeline = copy_of(first_day, tmp_path / "shop")
    with commits(number, when) as counted, pytest.raises(Crash):
        run(pipeline, spark)
    assert len(counted.made) == number + 1
    finished = when == "after" and number == COMMITS - 1
    assert run(pipeline, spark) == (0 if finished else 1)
    found = content(pipeline, spark)
    assert found == undisturbed
    journal = Journal(Lake(pipeline.lake))
    assert journal.unfinished is None
    assert run(pipeline, spark) == 0
