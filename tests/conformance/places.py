"""Where the cases go whose answers depend on event times: tables, streams and joins of one configuration.

A table's time and a stream's are kept over all their keys, so such a case has tables of its own. Cases with
the same events and history share them, such as the inner and the left join of a pair; so do all cases
without history and grace, told apart by their keys. A stream record is looked up by its key, which may be
null and come again: what identifies it is its number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from conformance.case import Case, to_json
from lakejoin.orchestration.config import ConfigurationError, load

_SHARED = "shared"
_TIME = {"type": "timestamp", "as": "millis"}
_VALUE: dict[str, Any] = {"case_id": "string", "key": "string", "value": "string", "ts": _TIME}
_COLUMNS: dict[str, dict[str, Any]] = {
    "left": {
        "case_id": "string",
        "key": "string",
        "fk": "string",
        "fk2": "string",
        "v": "string",
        "ts": _TIME,
    },
    "right": _VALUE,
    "stream": {"number": "bigint", **_VALUE},
    "table": _VALUE,
}
_REASONS = {
    "KTable must be versioned to use a grace period in a stream table join.": "grace: needs a versioned table",
    "History retention must be at least grace period.": "is longer than the history_retention",
}
"""What our own message has to say where Kafka's says this."""


@dataclass(frozen=True)
class Place:
    """Where a case's events lie, and which join answers it."""

    case: Case
    records: str
    """What its records bear as `case_id`."""
    pair: str
    """Name of its two tables, without their side."""
    join: str

    @property
    def sides(self) -> tuple[str, str]:
        """The sides that its events name."""
        return ("stream", "table") if self.case.is_stream else ("left", "right")

    def retention(self, side: str) -> int | None:
        """How far back the side's history goes; None for a side that keeps none."""
        options = self.case.options
        if self.case.is_stream:
            return options.get("history-ms") if side == "table" else None
        return options.get("history-ms", 1000) if side in options["versioned"].split(",") else None


def places_of(cases: Iterable[Case]) -> list[Place]:
    """Return where each case goes: together with those that can share its records."""
    found, owners = [], dict[str, str]()
    for case in cases:
        versioned, retention, grace = map(case.options.get, ("versioned", "history-ms", "grace-ms"))
        history = to_json([case.is_stream, versioned, retention, case.end, case.events])
        records = owners.setdefault(history, case.name)
        if versioned is retention is grace is None:
            found.append(Place(case, records, _SHARED, f"{_SHARED}_{case.how}"))
        else:
            found.append(Place(case, records, records.replace("-", "_"), case.name.replace("-", "_")))
    return found


def write_configuration(places: Sequence[Place], folder: Path) -> Path:
    """Write the configuration file that declares what the cases need; return its path."""
    sides = {f"{place.pair}_{side}": (place, side) for place in places for side in place.sides}
    inputs = {name: _input(place, side) for name, (place, side) in sides.items()}
    document = {
        "name": "timed",
        "lake": "./lake",
        "tables": {name: inputs[name] for name, (_, side) in sides.items() if side != "stream"},
        "streams": {name: inputs[name] for name, (_, side) in sides.items() if side == "stream"},
        "joins": {place.join: _join(place) for place in places},
    }
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def refusal_difference(case: Case, folder: Path) -> str | None:
    """Say what is wrong unless the case's configuration is refused for Kafka's reason."""
    message = next(line["message"] for line in case.expected if line["i"] == -1)
    expected = f"expected the configuration to be refused as in {message!r}"
    try:
        load(write_configuration(places_of([case]), folder))
    except ConfigurationError as error:
        return None if _REASONS[message] in str(error) else f"{expected}, got {error}"
    return f"{expected}, got no error"


def _input(place: Place, side: str) -> dict[str, Any]:
    retention, time = place.retention(side), {"event_time": "ts"}
    return {
        "source": {"format": "jsonl", "path": f"{place.pair}_{side}/{{date}}.jsonl"},
        "columns": _COLUMNS[side],
        "key": ["case_id", "number" if side == "stream" else "key"],
        **(time if side == "stream" or retention is not None else {}),
        **({} if retention is None else {"versioned": {"history_retention": f"{retention} milliseconds"}}),
    }


def _join(place: Place) -> dict[str, Any]:
    how = place.case.how
    left, right = (f"{place.pair}_{side}" for side in place.sides)
    if not place.case.is_stream:
        return {"left": left, "right": right, "foreign_key": ["case_id", "fk"], "how": how, "changelog": True}
    join = {"stream": left, "table": right, "foreign_key": ["case_id", "key"], "how": how}
    grace = place.case.options.get("grace-ms")
    return join if grace is None else {**join, "grace": f"{grace} milliseconds", "late": "join"}
