"""Maintenance as Dagster runs it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance
from pyspark.sql import SparkSession

from faults.shop import content, make_shop, run
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_job_reports_what_each_table_took_before_and_after(tmp_path: Path, spark: SparkSession) -> None:
    """The figures are on the run's output and, for the interface's plots, on the assets; no row has changed."""
    pipeline = make_shop(tmp_path, ["2024-01-01", "2024-01-02"])
    run(pipeline, spark)
    before = content(pipeline, spark)
    job = pipeline_definitions(EmbeddedPipeline(pipeline), datetime.now(UTC)).resolve_job_def(
        "shop_maintenance"
    )
    options = {"ops": {"shop_maintain": {"config": {"everything": True}}}}

    with DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, run_config=options)

    assert result.success
    (output,) = [event.step_output_data for event in result.all_events if event.is_successful_output]
    steps = {
        (record.data["what"], record.data["table"]): record.data
        for record in output.metadata["steps"].records
    }
    changes = steps["compact", "tables/orders/changes"]
    assert (changes["files_before"], changes["files_after"]) == (2, 1)
    assert output.metadata["stored_bytes_after"].value > 0
    observed = [
        event.asset_observation_data.asset_observation for event in result.get_asset_observation_events()
    ]
    assert AssetKey(["shop", "inner"]) in {observation.asset_key for observation in observed}
    assert content(pipeline, spark)["joins/inner/joined"] == before["joins/inner/joined"]
