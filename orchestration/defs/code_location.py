"""Builds Dagster's definitions of a pipeline: assets, their checks, jobs, schedules, a sensor, Spark's session."""

from datetime import datetime

from dagster import AssetSelection, Definitions, define_asset_job, in_process_executor

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.asset_checks import pipeline_checks
from lakejoin.orchestration.defs.asset_keys import lake_assets
from lakejoin.orchestration.defs.assets import pipeline_assets
from lakejoin.orchestration.defs.dangling_checks import dangling_checks
from lakejoin.orchestration.defs.maintenance_job import maintenance_job, nightly_schedule
from lakejoin.orchestration.defs.partitions import daily_partitions
from lakejoin.orchestration.defs.quarantine_checks import intake_checks
from lakejoin.orchestration.defs.schedules_and_sensors import hourly_schedule, new_files_sensor
from lakejoin.orchestration.defs.spark_resource import spark_resource


def pipeline_definitions(pipeline: Pipeline, now: datetime) -> Definitions:
    """Everything that Dagster knows of a pipeline; no JVM is started and the lake is not touched.

    All steps of a run share its process, hence its Spark session: by default each has a process of its own.
    """
    partitions = daily_partitions(pipeline, now)
    job = f"{pipeline.name}_job"
    upkeep = maintenance_job(pipeline)
    everything = AssetSelection.assets(*[asset.key for asset in lake_assets(pipeline)])
    return Definitions(
        assets=[pipeline_assets(pipeline, partitions)],
        asset_checks=[pipeline_checks(pipeline), intake_checks(pipeline), *dangling_checks(pipeline)],
        jobs=[
            define_asset_job(
                job, everything, description=f"Works off what is pending in `{pipeline.name}` and checks it."
            ),
            upkeep,
        ],
        schedules=[hourly_schedule(pipeline, job, partitions), nightly_schedule(pipeline, upkeep)],
        sensors=[new_files_sensor(pipeline, job, partitions)],
        resources={"spark": spark_resource(pipeline)},
        executor=in_process_executor,
    )
