"""Kafka Streams' foreign-key join, one record at a time, in plain Python: what the product is held against.

Each step of the protocol is one method: a left change is sent as subscriptions, a subscription is received
and answered, a response is resolved. Values are JSON; a value's hash is its compact text, as Kafka hashes
bytes. Which messages a change sends is a table, so that it can be read beside the one it comes from: KIP-213
and KIP-962 as Kafka Streams 4.3.1 implements them. Timestamps are left out: a plain table ignores them. So is
one accident of Kafka's wire format, in which a right value of no bytes at all comes back as null.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

How = Literal["inner", "left"]
Value = Mapping[str, Any]


class Instruction(StrEnum):
    """What a subscription tells the right side, by its effect there."""

    DELETE_NO = "DELETE_KEY_NO_PROPAGATE"
    DELETE_AND = "DELETE_KEY_AND_PROPAGATE"
    NULL_IF_NO = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    ONLY_IF = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"


@dataclass(frozen=True)
class Subscription:
    """A message to the right side; `hash` is that of the new left value, None for a deleted row."""

    foreign_key: str | None
    primary_key: str
    hash: str | None
    instruction: Instruction


@dataclass(frozen=True)
class Response:
    """A message back to the left side, with the hash that its subscription carried."""

    primary_key: str
    hash: str | None
    right: Any


@dataclass(frozen=True)
class Emission:
    """A result: the joined value, or None for a tombstone."""

    key: str
    value: Value | None


Side = Literal["absent", "null", "key"]
Move = tuple[Side, Side | Literal["same", "other"]]
Target = Literal["old", "new", "null"]
Sends = tuple[tuple[Target, Instruction], ...]

_DELETE_NO, _DELETE_AND, _NULL_IF_NO, _ONLY_IF = Instruction
_TO_NULL: Sends = (("null", _NULL_IF_NO),)
_MOVES: Sends = (("old", _DELETE_NO), ("new", _NULL_IF_NO))
_LEAVES: Sends = (("old", _DELETE_NO), ("null", _NULL_IF_NO))

INSTRUCTIONS: Mapping[Move, Mapping[How, Sends]] = {
    # foreign key of the stored row -> of the new one: absent = no row, null = a row without foreign key
    ("absent", "key"): {"inner": (("new", _ONLY_IF),), "left": (("new", _NULL_IF_NO),)},
    ("absent", "null"): {"inner": (), "left": _TO_NULL},
    ("key", "same"): {"inner": (("new", _ONLY_IF),), "left": (("new", _NULL_IF_NO),)},
    ("key", "other"): {"inner": _MOVES, "left": _MOVES},
    ("key", "null"): {"inner": (("old", _DELETE_AND),), "left": _LEAVES},
    ("null", "key"): {"inner": (("new", _ONLY_IF),), "left": (("new", _NULL_IF_NO),)},
    ("null", "null"): {"inner": (), "left": _TO_NULL},
    ("key", "absent"): {"inner": (("old", _DELETE_AND),), "left": _LEAVES},
    ("null", "absent"): {"inner": (), "left": _TO_NULL},
    ("absent", "absent"): {"inner": (), "left": ()},
}


def value_hash(value: Value | None) -> str | None:
    """The text that stands for Kafka's hash of the serialized value; None for an absent row."""
    return None if value is None else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class ForeignKeyJoin:
    """The foreign-key join of two tables, with every message it has sent in its two logs."""

    def __init__(self, how: How, foreign_key: Callable[[Value], str | None]) -> None:
        self.how: How = how
        self.foreign_key = foreign_key
        self.left: dict[str, Value] = {}
        self.right: dict[str, Any] = {}
        self.store: dict[tuple[str, str], str | None] = {}
        self.subscription_log: list[Subscription] = []
        self.response_log: list[Response] = []

    def change_left(self, key: str | None, value: Value | None) -> list[Emission]:
        """Take a left record (value None: delete; key None: dropped) and return what is emitted for it."""
        if key is None:
            return []
        messages = self.send(key, self.left.get(key), value)
        _put(self.left, key, value)
        self.subscription_log += messages
        return [emission for message in messages for emission in self.deliver_subscription(message)]

    def change_right(self, key: str | None, value: Any) -> list[Emission]:
        """Take a right record (value None: delete) and return what its subscribers emit for it."""
        if key is None:
            return []
        _put(self.right, key, value)
        subscribers = [(pk, hashed) for (fk, pk), hashed in sorted(self.store.items()) if fk == key]
        responses = [Response(pk, hashed, value) for pk, hashed in subscribers]
        self.response_log += responses
        return [emission for response in responses for emission in self.deliver_response(response)]

    def send(self, key: str, old: Value | None, new: Value | None) -> list[Subscription]:
        """Return the subscriptions that a change of the left row from `old` to `new` sends."""
        old_key, new_key = (None if row is None else self.foreign_key(row) for row in (old, new))
        before, after = _side(old, old_key), _side(new, new_key)
        move: Move = (before, after)
        if before == after == "key":
            move = ("key", "same" if old_key == new_key else "other")
        targets = {"old": old_key, "new": new_key, "null": None}
        return [
            Subscription(targets[target], key, value_hash(new), instruction)
            for target, instruction in INSTRUCTIONS[move][self.how]
        ]

    def deliver_subscription(self, message: Subscription) -> list[Emission]:
        """Receive a subscription, on time or late: store or remove it, answer it, resolve the answer."""
        deletes = message.instruction in (Instruction.DELETE_NO, Instruction.DELETE_AND)
        right = None
        if message.foreign_key is not None:
            combined_key = (message.foreign_key, message.primary_key)
            if deletes:
                self.store.pop(combined_key, None)
            else:
                self.store[combined_key] = message.hash
                right = self.right.get(message.foreign_key)
        if message.instruction == Instruction.DELETE_NO:
            return []
        if message.instruction == Instruction.ONLY_IF and right is None:
            return []
        response = Response(message.primary_key, message.hash, right)
        self.response_log.append(response)
        return self.deliver_response(response)

    def deliver_response(self, response: Response) -> list[Emission]:
        """Resolve a response, on time or late: dropped unless its hash is that of the current left value."""
        left = self.left.get(response.primary_key)
        if response.hash != value_hash(left):
            return []
        if left is None or (self.how == "inner" and response.right is None):
            return [Emission(response.primary_key, None)]
        return [Emission(response.primary_key, {"left": left, "right": response.right})]


class JoinOverJoin:
    """A foreign-key join whose left side is the result of another: it consumes that one's emissions."""

    def __init__(self, first: ForeignKeyJoin, second: ForeignKeyJoin) -> None:
        self.first = first
        self.second = second

    def change_left(self, key: str | None, value: Value | None) -> list[Emission]:
        """Take a record of the first join's left table."""
        return self._pass_on(self.first.change_left(key, value))

    def change_right(self, key: str | None, value: Any) -> list[Emission]:
        """Take a record of the first join's right table."""
        return self._pass_on(self.first.change_right(key, value))

    def change_right2(self, key: str | None, value: Any) -> list[Emission]:
        """Take a record of the second join's right table."""
        return self.second.change_right(key, value)

    def _pass_on(self, emissions: list[Emission]) -> list[Emission]:
        return [result for e in emissions for result in self.second.change_left(e.key, e.value)]


def fold(emissions: list[Emission]) -> dict[str, Value]:
    """Return the table that the emissions amount to."""
    table: dict[str, Value] = {}
    for emission in emissions:
        _put(table, emission.key, emission.value)
    return table


def _put(table: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _side(row: Value | None, foreign_key: str | None) -> Side:
    if row is None:
        return "absent"
    return "null" if foreign_key is None else "key"
