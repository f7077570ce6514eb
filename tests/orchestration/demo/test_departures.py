"""The departures of the tiny recording beside PostgreSQL's answer, which knew the whole history when it was asked."""

import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.demo.days import Day
from lakejoin.orchestration.demo.departures import EQUAL, UNEXPLAINED, Explained, explain, has_departures
from lakejoin.orchestration.demo.example import Example
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State

pytestmark = pytest.mark.spark


def test_every_weather_is_postgresqls_or_differs_for_a_cause(
    tiny: Example, tiny_days: tuple[Day, ...], spark: SparkSession
) -> None:
    """Some flights are equal, and none is unexplained."""
    lake = Lake(tiny.pipeline.lake)
    assert has_departures(tiny)

    found = explain(tiny, State(spark, lake, published_snapshot(Journal(lake))))

    assert found.is_explained, found
    assert found.flights == sum(found.causes.values())
    assert found.causes[EQUAL] > found.flights / 2


def test_difference_without_a_cause_is_told() -> None:
    """One is enough for the demo to fail."""
    assert not Explained(2, {EQUAL: 1, UNEXPLAINED: 1}).is_explained
    assert Explained(2, {EQUAL: 1, "still in the buffer": 1}).is_explained
