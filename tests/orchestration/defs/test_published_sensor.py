"""Batches that somebody else has published are shown, once, with what is known of their checks."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DagsterRunStatus,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from dagster._core.test_utils import create_run_for_test
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.runs.run import run_batches

_TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: "orders/{date}.jsonl"}, columns: {id: int, ref: int}, key: [id]}
  customers: {source: {format: jsonl, path: "customers/{date}.jsonl"}, columns: {id: int, name: string}, key: [id]}
joins:
  sold: {left: orders, right: customers, foreign_key: [ref], how: left, prefix: c_}
"""
DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the file of a pipeline without a day."""
    for name in ("orders", "customers"):
        (tmp_path / name).mkdir()
    path = tmp_path / "lakejoin.yaml"
    path.write_text(_TEXT)
    return path


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    """Return an instance that remembers nothing yet."""
    with DagsterInstance.ephemeral() as remembered:
        yield remembered


def arrive(config: Path, day: str) -> None:
    """Let the files of a day arrive, the second with a line that is no record."""
    number = DAYS.index(day)
    orders = f'{{"op": "u", "id": {number}, "ref": 7}}\n' + "broken\n" * number
    (config.parent / "orders" / f"{day}.jsonl").write_text(orders)
    (config.parent / "customers" / f"{day}.jsonl").write_text(f'{{"op": "u", "id": 7, "name": "{day}"}}\n')


def look(config: Path, instance: DagsterInstance, cursor: str | None) -> SensorResult | SkipReason:
    """What a look of the sensor finds."""
    definitions = pipeline_definitions(EmbeddedPipeline(load(config)), datetime(2024, 1, 2, 12, tzinfo=UTC))
    sensor = definitions.get_repository_def().get_sensor_def("shop_published")
    found = sensor(build_sensor_context(instance=instance, cursor=cursor))
    assert isinstance(found, SensorResult | SkipReason)
    return found


def remember(instance: DagsterInstance, found: SensorResult | SkipReason) -> str | None:
    """Do with what was found as the daemon does; return the cursor."""
    assert isinstance(found, SensorResult)
    for event in found.asset_events:
        instance.report_runless_asset_event(event)
    return found.cursor


def test_a_lake_without_a_batch_has_nothing_to_report(config: Path, instance: DagsterInstance) -> None:
    """Nor is a lake made; what waits in the sources is told once."""
    arrive(config, DAYS[0])
    first = look(config, instance, None)
    cursor = remember(instance, first)
    assert isinstance(look(config, instance, cursor), SkipReason)
    assert isinstance(first, SensorResult)
    assert {(event.asset_key.path[-1], type(event)) for event in first.asset_events} == {
        ("orders_source", AssetObservation),
        ("customers_source", AssetObservation),
    }
    assert not (config.parent / "lake").exists()


def test_a_lag_that_begins_or_ends_is_told_once_though_nothing_runs(
    config: Path, instance: DagsterInstance
) -> None:
    """The verdict is reported where it is not the last one; no run has to look."""

    def verdicts(found: SensorResult | SkipReason) -> dict[str, bool | None]:
        events = found.asset_events if isinstance(found, SensorResult) else []
        checks = [event for event in events if isinstance(event, AssetCheckEvaluation)]
        assert {check.check_name for check in checks} <= {"lag"}
        return {check.asset_key.path[-1]: check.passed for check in checks}

    config.write_text(_TEXT + 'expect: {lag: "< 15 minutes"}\n')
    first = look(config, instance, None)
    cursor = remember(instance, first)
    again = look(config, instance, cursor)
    arrive(config, DAYS[0])
    os.utime(config.parent / "orders" / f"{DAYS[0]}.jsonl", (time.time() - 3600,) * 2)
    late = look(config, instance, cursor)
    assert remember(instance, late) == cursor
    still = look(config, instance, cursor)
    (config.parent / "orders" / f"{DAYS[0]}.jsonl").unlink()
    ended = look(config, instance, cursor)

    assert verdicts(first) == {"orders": True, "customers": True}
    assert isinstance(again, SkipReason)
    assert verdicts(late) == {"orders": False}
    assert isinstance(still, SkipReason)
    assert verdicts(ended) == {"orders": True}


@pytest.mark.spark
def test_batches_of_the_command_line_are_shown_with_their_days(
    config: Path, instance: DagsterInstance, spark: SparkSession
) -> None:
    """Each day of each asset once, with its figures; rules that the gate has judged hold, bad records are told."""
    arrive(config, DAYS[0])
    list(run_batches(load(config), spark, batch_by="date"))
    first = look(config, instance, None)
    cursor = remember(instance, first)
    arrive(config, DAYS[1])
    list(run_batches(load(config), spark, batch_by="date"))
    create_run_for_test(instance, job_name="shop_job", status=DagsterRunStatus.STARTED)
    during = look(config, instance, cursor)
    for run in instance.get_runs():
        instance.delete_run(run.run_id)
    second = look(config, instance, cursor)
    cursor = remember(instance, second)

    assert isinstance(during, SkipReason)
    assert isinstance(look(config, instance, cursor), SkipReason)
    shown = [
        {
            (e.asset_key.path[-1], e.partition)
            for e in found.asset_events
            if isinstance(e, AssetMaterialization)
        }
        for found in (first, second)
        if isinstance(found, SensorResult)
    ]
    names = ("orders", "customers", "sold_subscription_log", "sold_response_log", "sold")
    assert shown == [{(name, day) for name in names} for day in DAYS]
    (sold,) = instance.fetch_materializations(AssetKey(["shop", "sold"]), limit=1).records
    assert sold.asset_materialization is not None
    told = sold.asset_materialization.metadata
    assert (told["status"].value, told["batch"].value, told["dagster/row_count"].value) == ("applied", 2, 2)
    assert isinstance(second, SensorResult)
    checks = {
        (check.asset_key.path[-1], check.check_name): check.passed
        for check in second.asset_events
        if isinstance(check, AssetCheckEvaluation)
    }
    assert checks["sold", "nothing_pending"]
    assert (checks["orders", "records_accepted"], checks["customers", "records_accepted"]) == (False, True)
    assert ("orders", "one_row_per_key") not in checks


@pytest.mark.spark
def test_batches_that_an_instance_knows_are_not_reported_again(
    config: Path, instance: DagsterInstance, spark: SparkSession
) -> None:
    """As those of its own runs: without a cursor the sensor looks at what the instance was told."""
    arrive(config, DAYS[0])
    list(run_batches(load(config), spark, batch_by="date"))
    remember(instance, look(config, instance, None))

    again = look(config, instance, None)

    assert isinstance(again, SensorResult)
    assert (again.asset_events, again.cursor) == ([], "1")
