"""Event lists with times, as the conformance cases write them, run through the models of tables with history."""

from collections.abc import Iterable, Mapping
from typing import Any

from reference.stream_table_join import Joined, StreamRecord, StreamTableJoin
from reference.versioned_table import PlainTable, Version, VersionedTable

Event = Mapping[str, Any]
_REFUSED = -(2**63)
"""What Kafka's store returns for a record that is too old to be taken."""


class VersionedSides:
    """The sides of a foreign-key join that are versioned: they keep records that are out of order from it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Take the sides from `versioned` and their retention from `history-ms`, both as a case has them."""
        sides = [side for side in str(options.get("versioned", "")).split(",") if side]
        self._tables = {side: VersionedTable(int(options.get("history-ms", 1000))) for side in sides}

    def admit(self, event: Event) -> bool:
        """Take the event into its side's history, if it has one; return whether the join takes it, too."""
        table = self._tables.get(event["side"])
        if table is None or event["key"] is None:
            return True
        return table.put(event["key"], event["value"], event["ts"]) == "applied"


def run_stream_table(
    topology: str, options: Mapping[str, Any], events: Iterable[Event]
) -> list[list[Joined]]:
    """Return what each event emits; the topology is `stream-table-inner` or `stream-table-left`.

    Raises `ValueError` where such a join cannot be made.
    """
    history, grace = options.get("history-ms"), options.get("grace-ms")
    table = PlainTable() if history is None else VersionedTable(history)
    join = StreamTableJoin("left" if topology.endswith("-left") else "inner", table, grace)
    emitted = []
    for event in events:
        key, value, time = event["key"], event["value"], event["ts"]
        if event["side"] == "stream":
            emitted.append(join.take([StreamRecord(key, value, time)]))
        else:
            if key is not None:
                table.put(key, value, time)
            emitted.append([])
    return emitted


def operate(table: VersionedTable, operation: Event) -> Any:
    """Return what an operation on a versioned store answers, as the cases write it.

    Raises `ValueError` for a null key.
    """
    key = operation["key"]
    if key is None:
        raise ValueError("a key must not be null")
    match operation["op"]:
        case "put":
            verdict = table.put(key, operation["value"], operation["ts"])
            return _REFUSED if verdict == "expired" else _valid_to(table, key, operation["ts"])
        case "delete":
            before = table.get(key, operation["ts"])
            expired = table.put(key, None, operation["ts"]) == "expired"
            return None if expired else _shown(before)
        case "get":
            return _shown(table.get(key, operation.get("asOf")))
        case "versions":
            found = table.between(key, operation.get("from"), operation.get("to"))
            return [
                {
                    **(_shown(version) or {}),
                    **({} if version.valid_to is None else {"validTo": version.valid_to}),
                }
                for version in (reversed(found) if operation.get("reverse") else found)
            ]
        case op:
            raise ValueError(f"operation {op!r}: a versioned store has put, delete, get and versions")


def _valid_to(table: VersionedTable, key: Any, time: int) -> int:
    """Until when the version that was put is valid; -1 if it is the key's latest."""
    valid_to = next(version.valid_to for version in table.versions(key) if version.valid_from == time)
    return -1 if valid_to is None else valid_to


def _shown(version: Version | None) -> dict[str, Any] | None:
    return None if version is None else {"value": version.value, "ts": version.valid_from}
