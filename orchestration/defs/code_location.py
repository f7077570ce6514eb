"""Builds Dagster's definitions of a pipeline: assets, their checks, jobs, schedules, a sensor, Spark's session."""

from collections.abc import Sequence
from datetime import datetime

from dagster import (
    AssetSelection,
    DefaultScheduleStatus,
    Definitions,
    ScheduleDefinition,
    define_asset_job,
)

from lakejoin.orchestration.defs.asset_checks import rule_checks
from lakejoin.orchestration.defs.asset_keys import lake_assets
from lakejoin.orchestration.defs.assets import pipeline_assets
from lakejoin.orchestration.defs.dangling_checks import dangling_checks
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.explain_job import explain_job
from lakejoin.orchestration.defs.lag_checks import lag_checks
from lakejoin.orchestration.defs.maintenance_job import maintenance_job, nightly_schedule
from lakejoin.orchestration.defs.op_checks import OpChecks
from lakejoin.orchestration.defs.partitions import daily_partitions
from lakejoin.orchestration.defs.published_sensor import published_sensor
from lakejoin.orchestration.defs.quarantine_checks import intake_checks
from lakejoin.orchestration.defs.schedules_and_sensors import hourly_schedule, new_files_sensor
from lakejoin.orchestration.defs.source_assets import source_assets
from lakejoin.orchestration.defs.spark_resource import spark_resources
from lakejoin.orchestration.defs.verified_checks import verified_checks

AFTER_MAINTENANCE = "30 4 * * *"


def pipeline_definitions(embedded: EmbeddedPipeline, now: datetime) -> Definitions:
    """Everything that Dagster knows of a pipeline; no JVM is started and the lake is not touched.

    Names begin with that of the pipeline, and nothing is said of the executor: so they can be merged with those of
    others. The batches of a run and their checks are one step.
    """
    pipeline = embedded.pipeline
    partitions = daily_partitions(pipeline, now) if embedded.partitioned else None
    job = f"{pipeline.name}_job"
    upkeep = maintenance_job(embedded)
    everything = AssetSelection.assets(*[asset.key for asset in lake_assets(embedded)])
    kinds = (rule_checks, intake_checks, dangling_checks, lag_checks, verified_checks)
    checks = [kind(embedded) for kind in kinds]
    return Definitions(
        assets=[pipeline_assets(embedded, partitions, checks), source_assets(embedded)],
        jobs=[
            define_asset_job(
                job, everything, description=f"Works off what is pending in `{pipeline.name}` and checks it."
            ),
            upkeep,
            explain_job(pipeline),
        ],
        schedules=[
            hourly_schedule(pipeline, job, partitions),
            nightly_schedule(embedded, upkeep),
            _nightly_check(pipeline.name, checks),
        ],
        sensors=[
            new_files_sensor(embedded, job, partitions),
            published_sensor(embedded, checks, partitioned=partitions is not None),
        ],
        resources=spark_resources(embedded),
    )


def _nightly_check(name: str, checks: Sequence[OpChecks]) -> ScheduleDefinition:
    """A schedule, stopped until somebody starts it, with its job of all checks alone: so they look at all rows."""
    return ScheduleDefinition(
        name=f"{name}_nightly_check",
        job=define_asset_job(
            f"{name}_check",
            AssetSelection.checks(*[spec.key for kind in checks for spec in kind.specs]),
            description=f"Checks all rows of `{name}`, and writes Data Docs.",
        ),
        cron_schedule=AFTER_MAINTENANCE,
        execution_timezone="UTC",
        default_status=DefaultScheduleStatus.STOPPED,
        description="Checks all rows of the lake, and writes Data Docs.",
    )
