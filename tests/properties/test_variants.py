"""Marks, combined keys and stars keep what hashes, left keys and chains keep: the batch join after every batch."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import assume, given, settings
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from conformance import pipeline as conformance
from conformance.case import Batches, load_cases, skip_reason
from conformance.run import differences
from properties.corners import AT_ONCE, BACKWARDS, IN_ORDER
from properties.relations import STARS, VARIANTS
from properties.scenarios import UNSHRUNK, Scenario, scenarios
from properties.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("prunes")]

_CASES = Path(__file__).parents[1] / "conformance" / "cases"
_SIDE_BY_SIDE = 40


@pytest.mark.slow
def test_marks_and_pairs_are_right_where_days_arrive_backwards(spark: SparkSession, tmp_path: Path) -> None:
    """The hand-made corners, the last day first: positions fall from batch to batch, marks rise all the same."""
    trial = Trial(BACKWARDS, tmp_path, spark, joins={name: VARIANTS[name] for name in ("matched", "paired")})

    trial.run()

    log = spark.read.format("delta").load(trial.lake.path("joins/matched/response_log"))
    told = {row["resolution"] for row in log.select("resolution").distinct().collect()}
    assert {"applied", "stale"} <= told  # or nothing would be shown
    assert log.where(F.col("mark.position").isNotNull()).count() == log.count()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [IN_ORDER, BACKWARDS, AT_ONCE], ids=["in order", "backwards", "at once"])
def test_marks_and_pairs_are_right_in_all_corners(
    scenario: Scenario, spark: SparkSession, tmp_path: Path
) -> None:
    """The same corners day by day and several days at once, and joins over joins."""
    Trial(scenario, tmp_path, spark, joins=VARIANTS).run()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [IN_ORDER, BACKWARDS, AT_ONCE], ids=["in order", "backwards", "at once"])
def test_stars_are_right_in_all_corners(scenario: Scenario, spark: SparkSession, tmp_path: Path) -> None:
    """The same table on several sides, the left table as its own right one, and a join over a star."""
    Trial(scenario, tmp_path, spark, joins=STARS).run()


@pytest.mark.slow
@pytest.mark.parametrize("joins", [VARIANTS, STARS], ids=["variants", "stars"])
@settings(UNSHRUNK, max_examples=2)
@given(scenario=scenarios(_SIDE_BY_SIDE))
def test_variants_and_stars_are_right_after_every_batch(
    joins: Mapping[str, dict[str, Any]], scenario: Scenario, spark: SparkSession
) -> None:
    """Random changes, cuts and orders of days, with a fold after every batch."""
    assume(sum(map(len, scenario.sequences)) > 6 * _SIDE_BY_SIDE)
    with (
        TemporaryDirectory(prefix="trial-") as path,
        mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", 1),
    ):
        Trial(scenario, Path(path), spark, joins=joins).run()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variant", "topologies"),
    [({"resolution": "highwater"}, "fk-*"), ({"result_key": "combined"}, "fk-inner*")],
    ids=["highwater", "combined"],
)
def test_cases_of_kafka_end_with_the_same_tables(
    variant: dict[str, Any], topologies: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Whatever tells late answers, and whatever a row is identified by, the rows are the same."""
    batches, join = Batches("random", 1), conformance._join
    cases = [
        case
        for case in load_cases(_CASES)
        if Path(case.topology).match(topologies)
        and skip_reason(case, batches) is None
        and not case.replays
        and not case.is_timed  # whose records need their times
    ]
    assert len(cases) > 20

    with mock.patch.object(conformance, "_join", lambda *sides: join(*sides) | variant):
        answers = conformance.run_cases(cases, batches, tmp_path, spark, lambda done, of: None)

    assert differences(cases, answers, batches) == {}
