"""Kafka's answers for state stores, and that the comparison with ours can fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conformance.case import STORES, Batches, Case, load_cases
from conformance.stores import Settings, run_store, run_stores
from lakejoin.storage.stores.write.layout import Layout
from stores_without_spark import make_store

CASES = [case for case in load_cases(Path(__file__).parent / "cases") if case.topology in STORES]
BY_NAME = {case.name: case for case in CASES}


@pytest.fixture
def make(tmp_path: Path) -> Callable[[Settings], Any]:
    """Return what makes an empty store that needs no Spark."""

    def store(settings: Settings) -> Any:
        retention = None if settings.kind == "key-value" else settings.retention
        window = settings.window if settings.kind == "window" else None
        layout = Layout(settings.kind, ("key",), ("value",), retention, window, settings.duplicates)
        return make_store(tmp_path / "store", layout)

    return store


def test_there_are_cases_of_every_kind_of_store() -> None:
    """So that none is compared with nothing."""
    assert {case.topology for case in CASES} == set(STORES)
    assert len(CASES) == 35


@pytest.mark.parametrize("name", [name for name in BY_NAME if not name.startswith("random-")])
def test_store_answers_as_kafka_does(name: str, make: Callable[[Settings], Any]) -> None:
    """Event by event, each put a commit of its own."""
    assert run_store(BY_NAME[name], len(BY_NAME[name].events), make) is None


@pytest.mark.parametrize(
    ("name", "altered"),
    [
        ("kv-numbers-as-text-persistent", [{"key": "1", "value": "altered"}]),
        ("window-retention-memory", []),
        ("session-merge-lookup-persistent", []),
        ("versioned-list-versions", []),
    ],
)
def test_altered_answer_is_found(name: str, altered: list[Any], make: Callable[[Settings], Any]) -> None:
    """The first event that is answered otherwise is named, with both answers."""
    case = BY_NAME[name]
    number, line = next((n, found) for n, found in enumerate(case.expected) if found.get("result"))
    lines = [*case.expected[:number], {**line, "result": altered}, *case.expected[number + 1 :]]
    found = Case(case.name, case.topology, case.options, case.events, lines, ())
    assert str(run_store(found, len(case.events), make)).startswith(f"event {line['i']} ")


def test_order_of_a_key_is_compared_and_that_of_several_is_free(make: Callable[[Settings], Any]) -> None:
    """Kafka's own stores order several keys differently, depending on where they keep them."""
    case = BY_NAME["window-many-segments-order-persistent"]
    reverse = [{**line, "result": line["result"][::-1]} for line in case.expected]
    found = Case(case.name, case.topology, case.options, case.events, reverse, ())
    difference = str(run_store(found, len(case.events), make))
    assert json.loads(difference.split(" ", 2)[2].split(": expected", maxsplit=1)[0])["op"] == "fetch"


@pytest.mark.spark
def test_puts_of_frames_answer_as_kafka_does(spark: SparkSession, tmp_path: Path) -> None:
    """One small case of each kind; `run.py` runs them all."""
    names = ("kv-put-all-persistent", "window-retention-persistent", "session-merge-lookup-memory")
    cases = [BY_NAME[name] for name in (*names, "versioned-retention-edge-put")]
    assert run_stores(cases, Batches("one"), tmp_path, spark) == {}
