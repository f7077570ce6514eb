"""Cases with event times: what shares tables, what they expect, and that a difference is found."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from conformance import run
from conformance.case import Case, load_cases
from conformance.places import places_of, refusal_difference, write_configuration
from conformance.timed import expected_outputs
from lakejoin.orchestration.config import load

CASES = Path(__file__).parent / "cases"
_EVENTS = ({"side": "stream", "key": "k", "value": "s", "ts": 1},)


def _case(name: str, options: Mapping[str, Any], events: Sequence[Mapping[str, Any]] = _EVENTS) -> Case:
    return Case(name, f"stream-table-{name.split('-', maxsplit=1)[0]}", options, events, (), ())


def test_cases_share_tables_only_where_no_time_of_theirs_meets() -> None:
    """Without history all share a pair of tables; with it, those that have the same events and retention."""
    versioned = {"history-ms": 10}
    places = places_of(
        [
            _case("left-plain", {}),
            _case("inner-other", {}, ()),
            _case("left-one", versioned),
            _case("inner-one", versioned),
            _case("inner-grace", {**versioned, "grace-ms": 5}),
            _case("left-other", versioned, ()),
            _case("left-longer", {"history-ms": 11}),
        ]
    )
    assert [(place.records, place.pair, place.join) for place in places] == [
        ("left-plain", "shared", "shared_left"),
        ("inner-other", "shared", "shared_inner"),
        ("left-one", "left_one", "left_one"),
        ("left-one", "left_one", "inner_one"),
        ("left-one", "left_one", "inner_grace"),
        ("left-other", "left_other", "left_other"),
        ("left-longer", "left_longer", "left_longer"),
    ]


def test_all_cases_make_one_configuration(tmp_path: Path) -> None:
    """What the cases ask for is declared: retentions, grace periods, sides that are versioned."""
    cases = [case for case in load_cases(CASES) if case.is_timed and not case.is_refused]
    pipeline = load(write_configuration(places_of(cases), tmp_path))
    assert (len(pipeline.tables), len(pipeline.streams), len(pipeline.joins)) == (32, 20, 42)
    declared = {name: table.versioned is not None for name, table in pipeline.tables.items()}
    assert (declared["random_fk_inner_301_left"], declared["random_fk_inner_301_right"]) == (False, True)
    assert (declared["random_fk_left_310_left"], declared["random_fk_left_310_right"]) == (True, False)
    assert not declared["shared_table"]
    hows = {case.name.replace("-", "_"): case.how for case in cases}
    assert (hows["fk_versioned_unmatched_left_table"], hows["random_fk_inner_301"]) == ("left", "inner")
    assert {name: join.how for name, join in pipeline.joins.items() if name in hows} == {
        name: how for name, how in hows.items() if name in pipeline.joins
    }


def test_refusal_is_held_against_kafkas_reason(tmp_path: Path) -> None:
    """A configuration that is taken, or refused for something else, is a difference."""
    exceeds, unversioned = (
        load_cases(CASES, f"st-grace-{name}")[0] for name in ("exceeds-history", "without-versioned")
    )
    assert refusal_difference(exceeds, tmp_path) is refusal_difference(unversioned, tmp_path) is None
    taken = replace(exceeds, options={"history-ms": 101, "grace-ms": 101})
    assert "got no error" in str(refusal_difference(taken, tmp_path))
    otherwise = replace(unversioned, options=exceeds.options)
    assert "could be gone" in str(refusal_difference(otherwise, tmp_path))


def test_outputs_are_compared_with_their_times_in_any_order() -> None:
    """Every output counts, equal ones as often as they are there; their order within an event does not."""
    lines = [
        {"i": 1, "key": "k", "value": {"left": "s", "right": None}, "ts": 2},
        {"i": 1, "key": "j", "value": {"left": "s", "right": "t"}, "ts": 3},
        {"i": 1, "key": "k", "value": {"left": "s", "right": None}, "ts": 2},
        {"i": 2, "key": "k", "value": {"left": "s", "right": None}, "ts": 2},
    ]
    case = replace(_case("left", {}), expected=lines)
    unmatched = ("k", {"left": "s", "right": None, "ts": 2})
    assert expected_outputs(case, 2) == [
        [],
        [("j", {"left": "s", "right": "t", "ts": 3}), unmatched, unmatched],
    ]


@pytest.mark.spark
@pytest.mark.slow
def test_runner_finds_an_altered_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession
) -> None:
    """An output of another time, or one too few, fails its case, by name, and no other."""
    for name in (
        "kip923-versioned-after-ts1",
        "st-basic-left",
        "st-basic-inner",
        "fk-versioned-expired-left",
    ):
        case = json.loads((CASES / f"{name}.json").read_text("utf-8"))
        if name == "kip923-versioned-after-ts1":
            case["expected"][0]["ts"] += 1
        if name == "st-basic-left":
            del case["expected"][-1]
        (tmp_path / f"{name}.json").write_text(json.dumps(case), "utf-8")
    assert run.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "FAIL kip923-versioned-after-ts1", "FAIL st-basic-left", "2 passed, 2 failed",
    ]  # fmt: skip
