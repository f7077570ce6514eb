"""Runs cases that deliver internal messages late against the transforms: no source could hold those.

All cases of one kind of join run side by side, their t-th events in step t. What a left change sends must
be the subscriptions of the case's trace, what is answered its responses, and what is emitted for them
Kafka's emissions. A replay takes the n-th message of its topic as it was, hash and right version included,
and delivers it again.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Row, SparkSession

from conformance.case import Case, Emission, expected_emissions, first_difference, sorted_emissions, text
from conformance.steps import Key, Steps, Version
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.model.schemas import BATCH
from lakejoin.transforms.model.specs import How

Message = tuple[Any, ...]


@dataclass
class _History:
    """What one case has sent, answered and emitted, by event and overall."""

    case: Case
    subscriptions: list[Row] = field(default_factory=list)
    responses: list[Row] = field(default_factory=list)
    sent: defaultdict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    answered: defaultdict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    emitted: defaultdict[int, list[Emission]] = field(default_factory=lambda: defaultdict(list))

    def event(self, t: int) -> Mapping[str, Any]:
        """The event of step t; none after the last."""
        return self.case.events[t] if t < len(self.case.events) else {"side": "none"}

    def is_late(self, t: int, topic: str) -> bool:
        """True if step t delivers a message of the topic again."""
        return self.event(t).get("topic") == topic

    def right_value(self, response: Row) -> str | None:
        """The right value that a response carries, by the version it names."""
        if response.right_hash is None:
            return None
        return text(self.case.events[response.right_position.line]["value"])

    def send(self, t: int, message: Row) -> None:
        """Note a subscription as the trace has it."""
        foreign_key = message.foreign_key and message.foreign_key.key
        self.subscriptions.append(message)
        self.sent[t].append((foreign_key, message.primary_key.key, message.instruction, message.hash is None))

    def answer(self, t: int, response: Row) -> None:
        """Note a response as the trace has it."""
        self.responses.append(response)
        self.answered[t].append((response.primary_key.key, self.right_value(response), response.hash is None))

    def difference(self) -> str | None:
        """Say where the case first differs from Kafka: its messages, then its emissions."""
        end = len(self.case.events)
        emitted = [sorted_emissions(self.emitted[t]) for t in range(end)]
        return (
            self._message_difference("subscription", ("fk", "pk", "instruction", "hash_null"), self.sent)
            or self._message_difference("response", ("pk", "right", "hash_null"), self.answered)
            or first_difference(expected_emissions(self.case, end), emitted)
        )

    def _message_difference(
        self, topic: str, members: Sequence[str], got: Mapping[int, Sequence[Message]]
    ) -> str | None:
        for t in range(len(self.case.events)):
            lines = [line for line in self.case.trace if (line["trace"], line["i"]) == (topic, t)]
            wanted = sorted((tuple(line[m] for m in members) for line in lines), key=repr)
            found = sorted(got.get(t, ()), key=repr)
            if wanted != found:
                return f"event {t}: expected {topic} messages {wanted}, got {found}"
        return None


def run_replays(cases: Sequence[Case], spark: SparkSession) -> dict[str, str]:
    """Run the cases and return the first difference of each that failed, by its name."""
    failures: dict[str, str] = {}
    hows: tuple[How, ...] = ("inner", "left")
    for how in hows:
        histories = {case.name: _History(case) for case in cases if case.how == how}
        if histories:
            _run(histories, Steps(spark, how))
        differences = {name: history.difference() for name, history in histories.items()}
        failures |= {name: difference for name, difference in differences.items() if difference is not None}
    return failures


def _run(histories: Mapping[str, _History], steps: Steps) -> None:
    left: dict[Key, Version] = {}
    right: dict[Key, Version] = {}
    log: list[Row] = []
    for t in range(max(len(history.case.events) for history in histories.values())):
        changed_left, changed_right = _changed(histories, "left", t), _changed(histories, "right", t)
        before = {key: version for key, version in left.items() if key in changed_left}
        left |= changed_left
        right |= changed_right

        messages = steps.send(before, changed_left, t)
        for message in messages:
            histories[message.primary_key.case_id].send(t, message)
        late = [h.subscriptions[h.event(t)["n"]] for h in histories.values() if h.is_late(t, "subscription")]
        # a late message is the newest that the store gets
        messages += [Row(**{**message.asDict(), BATCH: t}) for message in late]
        log += messages

        responses = steps.answer(messages, log, right, changed_right)
        for response in responses:
            histories[response.primary_key.case_id].answer(t, response)
        late = [h.responses[h.event(t)["n"]] for h in histories.values() if h.is_late(t, "response")]
        carried = right | _carried(histories, late)
        for row in steps.resolve([*responses, *late], left, carried):
            histories[row["case_id"]].emitted[t].append((row["key"], _value(row)))


def _changed(histories: Mapping[str, _History], side: str, t: int) -> dict[Key, Version]:
    changed = {}
    for name, history in histories.items():
        event = history.event(t)
        if event["side"] == side:
            value = event["value"]
            members = [value.get("fk"), value.get("v")] if side == "left" and value else [value]
            values = None if value is None else tuple(text(member) for member in members)
            changed[name, event["key"]] = Version(values, t)
    return changed


def _carried(histories: Mapping[str, _History], late: Sequence[Row]) -> dict[Key, Version]:
    """The right rows that late responses carry: what they were when the answer was given."""
    return {
        (r.foreign_key.case_id, r.foreign_key.key): Version(
            (histories[r.foreign_key.case_id].right_value(r),), r.right_position.line
        )
        for r in late
        if r.right_hash is not None
    }


def _value(row: Row) -> Any:
    if row[TOMBSTONE]:
        return None
    return {"left": {"fk": row["fk"], "fk2": None, "v": row["v"]}, "right": row["right_value"]}
