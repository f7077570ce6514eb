"""Starts runs without a person, once switched on: by an hourly schedule, and by a sensor for new files.

Both ask for one run over the range of dates that has something to do, and for none when nothing is new. The sensor
starts one run for each file; the schedule tries again what failed.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime

import xxhash
from dagster import (
    DailyPartitionsDefinition,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    RunConfig,
    RunRequest,
    ScheduleDefinition,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    schedule,
    sensor,
)

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.assets import BatchOptions, op_name
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.partitions import within_reach
from lakejoin.orchestration.defs.source_assets import observations
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.orchestration.planning.backlog import Backlog, WaitingFile, unasked_backlog, unasked_settle

RANGE_START, RANGE_END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
"""Tags by which Dagster makes one run of a range of partitions."""
INTERVAL_SECONDS = 30
HOURLY = "0 * * * *"


def hourly_schedule(
    pipeline: Pipeline, job: str, partitions: DailyPartitionsDefinition | None
) -> ScheduleDefinition:
    """A schedule, stopped until somebody starts it, that works off whatever waits."""

    @schedule(
        name=f"{pipeline.name}_hourly",
        job_name=job,
        cron_schedule=HOURLY,
        execution_timezone="UTC",
        default_status=DefaultScheduleStatus.STOPPED,
        description="Works off what is pending, if anything is.",
    )
    def hourly() -> RunRequest | SkipReason:
        waiting = _waiting(pipeline)
        if waiting.is_empty:
            return SkipReason("Nothing waits: every file was read, and every batch is finished.")
        return _request(pipeline, partitions, waiting.dates)

    return hourly


def new_files_sensor(
    embedded: EmbeddedPipeline, job: str, partitions: DailyPartitionsDefinition | None
) -> SensorDefinition:
    """A sensor, stopped until somebody starts it, that starts one run for files that are new or have grown.

    Its cursor holds the files that wait and have had their run: one that failed is not started over and over. With its
    listing it observes the sources.
    """
    pipeline = embedded.pipeline

    @sensor(
        name=f"{pipeline.name}_new_files",
        job_name=job,
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=DefaultSensorStatus.STOPPED,
        description="Starts a run when a source has files that no batch has read.",
    )
    def new_files(context: SensorEvaluationContext) -> SensorResult:
        listed = _waiting(pipeline)
        observed = [*observations(embedded, listed, context.instance, datetime.now(UTC))]
        waiting = {_digest(file.identity): file for file in listed.files}
        seen = set(json.loads(context.cursor or "[]"))
        new = {key: file for key, file in waiting.items() if key not in seen}
        cursor = json.dumps(sorted(waiting))
        if not new:
            reason = (
                f"The run of {len(waiting)} waiting files was started already."
                if waiting
                else "No new files."
            )
            return SensorResult(skip_reason=reason, cursor=cursor, asset_events=observed)
        request = _request(pipeline, partitions, _dates(new.values()), run_key=_digest(*sorted(new)))
        return SensorResult(run_requests=[request], cursor=cursor, asset_events=observed)

    return new_files


def _waiting(pipeline: Pipeline) -> Backlog:
    with told_errors():
        return unasked_backlog(pipeline, datetime.now(UTC))


def _request(
    pipeline: Pipeline,
    partitions: DailyPartitionsDefinition | None,
    dates: Sequence[date],
    run_key: str | None = None,
) -> RunRequest:
    """One run for everything between the first and the last of the dates."""
    tags = {}
    if partitions is not None:
        # undated files are read with any range, so the newest one does
        days = [day.isoformat() for day in within_reach(dates, datetime.now(UTC))]
        days = days or [partitions.get_last_partition_key() or ""]
        tags = {RANGE_START: min(days), RANGE_END: max(days)}
    options = BatchOptions(settle_seconds=unasked_settle(pipeline).total_seconds())
    return RunRequest(run_key=run_key, tags=tags, run_config=RunConfig(ops={op_name(pipeline): options}))


def _dates(files: Iterable[WaitingFile]) -> list[date]:
    return [waiting.file.date for waiting in files if waiting.file.date is not None]


def _digest(*parts: str) -> str:
    return xxhash.xxh3_64_hexdigest("\n".join(parts).encode())
