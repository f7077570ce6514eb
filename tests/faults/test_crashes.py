"""A batch that is cut off before, in or after any of its commits ends, after a rerun, as if nothing had happened.

The commits are found by counting those of a run that nothing disturbs: all that its logs have then. Singly each is
tried, and in pairs, where the rerun is cut off as well, a sample of `LAKEJOIN_FAULT_PAIRS`.
"""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from shutil import rmtree
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from faults.crashing import WHEN, Crash, Point, When, all_commits, commits
from faults.lakes import forget_logs
from faults.market import DAYS, JOINS, make_market
from faults.shop import CUSTOMERS, Content, content, copy_of, make_shop, run, write_lines
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.runs.retry_quarantine import known, retry
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, PUBLISHED, Lake
from lakejoin.storage.state.joined_table import MERGE

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAIRS = int(os.environ.get("LAKEJOIN_FAULT_PAIRS", "20"))
SEED = 20130101


Work = Callable[[Pipeline, SparkSession], object]
"""Makes the batch, or what is left of it: what a user does at first, and again after a crash."""


@dataclass(frozen=True)
class Case:
    """A lake with one batch to work off, and what becomes of it when nothing disturbs."""

    pipeline: Pipeline
    work: Work
    points: list[str]
    """The tables of the batch's commits, in their order."""
    undisturbed: Content

    def crash(self, folder: Path, spark: SparkSession, *points: tuple[Point, When]) -> Content:
        """Work the batch off, cut off at one point after the other, then to its end; return what the lake holds.

        A point that a rerun does not reach, for it has fewer commits left, is passed by.
        """
        forget_logs(spark)
        pipeline = copy_of(self.pipeline, folder)
        before = len(Journal(Lake(pipeline.lake)).published)
        for number, (point, when) in enumerate(points):
            with commits(point, when) as counted:
                try:
                    self.work(pipeline, spark)
                except Crash:
                    continue
            assert number or counted.reached, f"{point} was not reached"
        if len(Journal(Lake(pipeline.lake)).published) == before:
            self.work(pipeline, spark)
        found = content(pipeline, spark)
        journal = Journal(Lake(pipeline.lake))
        assert journal.unfinished is None
        assert len(journal.published) == before + 1
        assert run(pipeline, spark) == 0
        rmtree(folder)
        return found


def _case(pipeline: Pipeline, folder: Path, spark: SparkSession, work: Work = run) -> Case:
    copy = copy_of(pipeline, folder)
    before = len(Journal(Lake(copy.lake)).published)
    with all_commits(copy.lake) as counted:
        work(copy, spark)
    assert len(Journal(Lake(copy.lake)).published) == before + 1
    return Case(pipeline, work, counted.made, content(copy, spark))


@pytest.fixture(scope="module")
def first_batch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Case:
    """Return a lake to be: every commit makes a table."""
    pipeline = make_market(tmp_path_factory.mktemp("first") / "market", DAYS[:1])
    return _case(pipeline, tmp_path_factory.mktemp("undisturbed") / "first", spark)


@pytest.fixture(scope="module")
def second_batch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Case:
    """Return a lake with one batch, and input of every kind for the next."""
    pipeline = make_market(tmp_path_factory.mktemp("second") / "market", DAYS[:1])
    run(pipeline, spark)
    make_market(pipeline.path.parent, DAYS[:2])
    return _case(pipeline, tmp_path_factory.mktemp("undisturbed") / "second", spark)


@pytest.fixture(scope="module")
def large_batch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Case:
    """Return a lake to be whose first rows are in files before they are judged, as those of a large load are."""
    pipeline = make_shop(tmp_path_factory.mktemp("large") / "shop", DAYS[:1])
    return _case(pipeline, tmp_path_factory.mktemp("undisturbed") / "large", spark, _run_as_large)


def _run_as_large(pipeline: Pipeline, spark: SparkSession) -> None:
    with mock.patch("lakejoin.storage.spark.kept_frames.SMALL", -1):
        run(pipeline, spark)


@pytest.fixture(scope="module")
def retried_batch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Case:
    """Return a lake with records in quarantine, of which some can be accepted now: a key's last one, and older ones."""
    pipeline = make_shop(tmp_path_factory.mktemp("retried") / "shop", DAYS[:2])
    text, path = pipeline.path.read_text(), 'path: "orders/{date}.jsonl"'
    assert path in text
    # what is deleted has longer lines
    pipeline.path.write_text(text.replace(path, f"{path}, limits: {{line: 83 bytes}}"))
    run(load(pipeline.path), spark)
    pipeline.path.write_text(text)
    case = _case(load(pipeline.path), tmp_path_factory.mktemp("undisturbed") / "retried", spark, _retry)
    assert {"tables/orders/changes", "joins/left/joined"} <= {*case.points}
    return case


def _retry(pipeline: Pipeline, spark: SparkSession) -> None:
    try:
        list(retry(pipeline, lambda: spark, known(pipeline, ())))
    except WrongUsage:  # it is under way
        run(pipeline, spark)


@pytest.fixture(scope="module")
def replaced_batch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Case:
    """Return a lake with two days, of which the second was exported again."""
    pipeline = make_shop(tmp_path_factory.mktemp("replaced") / "shop", DAYS[:2])
    run(pipeline, spark)
    orders = [("u", 1, "eve", 12), ("c", 6, "bob", 60), ("d", 3, None, None), ("u", "six", "bob", 1)]
    for name, columns, rows in (
        ("orders", ("op", "id", "customer", "amount"), orders),
        ("customers", ("op", "customer", "city"), [*CUSTOMERS[DAYS[1]][1:], ("u", "ada", "Metz")]),
    ):
        records = [{**dict(zip(columns, row, strict=True)), "at": f"{DAYS[1]}T12:00:00Z"} for row in rows]
        write_lines(pipeline.path.parent / name / f"{DAYS[1]}.jsonl", records)
    return _case(pipeline, tmp_path_factory.mktemp("undisturbed") / "replaced", spark, _replace)


def _replace(pipeline: Pipeline, spark: SparkSession) -> None:
    run(pipeline, spark, replace=date.fromisoformat(DAYS[1]))


@pytest.fixture(scope="module")
def rebuilt_batch(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Case:
    """Return a lake with two days, of which a join is declared otherwise now."""
    pipeline = make_shop(tmp_path_factory.mktemp("rebuilt") / "shop", DAYS[:2])
    run(pipeline, spark)
    former = "left: {left: orders, right: customers, foreign_key: [customer], how: left}"
    text = pipeline.path.read_text()
    assert former in text
    pipeline.path.write_text(text.replace(former, former.replace("how: left", "how: inner, changelog: true")))
    return _case(load(pipeline.path), tmp_path_factory.mktemp("undisturbed") / "rebuilt", spark, _rebuild)


def _rebuild(pipeline: Pipeline, spark: SparkSession) -> None:
    try:
        run(pipeline, spark)
    except ConfigurationChanged:
        run(pipeline, spark, rebuild=["left"])


def test_second_batch_makes_every_kind_of_commit(second_batch: Case) -> None:
    """Plan, a log of changes or records and quarantine of each source, those of joins, joined tables, the end."""
    logs = {
        f"joins/{join}/{log}"
        for join in ("inner", "left", "star/customer", "star/next")
        for log in ("subscription_log", "response_log")
    } | {f"joins/{group}/subscription_log" for group in ("totals", "cities")}
    joined = {f"joins/{join}/joined" for join in JOINS}
    changes = {f"tables/{table}/changes" for table in ("orders", "customers", "weather")}
    assert {*second_batch.points} == {
        PLAN, PUBLISHED, "quarantine", "streams/departures/records", *logs, *joined, *changes,
        *[f"joins/{join}/changelog" for join in ("inner", "star", "totals")],
        *[f"joins/{join}/history" for join in ("left", "star", "sums")],
    }  # fmt: skip
    assert (second_batch.points[0], second_batch.points[-1]) == (PLAN, PUBLISHED)
    assert second_batch.points.count("quarantine") == 5  # of three tables and a stream, and what came late


@pytest.mark.parametrize(
    ("point", "when"),
    [
        pytest.param(PLAN, "before", marks=pytest.mark.failure(1)),
        pytest.param(PLAN, "after", marks=pytest.mark.failure(3)),
        pytest.param("joins/left/response_log", "during", marks=pytest.mark.failure(4)),
        pytest.param("joins/left/joined", "after", marks=[pytest.mark.failure(5), pytest.mark.failure(7)]),
        pytest.param(PUBLISHED, "after", marks=pytest.mark.failure(8)),
    ],
)
def test_batch_cut_off_at_a_commit_ends_as_if_undisturbed(
    second_batch: Case, point: str, when: When, tmp_path: Path, spark: SparkSession
) -> None:
    """Every table has the same rows, and the batch the same counts, after the run that follows."""
    assert second_batch.crash(tmp_path / "market", spark, (point, when)) == second_batch.undisturbed


@pytest.mark.failure(1)
@pytest.mark.failure(3)
@pytest.mark.failure(4)
@pytest.mark.failure(5)
@pytest.mark.failure(7)
@pytest.mark.parametrize("batch", ["first_batch", "large_batch", "second_batch"])
def test_batch_cut_off_at_each_point_ends_as_if_undisturbed(
    batch: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """All of them, each before, during and after the commit; one by one on a lake of its own."""
    _try_each_point(request.getfixturevalue(batch), tmp_path, spark, capsys)


@pytest.mark.failure(1)
@pytest.mark.failure(3)
@pytest.mark.failure(4)
@pytest.mark.failure(5)
@pytest.mark.failure(7)
@pytest.mark.parametrize("batch", ["retried_batch", "replaced_batch", "rebuilt_batch"])
def test_batch_that_was_asked_for_and_cut_off_at_each_point_ends_as_if_undisturbed(
    batch: str, request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Of quarantine, of a file that was exported again, of a join that begins anew; the user does what messages say."""
    _try_each_point(request.getfixturevalue(batch), tmp_path, spark, capsys)


def _try_each_point(
    case: Case, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    tried, wrong = 0, []
    for number, table in enumerate(case.points):
        for when in WHEN:
            tried += 1
            if case.crash(tmp_path / "market", spark, (number, when)) != case.undisturbed:
                wrong.append((number, table, when))
    _say(capsys, f"points found {len(case.points)}, singly {tried} of {len(case.points) * len(WHEN)}")
    assert wrong == []


@pytest.mark.failure(5)
def test_batch_that_merges_ends_as_if_undisturbed_wherever_its_merge_was_cut_off(
    second_batch: Case, tmp_path: Path, spark: SparkSession
) -> None:
    """With the setting that changes joined tables through Delta's public API; its commits are counted as well."""
    spark.conf.set(MERGE, "true")
    try:
        with all_commits((merging := copy_of(second_batch.pipeline, tmp_path / "merging")).lake):
            run(merging, spark)
        for when in WHEN:
            found = second_batch.crash(tmp_path / "market", spark, ("joins/left/joined", when))
            assert found == second_batch.undisturbed, when
    finally:
        spark.conf.unset(MERGE)


@pytest.mark.failure(7)
def test_batch_cut_off_twice_ends_as_if_undisturbed(
    second_batch: Case, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rerun is cut off at a point of what is left, then run again; a sample of all pairs."""
    pairs = list(_pairs(len(second_batch.points)))
    sample = random.Random(SEED).sample(pairs, min(PAIRS, len(pairs)))
    wrong = [
        pair
        for pair in sample
        if second_batch.crash(tmp_path / "market", spark, *pair) != second_batch.undisturbed
    ]
    _say(
        capsys,
        f"points found {len(second_batch.points)}, pairs {len(sample)} of {len(pairs):,} (seed {SEED})",
    )
    assert wrong == []


def _pairs(points: int) -> list[tuple[tuple[int, When], tuple[int, When]]]:
    """Every point of a run with every point of the run that follows: it makes the commits that are left."""
    singly = [(number, when) for number in range(points) for when in WHEN]
    return [
        ((number, when), second)
        for number, when in singly
        for second in singly
        if second[0] < points - number - (when == "after")
    ]


def _say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        print(f"\n{text}")  # noqa: T201 - how much was tried is part of the result
