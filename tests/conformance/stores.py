"""Runs the cases of the state stores, event by event, and compares every result.

One key, and keys without times: in exact order. Several keys with times: sorted before the comparison, for Kafka's own
stores order them differently; ours go by key, then by time. A memory store's results are compared sorted, too, and its
errors that the persistent store would not raise are empty results there. Two answers of the persistent store are not
compared: its count of entries, an estimate of RocksDB's, and its refusal to find sessions by their end. Run per event,
each put is a commit; else those between two queries are one put of a frame, of which a versioned store tells how many
rows it refused.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from conformance.case import Batches, Case, Event, to_json
from conformance.store_calls import CALLS, MILLISECOND, REFUSED, time_of
from lakejoin.storage.stores.errors import NullKey, WrongRange
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.write.layout import TIMES, Kind

KINDS: Mapping[str, Kind] = {
    "kv-range": "key-value",
    "window": "window",
    "session": "session",
    "versioned-kv": "versioned",
}
"""Topologies, and the stores that they are run on."""
_DAY_MS = 86_400_000
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
        int(case.options.get(name, default)) * MILLISECOND,
        int(case.options.get("window-ms", 10)) * MILLISECOND,
        str(case.options.get("retain-duplicates", "false")).lower() == "true",
    )


def run_stores(cases: Sequence[Case], batches: Batches, folder: Path, spark: SparkSession) -> dict[str, str]:
    """Run the cases on stores below a folder, each on its own; return the first difference of each that failed."""
    framed = None if batches.kind == "per-event" else partial(put_frame, spark)
    failures = {}
    for case in cases:
        end = min(len(case.events), batches.steps) if framed is None else len(case.events)
        make = partial(_make, spark, str(folder / case.name))
        if (difference := run_store(case, end, make, framed)) is not None:
            failures[case.name] = difference
    return failures


def run_store(
    case: Case, end: int, make: Callable[[Settings], Any], framed: Callable[..., int] | None = None
) -> str | None:
    """Run the first events of a case on a store that `make` makes; return the first difference, if there is one.

    `framed`: puts events together and returns how many were refused; None puts each alone.
    """
    settings = settings_of(case)
    store, answers = make(settings), _expected(case)
    waiting: list[int] = []
    for i, event in enumerate([*case.events[:end], {"op": "end"}]):
        if framed is not None and _can_wait(event) and answers.get(i) != _DIES:
            waiting.append(i)
            continue
        if framed is not None and waiting:
            refused = framed(store, settings.kind, [case.events[n] for n in waiting])
            if refused != sum(answers.get(n) == REFUSED for n in waiting):
                return f"events {waiting[0]} to {waiting[-1]}: {refused} were refused together, others one by one"
            waiting = []
        if event["op"] == "end":
            break
        found, expected = _answer(store, settings.kind, event), answers.get(i)
        if _normal(case, event, expected) != _normal(case, event, found):
            return f"event {i} {to_json(event)}: expected {to_json(expected)}, got {to_json(found)}"
    return None


def put_frame(spark: SparkSession, store: Any, kind: Kind, events: Sequence[Event]) -> int:
    """Put events as a frame whose rows have a number; return how many were refused."""
    rows = [
        (*row, number) for number, row in enumerate(row for event in events for row in _rows(kind, event))
    ]
    times = [f"{name} timestamp" for name in TIMES[kind]]
    schema = ", ".join(["key string", *times, "value string", "number bigint"])
    # backwards: the order is that of the numbers, not that of the frame
    found = store.put_all(spark.createDataFrame(rows[::-1], schema), order="number")
    return 0 if found is None else int(found.expired)


def _rows(kind: Kind, event: Event) -> Iterator[tuple[Any, ...]]:
    """An event as rows of a put."""
    if event["op"] == "putAll":
        yield from event["entries"]
        return
    names = {"valid_from": "ts"}
    times = [time_of(event[names.get(name, name)]) for name in TIMES[kind]]
    yield (event["key"], *times, event.get("value"))


def _can_wait(event: Event) -> bool:
    """Whether an event can be put together with those after it: its own answer is not needed before."""
    return event["op"] in ("put", "putAll", "remove")


def _make(spark: SparkSession, path: str, settings: Settings) -> Any:
    text = StructType().add("key", StringType()), StructType().add("value", StringType())
    match settings.kind:
        case "window":
            return WindowStore.create(
                spark, path, *text, window=settings.window, retention=settings.retention,
                duplicates=settings.duplicates,
            )  # fmt: skip
        case "session":
            return SessionStore.create(spark, path, *text, retention=settings.retention)
        case "versioned":
            return VersionedKeyValueStore.create(spark, path, *text, history_retention=settings.retention)
    return KeyValueStore.create(spark, path, *text)


def _expected(case: Case) -> dict[int, Any]:
    """What Kafka answered each event, an error as its name."""
    return {line["i"]: _DIES if "error" in line else line["result"] for line in case.expected}


def _answer(store: Any, kind: Kind, event: Event) -> Any:
    try:
        return CALLS[kind](store, event)
    except (NullKey, WrongRange):
        return _DIES


def _normal(case: Case, event: Event, result: Any) -> Any:
    """A result as it is compared."""
    in_memory = case.options.get("store") == "memory"
    if not in_memory and event["op"] in ("count", "findSessionsByEnd"):
        return None
    if result == _DIES:
        nulls = (event.get("key", ""), event.get("prefix", ""), *[key for key, _ in event.get("entries", ())])
        null = None in nulls
        return _DIES if null else [] if in_memory else _DIES
    several = event.get("key") is None and case.topology != "kv-range"
    if isinstance(result, list) and (in_memory or several):
        return sorted(map(to_json, result))
    return result
