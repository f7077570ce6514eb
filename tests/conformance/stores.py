"""Runs the cases of the state stores, event by event, and compares every result.

One key: in exact order. Several keys: sorted before the comparison, for Kafka's own stores order them differently; ours
go by key, then by time. A memory store's results are compared sorted, too, and its errors that the persistent store
would not raise are empty results there. Puts between two queries are one put of a frame unless they are run per event.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.case import Case, Event, to_json
from storage.stores.errors import NullKey
from storage.stores.layout import Kind

KINDS: Mapping[str, Kind] = {
    "kv-range": "key-value",
    "window": "window",
    "session": "session",
    "versioned-kv": "versioned",
}
"""Topologies, and the stores that they are run on."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY_MS = 86_400_000
_REFUSED, _LATEST = -9223372036854775808, -1
_ONE_KEY = ("get", "fetchSession", "versions", "put", "delete", "putIfAbsent")
_DIES = "error"


@dataclass(frozen=True)
class Settings:
    """How a case's store is made."""

    kind: Kind
    retention: timedelta
    window: timedelta
    duplicates: bool


def settings_of(case: Case) -> Settings:
    """Take the settings of a store from a case's options, or their defaults."""
    kind = KINDS[case.topology]
    name, default = ("history-ms", 1000) if kind == "versioned" else ("retention-ms", _DAY_MS)
    return Settings(
        kind,
        int(case.options.get(name, default)) * _MILLISECOND,
        int(case.options.get("window-ms", 10)) * _MILLISECOND,
        str(case.options.get("retain-duplicates", "false")).lower() == "true",
    )


def run_store(case: Case, end: int, make: Callable[[Settings], Any]) -> str | None:
    """Run the first events of a case on a store that `make` makes; return the first difference, if there is one."""
    settings = settings_of(case)
    store = make(settings)
    answers = _expected(case)
    for i, event in enumerate(case.events[:end]):
        found = _answer(store, settings.kind, event)
        expected = answers.get(i)
        if _normal(case, event, expected) != _normal(case, event, found):
            return f"event {i} {to_json(event)}: expected {to_json(expected)}, got {to_json(found)}"
    return None


def _expected(case: Case) -> dict[int, Any]:
    """What Kafka answered each event, an error as its name."""
    return {line["i"]: _DIES if "error" in line else line["result"] for line in case.expected}


def _answer(store: Any, kind: Kind, event: Event) -> Any:
    try:
        return _CALLS[kind](store, event)
    except NullKey:
        return _DIES


def _normal(case: Case, event: Event, result: Any) -> Any:
    """A result as it is compared."""
    in_memory = case.options.get("store") == "memory"
    if result == _DIES:
        null = event.get("key", "") is None or any(key is None for key, _ in event.get("entries", ()))
        return _DIES if null else [] if in_memory else _DIES
    if isinstance(result, list) and (in_memory or event.get("key") is None):
        return sorted(map(to_json, result))
    return result


def _key_value(store: Any, event: Event) -> Any:
    calls: Mapping[str, Callable[[], Any]] = {
        "put": lambda: store.put(event["key"], event["value"]),
        "putIfAbsent": lambda: store.put_if_absent(event["key"], event["value"]),
        "putAll": lambda: store.put_all([(key, value) for key, value in event["entries"]]),
        "delete": lambda: store.delete(event["key"]),
        "get": lambda: store.get(event["key"]),
        "count": store.approximate_num_entries,
        "range": lambda: store.range(event["from"], event["to"]),
        "range backwards": lambda: store.reverse_range(event["from"], event["to"]),
        "prefixScan": lambda: store.prefix_scan(event["prefix"]),
        "all": store.all,
        "all backwards": store.reverse_all,
    }
    found = calls[event["op"] + (" backwards" if event.get("reverse") else "")]()
    return [{"key": row.key, "value": row.value} for row in found] if isinstance(found, Iterator) else found


def _window(store: Any, event: Event) -> Any:
    backwards, key = bool(event.get("reverse")), event.get("key")
    times = [_time(event.get(name)) for name in ("timeFrom", "timeTo")]
    match event["op"]:
        case "put":
            return store.put(key, event["value"], _time(event["start"]))
        case "get":
            return store.fetch_one(key, _time(event["start"]))
        case "fetch":
            found = (store.backward_fetch if backwards else store.fetch)(key, *times)
            return [{"start": _ms(row.start), "value": row.value} for row in found]
        case "fetchRange":
            fetch = store.backward_fetch_range if backwards else store.fetch_range
            return list(_windowed(fetch(event["from"], event["to"], *times)))
        case "fetchAll":
            return list(_windowed((store.backward_fetch_all if backwards else store.fetch_all)(*times)))
    return list(_windowed(store.backward_all() if backwards else store.all()))


def _session(store: Any, event: Event) -> Any:
    backwards, key = "backward_" if event.get("reverse") else "", event.get("key")
    ends = [_time(event.get(name)) for name in ("earliestEnd", "latestStart")]
    session = [_time(event.get(name)) for name in ("start", "end")]
    match event["op"]:
        case "put":
            return store.put(key, *session, event["value"])
        case "remove":
            return store.remove(key, *session)
        case "fetchSession":
            return store.fetch_session(key, *session)
        case "fetch" if "key" in event:
            found = getattr(store, f"{backwards}fetch")(key)
        case "fetch":
            found = getattr(store, f"{backwards}fetch_range")(event["from"], event["to"])
        case "findSessions" if "key" in event:
            found = getattr(store, f"{backwards}find_sessions")(key, *ends)
        case "findSessions":
            found = getattr(store, f"{backwards}find_sessions_range")(event["from"], event["to"], *ends)
    return list(_windowed(found))


def _versioned(store: Any, event: Event) -> Any:
    key = event["key"]
    match event["op"]:
        case "put":
            put = store.put(key, event["value"], _time(event["ts"]))
            if not put.accepted:
                return _REFUSED
            return _LATEST if put.valid_to is None else _ms(put.valid_to)
        case "delete":
            return _version(store.delete(key, _time(event["ts"])))
        case "get":
            as_of = event.get("asOf")
            return _version(store.get(key) if as_of is None else store.get_as_of(key, _time(as_of)))
    listed = store.backward_versions if event.get("reverse") else store.versions
    versions = listed(key, _time(event.get("from")), _time(event.get("to")))
    return [{**_version(v), **({} if v.valid_to is None else {"validTo": _ms(v.valid_to)})} for v in versions]


_CALLS: Mapping[Kind, Callable[[Any, Event], Any]] = {
    "key-value": _key_value,
    "window": _window,
    "session": _session,
    "versioned": _versioned,
}


def _windowed(rows: Iterator[Any]) -> Iterator[dict[str, Any]]:
    return ({"key": r.key, "start": _ms(r.start), "end": _ms(r.end), "value": r.value} for r in rows)


def _version(version: Any) -> dict[str, Any] | None:
    return None if version is None else {"value": version.value, "ts": _ms(version.valid_from)}


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else _EPOCH + ms * _MILLISECOND


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // _MILLISECOND
