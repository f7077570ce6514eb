"""Whoever looks at Spark's web page or history sees which batch and which stage a job is of."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.contest.jvm import jobs, traffic
from faults.shop import ORDERS, make_shop, run
from lakejoin.orchestration.lake_state.inventory import stages_of
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.spark.session import jobs_called

DAYS = list(ORDERS)

pytestmark = pytest.mark.spark


def test_every_job_of_a_batch_is_called_by_pipeline_batch_and_stage(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Also what writes beside a stage, and what Delta does for itself, which it says before the name and behind it."""
    pipeline = make_shop(tmp_path, DAYS[:2])
    first = jobs(spark)

    run(pipeline, spark)

    stages = [
        *stages_of(pipeline),
        *[f"read/{name}" for name in pipeline.tables],
        *[f"join/{name}" for name in pipeline.joins],
    ]
    names = set(traffic(spark, first))
    planned = {f"shop: questions to the input of {name}" for name in pipeline.tables}
    assert planned <= names
    found = [re.search(r"shop, batch ([12]): ([^:]+)", name) for name in names - planned]
    assert all(found), names
    assert {name[2] for name in found if name} <= set(stages)
    assert {
        "shop, batch 1: changes/orders",
        "shop, batch 2: joined/left",
        "shop, batch 2: join/left",
    } <= names


@pytest.mark.slow
def test_every_job_of_maintenance_is_called_by_pipeline_work_and_table(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Delta puts what it does for itself before the name."""
    pipeline = make_shop(tmp_path, DAYS[:1])
    run(pipeline, spark)
    first = jobs(spark)

    done = list(maintain(pipeline, lambda: spark, everything=True))

    names = set(traffic(spark, first))
    assert "shop: fold tables/orders/rows" in names
    assert all("shop: " in name for name in names)
    assert not any(step.failed for step in done)


def test_name_holds_for_a_block_and_gives_way_to_one_within(spark: SparkSession) -> None:
    """What it was before is restored, also where the block fails."""

    def newest() -> str:
        first = jobs(spark)
        spark.range(1).count()
        (name,) = traffic(spark, first)
        return name

    before = newest()
    with jobs_called(spark, "outer"):
        with jobs_called(spark, "inner"):
            assert newest() == "inner"
        assert newest() == "outer"
    with pytest.raises(ZeroDivisionError), jobs_called(spark, "failing"):
        _ = 1 / 0
    assert newest() == before
