"""Sources are assets that nobody materialises: what waits in them is observed, when something has changed."""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import AssetKey, AssetObservation, AutomationCondition, DagsterInstance, materialize
from dagster import evaluate_automation_conditions as evaluate

from lakejoin.dagster import lakejoin_definitions
from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.source_assets import (
    look_at_sources,
    observations,
    source_assets,
    source_key,
)
from lakejoin.orchestration.planning.backlog import Backlog
from lakejoin.storage.sources.formats.source_format import Reached

_TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: "orders/{date}.jsonl"}, columns: {id: int}, key: [id]}
  customers: {source: {format: jsonl, path: customers.jsonl}, columns: {id: int}, key: [id]}
"""


@pytest.fixture
def shop(tmp_path: Path) -> EmbeddedPipeline:
    """Return a pipeline with a dated source and one of a single file that is there."""
    (tmp_path / "orders").mkdir()
    arrive(tmp_path / "customers.jsonl")
    return EmbeddedPipeline(load_text(_TEXT, tmp_path / "lakejoin.yaml"), key_prefix=("raw",))


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    """Return an instance that remembers nothing yet."""
    with DagsterInstance.ephemeral() as remembered:
        yield remembered


def arrive(path: Path, age: float = 3600) -> None:
    """Write a file of ten bytes that was left alone for a while."""
    path.write_text('{"id": 1}\n')
    os.utime(path, (time.time() - age,) * 2)


def observed(shop: EmbeddedPipeline, instance: DagsterInstance) -> dict[str, AssetObservation]:
    """What a look finds changed, by the last part of its key; the instance remembers it."""
    found, unlisted = look_at_sources(shop, instance)
    assert not unlisted
    for event in found:
        instance.report_runless_asset_event(event)
    return {event.asset_key.path[-1]: event for event in found}


def test_an_observation_says_what_waits(
    shop: EmbeddedPipeline, instance: DagsterInstance, tmp_path: Path
) -> None:
    """How many files and bytes, the newest file and its day, and for how long the oldest of them waits."""
    arrive(tmp_path / "orders" / "2024-01-01.jsonl", age=7200)
    arrive(tmp_path / "orders" / "2024-01-02.jsonl")
    told = {name: value.value for name, value in observed(shop, instance)["orders_source"].metadata.items()}
    assert 7200 <= told.pop("lag_seconds") < 10_000  # type: ignore[operator]
    assert told.pop("newest_changed")
    assert told == {
        "pending_files": 2, "held": 2, "pending_bytes": 20, "newest": "2024-01-02.jsonl", "newest_date": "2024-01-02"
    }  # fmt: skip


def test_only_a_source_that_changed_is_observed_again(
    shop: EmbeddedPipeline, instance: DagsterInstance, tmp_path: Path
) -> None:
    """That time goes on is no change."""
    first, second = observed(shop, instance), observed(shop, instance)
    arrive(tmp_path / "orders" / "2024-01-01.jsonl")
    assert (set(first), second) == ({"orders_source", "customers_source"}, {})
    assert set(observed(shop, instance)) == {"orders_source"}


def test_of_a_topic_the_records_are_told_that_wait(shop: EmbeddedPipeline, instance: DagsterInstance) -> None:
    """The sum over its partitions."""
    reached = {"orders": (Reached("t-0", 5, 9), Reached("t-1", 3, 3))}
    listed = Backlog((), None, (), {"orders": 2, "customers": 1}, reached=reached)
    found = {event.asset_key: event for event in observations(shop, listed, instance, datetime.now(UTC))}
    assert found[source_key(shop, "orders")].metadata["pending_records"].value == 4


def test_a_source_that_cannot_be_listed_is_told_and_fails_nothing(
    shop: EmbeddedPipeline, instance: DagsterInstance, tmp_path: Path
) -> None:
    """The table is named."""
    (tmp_path / "customers.jsonl").unlink()
    found, unlisted = look_at_sources(shop, instance)
    assert not found
    assert "customers" in unlisted


def test_sources_are_observed_by_hand_without_a_jvm(
    shop: EmbeddedPipeline, instance: DagsterInstance
) -> None:
    """One of them, if only that was asked for."""
    done = materialize([source_assets(shop)], instance=instance, selection=[source_key(shop, "customers")])
    assert done.success
    (event,) = done.get_asset_observation_events()
    assert event.asset_observation_data.asset_observation.metadata["pending_bytes"].value == 10


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")
def test_tables_that_follow_their_inputs_wait_for_no_source(
    shop: EmbeddedPipeline, instance: DagsterInstance, tmp_path: Path
) -> None:
    """Once it was observed, a source is not missing: `eager` and `on_missing` ask for that."""
    file = tmp_path / "lakejoin.yaml"
    file.write_text(_TEXT)
    there = ~AutomationCondition.any_deps_missing()
    defs = lakejoin_definitions(file, automation_condition=there, partitioned=False)
    observed(EmbeddedPipeline(load_text(_TEXT, file)), instance)
    assert evaluate(defs=defs, instance=instance).get_num_requested(AssetKey(["shop", "orders"])) == 1
