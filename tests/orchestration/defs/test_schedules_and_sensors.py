"""The schedule and the sensor: what they ask runs for, and when they leave it."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import (
    DagsterInstance,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    Definitions,
    RunRequest,
    SensorResult,
    SkipReason,
    build_schedule_context,
    build_sensor_context,
)

from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from recordings.tiny import DAYS, add_day, write_pipeline

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """Return the configuration of the tiny recording in a folder of its own, without its last day."""
    return write_pipeline(tmp_path, DAYS[:2])


def definitions(path: Path) -> Definitions:
    """Return what Dagster gets for a configuration file."""
    return pipeline_definitions(EmbeddedPipeline(load(path)), NOW)


def test_schedule_and_sensor_are_stopped_until_somebody_starts_them(configuration: Path) -> None:
    """Opening the UI starts no runs by itself; the sensor that runs starts none."""
    repository = definitions(configuration).get_repository_def()
    names = {schedule.name for schedule in repository.schedule_defs}
    assert names == {"tiny_hourly", "tiny_nightly_check", "tiny_nightly_maintenance"}
    assert {schedule.default_status for schedule in repository.schedule_defs} == {
        DefaultScheduleStatus.STOPPED
    }
    assert {sensor.name: sensor.default_status for sensor in repository.sensor_defs} == {
        "tiny_new_files": DefaultSensorStatus.STOPPED,
        "tiny_published": DefaultSensorStatus.RUNNING,
    }


def tick(path: Path, cursor: str | None) -> SensorResult:
    """Evaluate the sensor once, as the daemon does."""
    with DagsterInstance.ephemeral() as instance:
        result = (
            definitions(path)
            .get_repository_def()
            .get_sensor_def("tiny_new_files")(build_sensor_context(instance=instance, cursor=cursor))
        )
    assert isinstance(result, SensorResult)
    return result


def test_sensor_starts_one_run_for_new_files_and_none_when_nothing_is_new(
    configuration: Path, tmp_path: Path
) -> None:
    """Both days are one run over their range; the next look finds nothing new, until another day arrives."""
    first = tick(configuration, None)
    second = tick(configuration, first.cursor)
    add_day(tmp_path, DAYS[2])
    third = tick(configuration, second.cursor)
    assert [ranges(result) for result in (first, second, third)] == [
        [("2013-03-01", "2013-03-02")],
        [],
        [("2013-03-03", "2013-03-03")],
    ]
    assert second.skip_reason is not None
    assert run_key(first) != run_key(third)


def test_sensor_run_key_is_the_same_for_the_same_files(configuration: Path) -> None:
    """Were the cursor lost after a launch, Dagster would recognise the run by its key."""
    assert run_key(tick(configuration, None)) == run_key(tick(configuration, None))


def test_sensor_sees_a_file_that_has_grown(configuration: Path, tmp_path: Path) -> None:
    """Lines that were added to a file of a former run are worth another one."""
    first = tick(configuration, None)
    file = tmp_path / "data" / "planes" / "2013-03-01.jsonl"
    times = file.stat()
    with file.open("a") as lines:
        lines.write('{"key": {"tailnum": "N1"}, "value": null}\n')
    os.utime(file, (times.st_atime, times.st_mtime))
    assert ranges(tick(configuration, first.cursor)) == [("2013-03-01", "2013-03-01")]


def test_sensor_waits_until_a_file_has_settled(configuration: Path, tmp_path: Path) -> None:
    """A file written this moment may not be complete, and the run is told to leave such files, too."""
    (tmp_path / "data" / "planes" / "2013-03-02.jsonl").touch()
    (tmp_path / "data" / "flights" / "2013-03-02.jsonl").touch()
    result = tick(configuration, None)
    assert ranges(result) == [("2013-03-01", "2013-03-01")]
    (request,) = result.run_requests or ()
    assert request.run_config["ops"]["tiny_batches"]["config"]["settle_seconds"] == 30


def test_schedule_asks_for_the_range_that_waits(configuration: Path, tmp_path: Path) -> None:
    """The schedule covers every date with unread files, and skips its tick where there is none."""
    with DagsterInstance.ephemeral() as instance:
        context = build_schedule_context(instance=instance, scheduled_execution_time=NOW)
        request = definitions(configuration).get_repository_def().get_schedule_def("tiny_hourly")(context)
        for file in tmp_path.glob("data/*/*.jsonl"):
            file.unlink()
        nothing = definitions(configuration).get_repository_def().get_schedule_def("tiny_hourly")(context)
    assert isinstance(request, RunRequest)
    assert tuple(request.tags[tag] for tag in RANGE_TAGS) == ("2013-03-01", "2013-03-02")
    assert isinstance(nothing, SkipReason)


def ranges(result: SensorResult) -> list[tuple[str, ...]]:
    """Return the ranges of partitions that a tick asks runs for."""
    return [tuple(request.tags[tag] for tag in RANGE_TAGS) for request in result.run_requests or ()]


def run_key(result: SensorResult) -> str | None:
    """Return the key of the one run that a tick asks for."""
    (request,) = result.run_requests or ()
    return request.run_key


def test_nightly_schedule_starts_no_run_when_nothing_is_due(configuration: Path) -> None:
    """A lake without a finished batch needs no maintenance, and no JVM is started to know it."""
    schedule = definitions(configuration).get_repository_def().get_schedule_def("tiny_nightly_maintenance")
    nothing = schedule(build_schedule_context())
    assert isinstance(nothing, SkipReason)
    assert "Nothing is due" in str(nothing.skip_message)
