"""Event lists, as the conformance cases write them, run through the model of Kafka's join."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from reference.foreign_key_join import Emission, ForeignKeyJoin, How, JoinOverJoin, Value
from reference.timed_events import VersionedSides

Event = Mapping[str, Any]


def foreign_key(value: Value) -> str | None:
    """The member `fk` of a left value; null where it is missing."""
    found = value.get("fk")
    return None if found is None else str(found)


def second_foreign_key(value: Value) -> str | None:
    """The member `fk2` of the left value that a first join passed on."""
    found = value["left"].get("fk2")
    return None if found is None else str(found)


def run_events(topology: str, options: Mapping[str, Any], events: Iterable[Event]) -> list[list[Emission]]:
    """Return each event's emissions, sorted by key; the topology is `fk-inner`, `fk-left` or `fk-chain`."""
    if topology == "fk-chain":
        return run_chain(options["first"], options["second"], events)
    return run_join(make_join(topology), events, VersionedSides(options).admit)


def make_join(topology: str) -> ForeignKeyJoin:
    """An empty model for `fk-inner`, `fk-left` or their `-table` twins."""
    return ForeignKeyJoin("left" if topology.startswith("fk-left") else "inner", foreign_key)


def run_join(
    join: ForeignKeyJoin, events: Iterable[Event], admit: Callable[[Event], bool] = lambda _: True
) -> list[list[Emission]]:
    """Return the emissions of each event; one that is not admitted has none.

    A `replay` event delivers the n-th internal message again, late.
    """
    emitted = []
    for event in events:
        match event["side"]:
            case "left" | "right" if not admit(event):
                emissions = []
            case "left":
                emissions = join.change_left(event["key"], event["value"])
            case "right":
                emissions = join.change_right(event["key"], event["value"])
            case "replay" if event["topic"] == "subscription":
                emissions = join.deliver_subscription(join.subscription_log[event["n"]])
            case "replay":
                emissions = join.deliver_response(join.response_log[event["n"]])
            case side:
                raise ValueError(f"event on side {side!r}: a single join has left, right and replay")
        emitted.append(_sorted(emissions))
    return emitted


def run_chain(first: How, second: How, events: Iterable[Event]) -> list[list[Emission]]:
    """Return the emissions of each event of a join over a join: left.fk -> right, then left.fk2 -> right2."""
    chain = JoinOverJoin(ForeignKeyJoin(first, foreign_key), ForeignKeyJoin(second, second_foreign_key))
    takes = {"left": chain.change_left, "right": chain.change_right, "right2": chain.change_right2}
    return [_sorted(takes[event["side"]](event["key"], event["value"])) for event in events]


def _sorted(emissions: Sequence[Emission]) -> list[Emission]:
    # stable: the order across keys is not specified, the order of one key's emissions is
    return sorted(emissions, key=lambda emission: emission.key)
