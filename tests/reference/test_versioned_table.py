"""The model of versioned tables, held against Kafka's own store, and what it says of each record."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.timed_events import operate
from reference.versioned_table import VersionedTable

CASES = Path(__file__).parents[1] / "conformance" / "cases"


def _cases() -> list[Any]:
    found = [json.loads(path.read_text("utf-8")) for path in sorted(CASES.glob("*versioned-*.json"))]
    return [pytest.param(case, id=case["name"]) for case in found if case["topology"] == "versioned-kv"]


@pytest.mark.parametrize("case", _cases())
def test_model_answers_what_kafkas_store_answers(case: dict[str, Any]) -> None:
    """Every put, delete, as-of get and list of versions; what Kafka refuses, the model refuses."""
    table = VersionedTable(case["options"]["history-ms"])
    expected = {line["i"]: line for line in case["expected"]}
    for i, operation in enumerate(case["events"]):
        if "error" in expected[i]:
            with pytest.raises(ValueError, match=r"null|before it begins"):
                operate(table, operation)
        else:
            assert operate(table, operation) == expected[i]["result"], f"operation {i}: {operation}"


def test_conformance_cases_of_the_store_are_all_here() -> None:
    """The copied cases hold the whole set, so that a lost file does not pass as a success."""
    assert len(_cases()) == 12


def _table(*puts: tuple[Any, int], history_retention: int = 10) -> VersionedTable:
    table = VersionedTable(history_retention)
    for value, time in puts:
        table.put("k", value, time)
    return table


def _intervals(table: VersionedTable) -> list[tuple[Any, int, int | None]]:
    return [(version.value, version.valid_from, version.valid_to) for version in table.versions("k")]


def test_late_record_rewrites_history() -> None:
    """It ends the version before it, and ends where the one after it begins."""
    table = _table(("a", 1), ("c", 9))
    assert table.put("k", "b", 5) == "history"
    assert _intervals(table) == [("a", 1, 5), ("b", 5, 9), ("c", 9, None)]


def test_tombstone_is_a_version() -> None:
    """From its time on nothing is valid, until the next version."""
    table = _table(("a", 1), (None, 3), ("b", 6))
    assert [table.look_up("k", time) for time in (0, 1, 2, 3, 5, 6)] == [None, "a", "a", None, None, "b"]


def test_record_of_the_same_time_replaces_unless_another_comes_after_it() -> None:
    """By sequence, then position; the latest version is replaced as one that counts, an earlier one as history."""
    table = _table()
    assert table.put("k", "b", 5, sequence=2, position=1) == "applied"
    assert table.put("k", "a", 5, sequence=1, position=9) == "out_of_order"
    assert table.put("k", "a", 5, sequence=2, position=0) == "out_of_order"
    assert table.look_up("k", 5) == "b"
    assert table.put("k", "c", 5, sequence=2, position=2) == "applied"
    table.put("k", "d", 7)
    assert table.put("k", "e", 5, sequence=3, position=3) == "history"
    assert _intervals(table) == [("e", 5, 7), ("d", 7, None)]


def test_record_that_is_there_already_is_a_duplicate() -> None:
    """With its sequence and its value; the version stands where the last of them stood."""
    table = _table()
    table.put("k", "a", 5, sequence=1, position=1)
    assert table.put("k", "a", 5, sequence=1, position=7) == "duplicate"
    assert table.put("k", "a", 5, sequence=1, position=0) == "duplicate"
    assert table.put("k", "b", 5, sequence=1, position=6) == "out_of_order"
    assert table.put("k", "a", 5, sequence=2, position=8) == "applied"


def test_record_behind_the_retention_is_expired_and_moves_nothing() -> None:
    """The bound is inclusive, holds for new keys too, and is the table's, not the key's."""
    table = _table(("a", 20))
    assert (table.put("j", "old", 9), table.put("j", "edge", 10)) == ("expired", "applied")
    assert table.look_up("j", 10) == "edge"
    assert table.observed == 20


def test_lookup_behind_the_retention_is_answered_by_a_latest_version_only() -> None:
    """History is promised so far back and no further; what is still valid never goes."""
    table = _table(("a", 1), ("b", 5))
    table.put("j", "x", 1)
    table.put("other", "o", 16)
    assert (table.look_up("k", 5), table.look_up("j", 5)) == ("b", "x")
    assert table.look_up("k", 4) is None
    assert table.look_up("j", 4) == "x"
    table.put("k", "c", 20)
    assert (table.look_up("k", 9), table.look_up("k", 10)) == (None, "b")


_PUTS = st.lists(
    st.tuples(st.sampled_from("jk"), st.sampled_from(["a", "b", None]), st.integers(0, 12)), max_size=20
)


@given(_PUTS, st.randoms())
def test_history_does_not_depend_on_the_order_of_arrival(puts: list[Any], chance: Any) -> None:
    """Within the retention, records of different times may come in any order."""
    ordered, shuffled = VersionedTable(12), VersionedTable(12)
    numbered = list(enumerate(puts))
    for order, (key, value, time) in numbered:
        ordered.put(key, value, time, order, order)
    chance.shuffle(numbered)
    for order, (key, value, time) in numbered:
        assert shuffled.put(key, value, time, order, order) != "expired"
    assert [shuffled.versions(key) for key in "jk"] == [ordered.versions(key) for key in "jk"]


@given(_PUTS, st.integers(0, 6))
def test_versions_of_a_key_follow_each_other(puts: list[Any], history_retention: int) -> None:
    """Intervals are never empty and leave no gap; the latest alone is open; the latest record that counts is it."""
    table = VersionedTable(history_retention)
    newest: dict[str, int] = {}
    for key, value, time in puts:
        if table.put(key, value, time) == "applied":
            assert time >= newest.get(key, 0)
            newest[key] = time
    for key, time in newest.items():
        versions = table.versions(key)
        starts = [version.valid_from for version in versions]
        assert starts == sorted(set(starts))
        assert [version.valid_to for version in versions] == [*starts[1:], None]
        assert starts[-1] == time
