"""The model of Kafka's join, held against what Kafka Streams itself answered."""

import json
from pathlib import Path
from typing import Any

import pytest

from reference.events import Event, make_join, run_chain, run_events, run_join
from reference.foreign_key_join import INSTRUCTIONS, Emission, ForeignKeyJoin, Subscription, fold, value_hash
from reference.timed_events import VersionedSides

CASES = Path(__file__).parents[1] / "conformance" / "cases"


def _cases(*, needs_trace: bool = False) -> list[Any]:
    found = []
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text("utf-8"))
        if case["topology"].startswith("fk-") and (not needs_trace or "trace" in case):
            found.append(pytest.param(case, id=case["name"]))
    return found


def _expected(case: dict[str, Any]) -> list[list[Emission]]:
    emitted: list[list[Emission]] = [[] for _ in case["events"]]
    for line in case["expected"]:
        emitted[line["i"]].append(Emission(line["key"], line["value"]))
    return emitted


@pytest.mark.parametrize("case", _cases())
def test_model_emits_what_kafka_emits(case: dict[str, Any]) -> None:
    """Every emission of every event, tombstones and redundant ones included, is Kafka's."""
    emitted = run_events(case["topology"], case["options"], case["events"])
    if case["topology"].endswith("-table"):
        rows = fold([emission for emissions in emitted for emission in emissions])
        assert rows == {line["key"]: line["value"] for line in case["expected"]}
    else:
        assert emitted == _expected(case)


@pytest.mark.parametrize("case", _cases(needs_trace=True))
def test_model_sends_the_messages_that_kafka_sends(case: dict[str, Any]) -> None:
    """Subscriptions and responses are those of Kafka's internal topics, in their order."""
    join = make_join(case["topology"])
    run_join(join, case["events"], VersionedSides(case["options"]).admit)
    sent = [(m.foreign_key, m.primary_key, m.instruction, m.hash is None) for m in join.subscription_log]
    answered = [(r.primary_key, r.right, r.hash is None) for r in join.response_log]
    assert sent == _topic(case, "subscription", ("fk", "pk", "instruction", "hash_null"))
    assert answered == _topic(case, "response", ("pk", "right", "hash_null"))


def _topic(case: dict[str, Any], topic: str, members: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [tuple(message[m] for m in members) for message in case["trace"] if message["trace"] == topic]


def test_conformance_cases_of_the_join_are_all_here() -> None:
    """The copied cases hold the whole set, so that a lost file does not pass as a success."""
    assert len(_cases()) == 77
    assert len(_cases(needs_trace=True)) == 57


def _join(how: Any = "inner") -> ForeignKeyJoin:
    return make_join(f"fk-{how}")


def test_model_drops_records_without_key() -> None:
    """A record with a null key changes nothing on either side."""
    join = _join("left")
    assert join.change_left(None, {"fk": "1", "v": "a"}) == []
    assert join.change_right(None, "x") == []
    assert (join.left, join.right, join.subscription_log) == ({}, {}, [])


def test_model_knows_every_move_of_a_foreign_key() -> None:
    """The instruction table covers all ten transitions of both joins."""
    assert len(INSTRUCTIONS) == 10
    assert all(set(sends) == {"inner", "left"} for sends in INSTRUCTIONS.values())


def test_messages_of_a_change_carry_the_hash_of_the_new_value() -> None:
    """The unsubscription from the old foreign key carries the new value's hash: its answer must count."""
    join = _join()
    join.change_left("k", {"fk": "1", "v": "a"})
    join.change_left("k", {"fk": "2", "v": "a"})
    new = value_hash({"fk": "2", "v": "a"})
    assert [message.hash for message in join.subscription_log[1:]] == [new, new]


def test_late_response_is_dropped_when_the_row_is_gone() -> None:
    """An answer given to a value that was deleted since is stale: it neither emits nor raises."""
    join = _join()
    join.change_right("1", "foo")
    join.change_left("k", {"fk": "1", "v": "a"})
    join.change_left("k", None)
    assert join.deliver_response(join.response_log[0]) == []


def test_late_subscription_revives_nothing_by_itself() -> None:
    """A late first subscription overwrites the newer hash, and a right change then reaches nobody."""
    join = _join()
    join.change_left("k", {"fk": "1", "v": "a"})
    first: Subscription = join.subscription_log[0]
    join.change_left("k", {"fk": "1", "v": "b"})
    join.deliver_subscription(first)
    assert join.change_right("1", "foo") == []


def test_second_join_takes_redundant_emissions_of_the_first() -> None:
    """A right row of the first join that did not change its result still makes the second one emit again."""
    events: list[Event] = [
        {"side": "right", "key": "1", "value": "foo"},
        {"side": "left", "key": "k", "value": {"fk": "1", "fk2": "p", "v": "a"}},
        {"side": "right", "key": "1", "value": "foo"},
    ]
    emitted = run_chain("inner", "left", events)
    assert emitted[1] == emitted[2] != []


def test_unknown_side_is_refused() -> None:
    """An event list with a side that the join does not have is an error, not silence."""
    with pytest.raises(ValueError, match="right2"):
        run_join(_join(), [{"side": "right2", "key": "1", "value": "x"}])
