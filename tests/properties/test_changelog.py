"""Fed one event per batch, the changelog is Kafka's: redundant emissions and tombstones included."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from conformance.case import Batches, Case
from conformance.pipeline import run_cases
from conformance.run import differences
from properties.scenarios import UNSHRUNK
from reference.events import run_events

_STEPS = 7
_SIDE_BY_SIDE = 60
_TOPOLOGIES = (
    ("fk-inner", None),
    ("fk-left", None),
    ("fk-chain", ("inner", "left")),
    ("fk-chain", ("left", "inner")),
)

_LEFT = st.fixed_dictionaries(
    {},
    optional={
        "fk": st.sampled_from(["1", "2", "", None]),
        "fk2": st.sampled_from(["p", None]),
        "v": st.sampled_from(["a", "b", None]),
    },
)
_EVENT = st.one_of(
    st.builds(
        lambda key, value: {"side": "left", "key": key, "value": value},
        st.sampled_from(["k", "k", "j"]),
        st.one_of(_LEFT, _LEFT, _LEFT, st.none()),
    ),
    st.builds(
        lambda key, value: {"side": "right", "key": key, "value": value},
        st.sampled_from(["1", "2", ""]),
        st.sampled_from(["x", "y", None]),
    ),
    st.builds(
        lambda value: {"side": "right2", "key": "p", "value": value},
        st.sampled_from(["P", "Q", None]),
    ),
)


@dataclass(frozen=True)
class SideBySide:
    """Cases for one pipeline."""

    cases: list[Case]

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        # printed whole for every failure, however long: what is wrong is told by the comparison
        printer.text(f"{len(self.cases)} cases")


@st.composite
def side_by_side(draw: st.DrawFn) -> SideBySide:
    """Event lists, with what the model of Kafka's join emits for them."""
    found = []
    for number in range(_SIDE_BY_SIDE):
        topology, chain = draw(st.sampled_from(_TOPOLOGIES))
        options = dict(zip(("first", "second"), chain, strict=True)) if chain else {}
        events = draw(st.lists(_EVENT, min_size=3, max_size=_STEPS))
        if chain is None:
            events = [event for event in events if event["side"] != "right2"]
        found.append(
            Case(f"random {number}", topology, options, events, _expected(topology, options, events), ())
        )
    return SideBySide(found)


def _expected(topology: str, options: dict[str, Any], events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"i": i, "key": emission.key, "value": emission.value}
        for i, emissions in enumerate(run_events(topology, options, events))
        for emission in emissions
    ]


@pytest.mark.spark
@pytest.mark.slow
@settings(UNSHRUNK, max_examples=2)
@given(drawn=side_by_side())
def test_changelog_is_that_of_kafka_when_each_event_is_a_batch(
    drawn: SideBySide, spark: SparkSession
) -> None:
    """Every event emits what the model of Kafka's join emits, and the joined tables are its fold."""
    cases = drawn.cases
    assume(sum(len(case.events) for case in cases) > 4 * _SIDE_BY_SIDE)
    batches = Batches("per-event", steps=_STEPS)
    with TemporaryDirectory(prefix="changelog-") as folder:
        answers = run_cases(cases, batches, Path(folder), spark, lambda done, of: None)
    failures = differences(cases, answers, batches)
    events = {case.name: (case.topology, dict(case.options), case.events) for case in cases}
    assert not failures, "\n".join(f"{name}: {failures[name]}\n  {events[name]}" for name in failures)
