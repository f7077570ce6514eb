"""The differences from Kafka Streams that docs/concepts.md and docs/stores.md declare, with what Kafka answers."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conformance.case import Batches, Case, expected_emissions
from conformance.pipeline import run_cases
from conformance.stores import run_store
from lakejoin.storage.stores.write.layout import Layout
from stores_without_spark import make_store

Lines = Sequence[Mapping[str, Any]]

_LEFT = {"fk": "1", "v": "a"}
_JOINED: Lines = (
    {"side": "left", "key": "k", "value": _LEFT},
    {"side": "right", "key": "1", "value": ""},
    {"side": "right", "key": "1", "value": "x"},
    {"side": "right", "key": "1", "value": ""},
)
_REMOVED: Lines = (
    {"op": "put", "key": "a", "start": 0, "end": 5, "value": "x"},
    {"op": "remove", "key": "b", "start": 20, "end": 30},
    {"op": "fetch", "key": "a"},
)
_SESSION = {"key": "a", "start": 0, "end": 5, "value": "x"}


def _joined(rights: Mapping[int, str | None], *, tombstones: Sequence[int] = ()) -> Lines:
    """What is emitted of the left row: with these right values, and as a tombstone, by event."""
    found = [{"i": i, "key": "k", "value": {"left": _LEFT, "right": right}} for i, right in rights.items()]
    return sorted(
        [*found, *({"i": i, "key": "k", "value": None} for i in tombstones)], key=lambda line: line["i"]
    )


@pytest.mark.spark
@pytest.mark.slow
def test_right_text_of_no_bytes_is_a_text(spark: SparkSession, tmp_path: Path) -> None:
    """To Kafka it is null, for its responses cannot say it: an inner join answers with a tombstone there."""
    kafkas = {
        "fk-left": _joined({0: None, 1: None, 2: "x", 3: None}),
        "fk-inner": _joined({2: "x"}, tombstones=(1, 3)),
    }
    ours = {"fk-left": _joined({0: None, 1: "", 2: "x", 3: ""}), "fk-inner": _joined({1: "", 2: "x", 3: ""})}
    cases = [Case(topology, topology, {}, _JOINED, lines, ()) for topology, lines in kafkas.items()]

    answers = run_cases(cases, Batches("per-event"), tmp_path, spark, lambda *_: None)

    for case in cases:
        found = answers[case.name].emissions
        assert found == expected_emissions(Case("ours", case.topology, {}, _JOINED, ours[case.name], ()), 4)
        assert found != expected_emissions(case, 4)


@pytest.mark.parametrize(("kafkas_store", "found"), [("persistent", []), ("memory", [_SESSION])])
def test_removed_session_moves_the_time_on(tmp_path: Path, kafkas_store: str, found: list[Any]) -> None:
    """As in Kafka's persistent store; in its memory store a remove does not, and what expires here is there."""
    retention = timedelta(milliseconds=10)
    case = Case("removed", "session", {"store": kafkas_store}, _REMOVED, [{"i": 2, "result": found}], ())

    difference = run_store(
        case, 3, lambda _: make_store(tmp_path / "store", Layout("session", ("key",), ("value",), retention))
    )

    if kafkas_store == "persistent":
        assert difference is None
    else:
        assert str(difference).endswith('expected [{"key":"a","start":0,"end":5,"value":"x"}], got []')
