"""The conformance runner: what it skips, how it cuts, what it compares, and that it can fail."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance import run
from conformance.case import (
    Batches,
    Case,
    expected_emissions,
    expected_table,
    first_difference,
    load_cases,
    normal,
    skip_reason,
    table_difference,
)

CASES = Path(__file__).parent / "cases"
PER_EVENT = Batches("per-event")


def _case(
    topology: str = "fk-inner",
    options: Mapping[str, Any] | None = None,
    events: Sequence[Mapping[str, Any]] = (),
    expected: Sequence[Mapping[str, Any]] = (),
) -> Case:
    return Case("case", topology, options or {}, events, expected, ())


def _left(value: Any) -> dict[str, Any]:
    return {"side": "left", "key": "k", "value": value}


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_case("kv-range", {"store": "memory"}), None),
        (_case("window", {"retention-ms": 10, "colour": "red"}), "colour is unknown"),
        (_case("fk-outer"), "fk-outer is unknown"),
        (_case("stream-table-left", {"history-ms": 9, "segment-ms": 3, "grace-ms": 2}), None),
        (_case(options={"versioned": "left", "history-ms": 9}), None),
        (_case(options={"first": "left", "colour": "red"}), "colour is unknown"),
        (_case(events=[_left({"fk": "1", "w": 1})]), "member w"),
        (_case("fk-left-table", events=[_left(None)] * 41), "more than 40 events"),
        (_case("fk-left-table", events=[_left(None)] * 40), None),
        (_case("fk-chain", {"first": "left", "second": "inner", "store": "memory"}), None),
    ],
)
def test_case_is_skipped_only_for_a_reason_that_names_what_is_missing(case: Case, reason: str | None) -> None:
    """A feature that is not built, an option nobody knows, or a final table that this mode cannot reach."""
    found = skip_reason(case, PER_EVENT)
    assert found is None if reason is None else found is not None and reason in found


@pytest.mark.parametrize(
    ("topology", "options", "how"),
    [
        ("fk-inner", {}, "inner"), ("fk-left", {}, "left"), ("fk-inner-table", {}, "inner"),
        ("fk-left-table", {}, "left"), ("stream-table-inner", {}, "inner"), ("stream-table-left", {}, "left"),
        ("fk-chain", {"first": "left", "second": "inner"}, "left"),
        ("fk-chain", {"first": "inner", "second": "left"}, "inner"),
    ],
)  # fmt: skip
def test_topology_says_how_a_case_joins(topology: str, options: Mapping[str, Any], how: str) -> None:
    """Whatever its name is, and whatever else the topology says behind that."""
    assert _case(topology, options).how == how


def test_joins_are_skipped_only_where_the_cut_matters() -> None:
    """Of the copied cases, every join is run; what a stream's records find is expected per event only."""
    cases = [case for case in load_cases(CASES) if case.is_stream or "fk" in case.topology]
    assert len(cases) == 77 + 39
    assert [case.name for case in cases if skip_reason(case, Batches("per-event", steps=1000))] == []
    skipped = [case for case in cases if skip_reason(case, Batches("one"))]
    assert skipped == [case for case in cases if case.is_stream and not case.is_refused]
    assert len(skipped) == 37


def test_cut_gives_one_event_to_a_batch_up_to_the_steps() -> None:
    """Per event, the t-th event is the t-th batch, and no more events are run than asked for."""
    case = _case(events=[_left(None)] * 5)
    assert PER_EVENT.cut(case) == [0, 1, 2, 3, 4]
    assert Batches("per-event", steps=3).cut(case) == [0, 1, 2]
    assert Batches("one").cut(case) == [0] * 5


def test_random_cut_keeps_the_order_of_events_and_repeats_with_its_seed() -> None:
    """Batches never fall from one event to the next; another seed cuts otherwise."""
    case = _case(events=[_left(None)] * 20)
    first, again, other = (Batches("random", seed).cut(case) for seed in (1, 1, 2))
    assert first == again == sorted(first)
    assert first != other


def test_nothing_is_compared_after_kafka_died() -> None:
    """Where Kafka ends with an error, the case ends for the comparison; we go on."""
    died = _case(
        events=[_left({"fk": "1"})] * 3,
        expected=[{"i": 0, "key": "k", "value": None}, {"i": 1, "error": "NullPointerException"}],
    )
    assert died.end == 1
    assert PER_EVENT.cut(died) == [0, 1, 2]
    assert Batches("one").cut(died) == [0]
    assert expected_emissions(died, died.end) == [[("k", None)]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"left": {"v": "a", "fk": None}, "right": "x"}, {"left": {"fk2": None, "v": "a"}, "right": "x"}),
        ({"left": {"fk": 1}, "right": None}, {"left": {"fk": "1"}, "right": None}),
        (
            {"left": {"left": {}, "right": "x"}, "right": "y"},
            {"left": {"left": {"v": None}, "right": "x"}, "right": "y"},
        ),
    ],
)
def test_absent_members_equal_null_and_their_order_is_free(one: Any, other: Any) -> None:
    """Values are compared by their members, on every level of a join over a join."""
    assert normal(one) == normal(other)


def test_emissions_are_compared_event_by_event_in_the_order_of_keys() -> None:
    """The order of keys within an event is free; the event, the number and the value of emissions are not."""
    value = {"left": {"v": "a"}, "right": "x"}
    lines = [{"i": 1, "key": "l", "value": None}, {"i": 1, "key": "k", "value": value}]
    emitted = expected_emissions(_case(expected=lines), 2)
    assert emitted == [[], [("k", normal(value)), ("l", None)]]
    assert first_difference(emitted, emitted) is None
    assert "event 1: expected k=" in str(first_difference(emitted, [[], [("l", None)]]))
    assert "got nothing" in str(first_difference(emitted, [[], []]))
    assert "event 0: expected nothing, got k=tombstone" in str(first_difference(emitted, [[("k", None)], []]))


def test_final_table_is_the_last_emission_of_each_key() -> None:
    """A tombstone takes its key away; a table case names its rows itself."""
    value = {"left": {"v": "a"}, "right": "x"}
    lines = [{"i": 0, "key": key, "value": value} for key in "kl"] + [{"i": 1, "key": "l", "value": None}]
    assert expected_table(_case(expected=lines), 2) == {"k": normal(value)}
    assert expected_table(_case("fk-inner-table", expected=[{"key": "k", "value": value}]), 2) == {
        "k": normal(value)
    }
    assert table_difference({"k": 1}, {"k": 1}) is None
    assert table_difference({"k": 1}, {}) == "final row of 'k': expected 1, got none"
    assert table_difference({}, {"k": 2}) == "final row of 'k': expected none, got 2"


def test_skipped_cases_are_listed_before_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of nothing but skipped cases says so, with their names and the reason, and starts no Spark."""
    for name in ("one", "two"):
        case = {"name": name, "topology": "fk-outer", "options": {}, "events": [], "expected": []}
        (tmp_path / f"{name}.json").write_text(json.dumps(case), "utf-8")
    assert run.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "SKIP 2 (topology fk-outer is unknown): one two",
        "2 skipped",
        "0 passed, 0 failed",
    ]


@pytest.mark.parametrize("arguments", [["--batches", "random"], ["--batches", "two"], ["--steps", "0"]])
def test_wrong_usage_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A way to cut that does not exist, or no steps, is an error that says what is expected."""
    with pytest.raises(SystemExit) as stopped:
        run.main([str(CASES), *arguments])
    assert stopped.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_folder_without_matching_cases_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No case is not a success."""
    assert run.main([str(tmp_path), "--only", "fk-*"]) == 2
    assert "no case in" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.slow
def test_runner_finds_an_altered_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: Any
) -> None:
    """A wrong emission and a wrong final row each fail their case, by name, and no other."""
    for name in ("kip213-left-delete-inner", "fk-null-insert-left", "kip213-output-table-left-final"):
        case = json.loads((CASES / f"{name}.json").read_text("utf-8"))
        if name != "fk-null-insert-left":
            case["expected"][-1]["value"] = {"left": {"fk": "1", "v": "altered"}, "right": None}
        (tmp_path / f"{name}.json").write_text(json.dumps(case), "utf-8")
    assert run.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "FAIL kip213-left-delete-inner", "FAIL kip213-output-table-left-final", "1 passed, 2 failed",
    ]  # fmt: skip
    assert "altered" in lines[0]
