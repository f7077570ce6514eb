"""The operations of the cases as calls of our stores, and what they return as the cases write it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from conformance.case import Event
from lakejoin.storage.stores.write.layout import Kind

REFUSED = -9223372036854775808
"""What Kafka returns for a version that is older than the retention."""
MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = -1


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
    times = [time_of(event.get(name)) for name in ("timeFrom", "timeTo")]
    match event["op"]:
        case "put":
            return store.put(key, event["value"], time_of(event["start"]))
        case "get":
            return store.fetch_one(key, time_of(event["start"]))
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
    key = event.get("key")
    session = [time_of(event.get(name)) for name in ("start", "end")]
    ends = [time_of(event.get(name)) for name in ("earliestEnd", "latestStart")]
    between = [time_of(event.get(name)) for name in ("endFrom", "endTo")]
    keys = [event.get(name) for name in ("from", "to")]
    one = "key" in event
    calls: Mapping[str, tuple[str, list[Any]]] = {
        "put": ("put", [key, *session, event.get("value")]),
        "remove": ("remove", [key, *session]),
        "fetchSession": ("fetch_session", [key, *session]),
        "fetch": ("fetch", [key]) if one else ("fetch_range", keys),
        "findSessions": ("find_sessions", [key, *ends]) if one else ("find_sessions_range", [*keys, *ends]),
        "findSessionsByEnd": ("find_sessions_by_end", between),
    }
    name, arguments = calls[event["op"]]
    found = getattr(store, f"backward_{name}" if event.get("reverse") else name)(*arguments)
    return list(_windowed(found)) if isinstance(found, Iterator) else found


def _versioned(store: Any, event: Event) -> Any:
    key = event["key"]
    match event["op"]:
        case "put":
            put = store.put(key, event["value"], time_of(event["ts"]))
            if not put.accepted:
                return REFUSED
            return _LATEST if put.valid_to is None else _ms(put.valid_to)
        case "delete":
            return _version(store.delete(key, time_of(event["ts"])))
        case "get":
            as_of = event.get("asOf")
            return _version(store.get(key) if as_of is None else store.get_as_of(key, time_of(as_of)))
    listed = store.backward_versions if event.get("reverse") else store.versions
    versions = listed(key, time_of(event.get("from")), time_of(event.get("to")))
    return [{**_version(v), **({} if v.valid_to is None else {"validTo": _ms(v.valid_to)})} for v in versions]


def _windowed(rows: Iterator[Any]) -> Iterator[dict[str, Any]]:
    return ({"key": r.key, "start": _ms(r.start), "end": _ms(r.end), "value": r.value} for r in rows)


def _version(version: Any) -> dict[str, Any] | None:
    return None if version is None else {"value": version.value, "ts": _ms(version.valid_from)}


def time_of(ms: int | None) -> datetime | None:
    """Return the time that a case writes as milliseconds."""
    return None if ms is None else _EPOCH + ms * MILLISECOND


def _ms(time: datetime) -> int:
    return (time - _EPOCH) // MILLISECOND


CALLS: Mapping[Kind, Callable[[Any, Event], Any]] = {
    "key-value": _key_value,
    "window": _window,
    "session": _session,
    "versioned": _versioned,
}
"""Calls an operation on a store of each kind."""
