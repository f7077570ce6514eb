"""Two runs of one batch in one process, the lock out of the way: every commit of the one that is late is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Point, When, all_commits, commits
from faults.lakes import forget_logs
from faults.market import DAYS, make_market
from faults.racing import lost, unlocked
from faults.shop import Content, content, copy_of, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, PUBLISHED, Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 3
"""Records of a batch of the third day: it has nine or more, so others are three batches ahead in the end."""
OFTEN: tuple[Point, ...] = ("joins/left/joined", PUBLISHED)
"""Points that every run of the tests tries."""
Others = Callable[[Pipeline, SparkSession], object]
"""What other runs do meanwhile."""


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with one finished batch and input for the next."""
    pipeline = make_market(tmp_path_factory.mktemp("first") / "market", DAYS[:1])
    run(pipeline, spark)
    return make_market(pipeline.path.parent, DAYS[:2])


@pytest.fixture(scope="module")
def points(first_day: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> list[str]:
    """Return the tables of the second batch's commits, in their order."""
    pipeline = copy_of(first_day, tmp_path_factory.mktemp("points") / "market")
    with all_commits(pipeline.lake) as counted:
        run(pipeline, spark)
    return counted.made


@pytest.fixture(scope="module")
def second_day(first_day: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what the lake holds after the second batch."""
    pipeline = copy_of(first_day, tmp_path_factory.mktemp("second") / "market")
    run(pipeline, spark)
    return content(pipeline, spark)


@pytest.fixture(scope="module")
def third_day(first_day: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what the lake holds after the third day, which comes in small batches."""
    pipeline = copy_of(first_day, tmp_path_factory.mktemp("third") / "market")
    run(pipeline, spark)
    assert run(make_market(pipeline.path.parent), spark, batch_rows=ROWS) >= 3
    return content(pipeline, spark)


def others_go_on(pipeline: Pipeline, spark: SparkSession) -> None:
    """Another run finishes the batch that was begun, and works off the next day."""
    run(pipeline, spark)
    run(make_market(pipeline.path.parent), spark, batch_rows=ROWS)


def overtaken(
    pipeline: Pipeline, spark: SparkSession, point: Point, when: When, others: Others = others_go_on
) -> None:
    """Work a batch off; at a point of it others come in, finish it and perhaps go on, before this run does."""
    with unlocked(), commits(point, when, lambda: others(pipeline, spark)) as counted:
        run(pipeline, spark)
    assert counted.reached


@pytest.mark.failure(12)
@pytest.mark.parametrize("point", OFTEN)
def test_run_whose_batch_another_one_finishes_changes_nothing(
    point: Point, first_day: Pipeline, second_day: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Its data files are written; its commits are refused, or skipped, and it ends as if it had been alone."""
    pipeline = copy_of(first_day, tmp_path / "market")

    overtaken(pipeline, spark, point, "during", run)

    assert content(pipeline, spark) == second_day
    assert run(pipeline, spark) == 0


@pytest.mark.slow
@pytest.mark.failure(12)
@pytest.mark.failure(14)
@pytest.mark.parametrize("when", ["before", "during"])
def test_run_that_others_overtook_at_any_point_changes_nothing(
    when: When,
    points: list[str],
    first_day: Pipeline,
    third_day: Content,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """Stage by stage, from the first commit after the plan to the publication."""
    wrong = []
    for number in range(1, len(points)):
        forget_logs(spark)
        pipeline = copy_of(first_day, tmp_path / f"market-{number}")
        overtaken(pipeline, spark, number, when)
        if content(pipeline, spark) != third_day:
            wrong.append((number, points[number]))
    assert wrong == []


@pytest.mark.failure(13)
def test_of_two_runs_that_plan_the_same_batch_one_is_told(
    first_day: Pipeline, second_day: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Its plan is not kept, nothing of it is executed, and the message says what to do."""
    pipeline = copy_of(first_day, tmp_path / "market")

    with pytest.raises(LakeBusy, match=r"_plan: another run planned batch 2 meanwhile.* then run again"):
        overtaken(pipeline, spark, PLAN, "before", run)

    assert content(pipeline, spark) == second_day
    assert run(pipeline, spark) == 0


def unanswered(pipeline: Pipeline, spark: SparkSession, point: Point, table: str) -> None:
    """Work a batch off; one of its commits is made, and the answer to it is an error."""

    def lose() -> None:
        raise lost(table)

    with commits(point, "after", lose) as counted:
        assert run(pipeline, spark) == 1
    assert counted.reached


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(PLAN, marks=pytest.mark.failure(2)),
        pytest.param("tables/orders/changes", marks=pytest.mark.failure(6)),
        pytest.param("joins/left/joined", marks=pytest.mark.failure(6)),
        pytest.param(PUBLISHED, marks=pytest.mark.failure(6)),
    ],
)
def test_commit_whose_answer_was_lost_is_made_once_and_the_run_goes_on(
    table: str, first_day: Pipeline, second_day: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """The table's log has the transaction identifier, so the commit is not made again."""
    pipeline = copy_of(first_day, tmp_path / "market")

    unanswered(pipeline, spark, table, table)

    assert content(pipeline, spark) == second_day
    assert len(Journal(Lake(pipeline.lake)).plans) == 2


@pytest.mark.slow
@pytest.mark.failure(2)
@pytest.mark.failure(6)
def test_no_commit_whose_answer_was_lost_is_made_twice(
    points: list[str], first_day: Pipeline, second_day: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Each commit of a batch in turn."""
    wrong = []
    for number, table in enumerate(points):
        forget_logs(spark)
        pipeline = copy_of(first_day, tmp_path / f"market-{number}")
        unanswered(pipeline, spark, number, table)
        if content(pipeline, spark) != second_day:
            wrong.append((number, table))
    assert wrong == []
