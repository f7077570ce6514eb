"""Conformance cases: read from files, skipped with a reason, cut into batches, and what they expect."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from lakejoin.transforms.model.specs import How

Event = Mapping[str, Any]
Emission = tuple[str, Any]
"""Key and value, None for a tombstone."""

MEMBERS = ("fk", "fk2", "v")
"""Members of a left value that the runner's tables have a column for."""
RANDOM_BATCHES = 6
"""How many batches `random` cuts a case into; some may be empty."""

_JOINS = ("fk-inner", "fk-left", "fk-inner-table", "fk-left-table", "fk-chain")
_STREAM_JOINS = ("stream-table-inner", "stream-table-left")
STORES = ("kv-range", "window", "session", "versioned-kv")
"""Topologies that are a store and what is asked of it."""
_OPTIONS_OF_STORES = ("store", "retention-ms", "window-ms", "retain-duplicates", "history-ms", "segment-ms")
_OPTIONS_OF_JOINS = ("versioned", "history-ms", "grace-ms", "first", "second", "store", "trace", "segment-ms")
"""The last three have no effect."""


@dataclass(frozen=True)
class Case:
    """An event list and what Kafka Streams answered."""

    name: str
    topology: str
    options: Mapping[str, Any]
    events: Sequence[Event]
    expected: Sequence[Mapping[str, Any]]
    trace: Sequence[Mapping[str, Any]]

    @property
    def replays(self) -> bool:
        """True if internal messages are delivered late: no source can hold those."""
        return any(event.get("side") == "replay" for event in self.events)

    @property
    def how(self) -> How:
        """How its join joins, by the word in the middle or at the end of its topology; of a chain, the first join."""
        if self.topology == "fk-chain":
            first: How = self.options["first"]
            return first
        return "left" if "left" in self.topology.split("-") else "inner"

    @property
    def is_table(self) -> bool:
        """True if only the final table is expected."""
        return self.topology.endswith("-table")

    @property
    def is_stream(self) -> bool:
        """True if a stream is joined with a table."""
        return self.topology in _STREAM_JOINS

    @property
    def is_timed(self) -> bool:
        """True if event times have a say in what is answered."""
        return self.is_stream or "versioned" in self.options

    @property
    def is_refused(self) -> bool:
        """True if Kafka would not even build the join."""
        return any(line.get("i") == -1 for line in self.expected)

    @property
    def end(self) -> int:
        """Number of events up to which Kafka answered: it ends where it died of one."""
        return min([line["i"] for line in self.expected if "error" in line], default=len(self.events))


@dataclass(frozen=True)
class Batches:
    """How the events are cut into batches."""

    kind: Literal["per-event", "one", "random"]
    seed: int = 0
    steps: int = 40
    """Events after which `per-event` ends."""

    def cut(self, case: Case) -> list[int]:
        """Return the batch of each event of the case that is run, from 0, never falling."""
        if self.kind == "per-event":
            return list(range(min(len(case.events), self.steps)))
        if self.kind == "one":
            return [0] * case.end
        chance = random.Random(f"{self.seed}/{case.name}")
        return sorted(chance.randrange(RANDOM_BATCHES) for _ in range(case.end))


def load_cases(folder: Path, only: str = "*") -> list[Case]:
    """Read the cases of a folder whose names match. Raises `FileNotFoundError` where there is none."""
    return [read_case(path) for path in case_paths(folder, only)]


def case_paths(folder: Path, only: str) -> list[Path]:
    """Return the files of the cases whose names match. Raises `FileNotFoundError` where there is none."""
    paths = sorted(path for path in folder.glob("*.json") if fnmatchcase(path.stem, only))
    if not paths:
        raise FileNotFoundError(f"no case in {folder} matches {only!r}: expected files NAME.json")
    return paths


def read_case(path: Path) -> Case:
    """Read a case from its file."""
    found = json.loads(path.read_text("utf-8"))
    return Case(
        name=found["name"],
        topology=found["topology"],
        options=found["options"],
        events=found["events"],
        expected=found["expected"],
        trace=found.get("trace", ()),
    )


def skip_reason(case: Case, batches: Batches) -> str | None:
    """Say why the case cannot be run, None if it can."""
    return _unknown_part(case) or _unfit_batches(case, batches)


def _unknown_part(case: Case) -> str | None:
    """What of the case no part of the runner knows."""
    if case.topology not in (*_JOINS, *_STREAM_JOINS, *STORES):
        return f"topology {case.topology} is unknown"
    known = _OPTIONS_OF_STORES if case.topology in STORES else _OPTIONS_OF_JOINS
    if unknown := [option for option in case.options if option not in known]:
        return f"option {unknown[0]} is unknown"
    lefts = [event.get("value") for event in case.events if event.get("side") == "left"]
    members = {member for value in lefts if value is not None for member in value} - set(MEMBERS)
    return f"no column for member {min(members)} of the left value" if members else None


def _unfit_batches(case: Case, batches: Batches) -> str | None:
    """Why the case has no answer to this cut of its events."""
    if case.is_stream and not case.is_refused and batches.kind != "per-event":
        return "other cuts change what a stream's records find: run it per event"
    if case.is_table and batches.kind == "per-event" and len(case.events) > batches.steps:
        return (
            f"only the final table is expected, after more than {batches.steps} events: run it in one batch"
        )
    return None


def text(value: Any) -> str | None:
    """A key or a right value as the topic holds it: text as it is, anything else as JSON."""
    return value if value is None or isinstance(value, str) else to_json(value)


def to_json(value: Any) -> str:
    """Compact JSON, with everything outside ASCII escaped."""
    return json.dumps(value, separators=(",", ":"))


def normal(value: Any) -> Any:
    """A joined value without what is not compared: absent members are null, the order of members is free."""
    if value is None:
        return None
    left: Mapping[str, Any] = value["left"]
    if "left" in left:
        return {"left": normal(left), "right": value["right"]}
    members = {name: left.get(name) for name in MEMBERS}
    members |= {name: text(members[name]) for name in ("fk", "fk2")}
    return {"left": members, "right": value["right"]}


def expected_emissions(case: Case, end: int) -> list[list[Emission]]:
    """Return the expected emissions of each event before `end`, sorted by key."""
    emitted: list[list[Emission]] = [[] for _ in range(end)]
    for line in case.expected:
        if line["i"] < end:
            emitted[line["i"]].append((line["key"], normal(line["value"])))
    return [sorted(emissions, key=_key) for emissions in emitted]


def expected_table(case: Case, end: int) -> dict[str, Any]:
    """Return the table after the events before `end`."""
    if case.is_table:
        return {line["key"]: normal(line["value"]) for line in case.expected}
    table = {key: value for emissions in expected_emissions(case, end) for key, value in emissions}
    return {key: value for key, value in table.items() if value is not None}


def sorted_emissions(emissions: Sequence[Emission]) -> list[Emission]:
    """The emissions of one event in the order in which they are compared."""
    return sorted(emissions, key=_key)


def first_difference(expected: Sequence[Sequence[Emission]], got: Sequence[Sequence[Emission]]) -> str | None:
    """Say what the first event with other emissions than expected emitted, None if there is none."""
    for i, (wanted, found) in enumerate(zip(expected, got, strict=True)):
        if wanted != found:
            return f"event {i}: expected {_shown(wanted)}, got {_shown(found)}"
    return None


def table_difference(expected: Mapping[str, Any], got: Mapping[str, Any]) -> str | None:
    """Say what the first key with another row than expected holds, None if there is none."""
    for key in sorted(expected.keys() | got.keys()):
        if expected.get(key) != got.get(key):
            return f"final row of {key!r}: expected {_row(expected.get(key))}, got {_row(got.get(key))}"
    return None


def _key(emission: Emission) -> str:
    return emission[0]


def _row(value: Any) -> str:
    return "none" if value is None else to_json(value)


def _shown(emissions: Sequence[Emission]) -> str:
    if not emissions:
        return "nothing"
    return ", ".join(f"{key}={'tombstone' if value is None else to_json(value)}" for key, value in emissions)
