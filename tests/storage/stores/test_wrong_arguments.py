"""What each method of each store says to each argument that cannot be right.

A null is refused as Kafka refuses it, with an error of its own name (there a NullPointerException). None is no bound
where Kafka takes a null for an open end: keys of ranges (KIP-763, KIP-766), and here times as well.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from inspect import getattr_static
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from lakejoin.orchestration.config import load
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.stores.errors import (
    NullKey,
    StoreError,
    StoreReadOnly,
    StoreUnreadable,
    WrongKey,
    WrongRange,
)
from lakejoin.storage.stores.kinds.base import Store
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.pipeline.histories_and_streams import buffer_store, versioned_store
from lakejoin.storage.stores.pipeline.tables import joined_store, rows_store, subscription_store
from lakejoin.storage.stores.write.layout import Layout
from stores_without_spark import at, make_store

KEY, BOUND, PREFIX, TIME, LIMIT, VALUE, ENTRIES = (
    "key",
    "bound",
    "prefix",
    "time",
    "limit",
    "value",
    "entries",
)
"""What an argument is: None is an open end as a bound or limit, and an error as a key, prefix, time or entries."""

_READS = {
    KeyValueStore: {
        "get": (KEY,), "range": (BOUND, BOUND), "reverse_range": (BOUND, BOUND), "all": (), "reverse_all": (),
        "prefix_scan": (PREFIX,), "reverse_prefix_scan": (PREFIX,), "prefix_span": (PREFIX,),
        "approximate_num_entries": (),
    },
    WindowStore: {
        "fetch_one": (KEY, TIME), "all": (), "backward_all": (),
        **dict.fromkeys(("fetch", "backward_fetch"), (KEY, LIMIT, LIMIT)),
        **dict.fromkeys(("fetch_range", "backward_fetch_range"), (BOUND, BOUND, LIMIT, LIMIT)),
        **dict.fromkeys(("fetch_all", "backward_fetch_all"), (LIMIT, LIMIT)),
    },
    SessionStore: {
        "fetch_session": (KEY, TIME, TIME),
        **dict.fromkeys(("fetch", "backward_fetch"), (KEY,)),
        **dict.fromkeys(("fetch_range", "backward_fetch_range"), (BOUND, BOUND)),
        **dict.fromkeys(("find_sessions", "backward_find_sessions"), (KEY, LIMIT, LIMIT)),
        **dict.fromkeys(
            ("find_sessions_range", "backward_find_sessions_range"), (BOUND, BOUND, LIMIT, LIMIT)
        ),
        **dict.fromkeys(("find_sessions_by_end", "backward_find_sessions_by_end"), (LIMIT, LIMIT)),
    },
    VersionedKeyValueStore: {
        "get": (KEY,), "get_as_of": (KEY, TIME),
        **dict.fromkeys(("versions", "backward_versions"), (KEY, LIMIT, LIMIT)),
    },
}  # fmt: skip
_WRITES = {
    KeyValueStore: {
        "put": (KEY, VALUE), "put_if_absent": (KEY, VALUE), "delete": (KEY,), "put_all": (ENTRIES,), "compact": (),
    },
    WindowStore: {"put": (KEY, VALUE, TIME), "put_all": (ENTRIES,), "compact": ()},
    SessionStore: {
        "put": (KEY, TIME, TIME, VALUE), "remove": (KEY, TIME, TIME), "put_all": (ENTRIES,), "compact": (),
    },
    VersionedKeyValueStore: {
        "put": (KEY, VALUE, TIME), "delete": (KEY, TIME), "put_all": (ENTRIES,), "compact": (),
    },
}  # fmt: skip
_WHOLE_KEY = {
    "get",
    "get_as_of",
    "fetch",
    "fetch_one",
    "fetch_session",
    "find_sessions",
    "put",
    "delete",
    "remove",
}
_OPENING = {"create", "open", "reader"}
_MEMBERS = {
    KeyValueStore: (KEY, VALUE), WindowStore: (KEY, VALUE, TIME), SessionStore: (KEY, TIME, TIME, VALUE),
    VersionedKeyValueStore: (KEY, VALUE, TIME),
}  # fmt: skip


class Made(NamedTuple):
    """How a store that is asked is made, and keys and values that it could hold."""

    kind: type[Store]
    keys: Mapping[str, pa.DataType]
    key: Any
    value: Any


TEXT, PARTS = {"key": pa.string()}, {"name": pa.string(), "number": pa.int64()}
OWN = {
    "key-value": Made(KeyValueStore, TEXT, "a", "x"),
    "key-value of two columns": Made(KeyValueStore, PARTS, ("a", 1), "x"),
    "window": Made(WindowStore, TEXT, "a", "x"),
    "window of two columns": Made(WindowStore, PARTS, ("a", 1), "x"),
    "session": Made(SessionStore, TEXT, "a", "x"),
    "versioned": Made(VersionedKeyValueStore, TEXT, "a", "x"),
    "versioned of two columns": Made(VersionedKeyValueStore, PARTS, ("a", 1), "x"),
}
PIPELINE = {
    "rows": Made(KeyValueStore, {"flight_id": pa.int64()}, 1, None),
    "subscription_store": Made(
        KeyValueStore, {"foreign": pa.string(), "primary": pa.int64()}, ("a", 1), None
    ),
    "joined": Made(KeyValueStore, {"flight_id": pa.int64()}, 1, None),
    "versions": Made(VersionedKeyValueStore, {"station": pa.string()}, "a", None),
    "buffer": Made(WindowStore, {"flight_id": pa.int64()}, 1, None),
}
_KINDS = {
    KeyValueStore: "key-value", WindowStore: "window", SessionStore: "session", VersionedKeyValueStore: "versioned",
}  # fmt: skip


def bad_keys(made: Made, part: str) -> Iterator[tuple[Any, type[StoreError]]]:
    """Keys, or first parts of keys, that no row can have."""
    several = len(made.keys) > 1
    if part != BOUND:
        yield None, NullKey
    yield (None,), NullKey
    yield (("a", None) if several else (None, None)), NullKey
    yield b"a", WrongKey
    yield at(0), WrongKey
    yield ({"a"} if part == KEY else ["a", 1, 2]), WrongKey
    if isinstance(made.key, int):
        yield 1.5, WrongKey
        yield 2**70, WrongKey
        yield (1, 1), WrongKey
    else:
        yield ("a", 1, 2), WrongKey
        yield 1, WrongKey
    if several:
        yield ("a", "1"), WrongKey
    if several and part == KEY:
        yield ("a",), WrongKey
        yield (), WrongKey
    if part == PREFIX and isinstance(made.key, int):
        yield made.key, WrongKey


def bad(made: Made, part: str) -> Iterator[tuple[Any, type[StoreError]]]:
    """Arguments that cannot be right, and the error of each."""
    if part in (KEY, BOUND, PREFIX):
        yield from bad_keys(made, part)
    elif part == ENTRIES:
        yield from bad_entries(made)
    elif part == VALUE:
        yield from ((value, WrongKey) for value in (7, b"x", at(0), {"value": "x"}))
    else:
        if part == TIME:
            yield None, NullKey
        without_zone = datetime(2013, 1, 1)  # noqa: DTZ001 - which is no time
        yield from (
            (time, WrongKey) for time in ("2013-01-01", 1357002000000, without_zone, without_zone.date())
        )


def bad_entries(made: Made) -> Iterator[tuple[Any, type[StoreError]]]:
    """What is no list of entries, and lists of which the last entry cannot be right."""
    yield None, NullKey
    yield from ((entries, WrongKey) for entries in ("ab", {"a": "x"}, 7, [("a",)], [None], [("a",) * 5]))
    for number, member in enumerate(_MEMBERS[made.kind]):
        for argument, error in bad(made, member):
            yield [good_entry(made), substituted(good_entry(made), number, argument)], error


def good(made: Made, part: str) -> Any:
    """An argument that is right."""
    if part == PREFIX and isinstance(made.key, int):
        return (made.key,)
    if part == ENTRIES:
        return [good_entry(made)]
    return {KEY: made.key, BOUND: made.key, PREFIX: made.key, VALUE: made.value}.get(part, at(5))


def good_entry(made: Made) -> tuple[Any, ...]:
    """An entry of a put that is right."""
    return tuple(good(made, member) for member in _MEMBERS[made.kind])


def substituted(arguments: tuple[Any, ...], number: int, argument: Any) -> tuple[Any, ...]:
    """Arguments of which one is another."""
    return (*arguments[:number], argument, *arguments[number + 1 :])


def table(stores: Mapping[str, Made], methods: Any) -> Iterator[Any]:
    """Rows of the test: store, method, arguments, the error and what was found."""
    for name, made in stores.items():
        for method, parts in methods[made.kind].items():
            arguments = tuple(good(made, part) for part in parts)
            for number, part in enumerate(parts):
                for argument, error in bad(made, part):
                    if made.value is None and isinstance(argument, tuple) and argument == made.key:
                        continue
                    row = (name, method, substituted(arguments, number, argument), error, argument)
                    yield pytest.param(*row, id=f"{name}-{method}-{number}-{argument!r}")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A store of each kind with a row in it, and the stores of a pipeline's tables."""
    folder = tmp_path_factory.mktemp("stores")
    found: dict[str, Any] = {}
    for name, made in OWN.items():
        layout = Layout(_KINDS[made.kind], tuple(made.keys), ("value",))  # type: ignore[arg-type]
        found[name] = make_store(folder / name, layout, made.keys)
        found[name].put_all([good_entry(made)])
    pipeline = load(Path(__file__).parents[3] / "examples" / "flights" / "lakejoin.yaml")
    lake, snapshot = Lake(str(folder / "lake")), Plan(0, "batch", at(0), (), {}, {}, {}, (), (), "", {}, "")
    join, waiting = (
        pipeline.join_spec("flights_with_planes"),
        pipeline.stream_join_spec("departures_with_weather"),
    )
    return found | {
        "rows": rows_store(lake, snapshot, pipeline.tables["flights"].spec),
        "subscription_store": subscription_store(lake, snapshot, join),
        "joined": joined_store(lake, snapshot, join),
        "versions": versioned_store(lake, snapshot, pipeline.tables["weather"].spec),
        "buffer": buffer_store(lake, snapshot, waiting, pipeline.streams["departures"].spec),
    }


@pytest.mark.parametrize("kind", _READS)
def test_every_method_is_in_the_table(kind: type[Store]) -> None:
    """A new one has to say what it refuses."""
    public = {name for name in dir(kind) if not name.startswith("_")}
    assert public == {*_READS[kind], *_WRITES[kind], *_OPENING}
    assert isinstance(getattr_static(kind, "open"), classmethod)


@pytest.mark.parametrize(
    ("name", "method", "arguments", "error", "found"),
    [*table(OWN, _READS), *table(OWN, _WRITES), *table(PIPELINE, _READS)],
)
def test_argument_that_cannot_be_right_is_refused_by_name(
    stores: dict[str, Any],
    name: str,
    method: str,
    arguments: tuple[Any, ...],
    error: type[StoreError],
    found: Any,
) -> None:
    """At the call, before anything is read or put; the message says method, place, expectation, find and way on."""
    store = stores[name]
    before = getattr(store, "_given_writer", None) and store._given_writer.last_put
    with pytest.raises(StoreError) as refused:
        getattr(store, method)(*arguments)
    assert refused.type is error
    message = str(refused.value)
    assert message.startswith(f"{method}(): {store.reader.path}: expected ")
    assert ", found " in message
    assert "; " in message
    if found in ((None,), ("a", None)) and method in _WHOLE_KEY:
        assert "expected a key of " in message
    if not isinstance(found, (list, tuple, dict)) and found != "ab":
        assert repr(found) in message
    assert (getattr(store, "_given_writer", None) and store._given_writer.last_put) == before


@pytest.mark.parametrize("name", [*OWN, *PIPELINE])
def test_what_is_right_is_answered(stores: dict[str, Any], name: str) -> None:
    """So that no refusal above comes from another argument; None is an open end in every range."""
    store, made = stores[name], {**OWN, **PIPELINE}[name]
    for method, parts in _READS[made.kind].items():
        rows = getattr(store, method)(*(good(made, part) for part in parts))
        if isinstance(rows, Iterator):
            assert len(list(rows)) == (1 if name in OWN else 0)
        if parts and all(part in (BOUND, LIMIT) for part in parts):
            everything = list(getattr(store, method)(*[None] * len(parts)))
            assert len(everything) == (1 if name in OWN else 0)


@pytest.mark.parametrize("name", [*PIPELINE, *[name for name in OWN if "two" not in name]])
def test_store_for_reading_is_never_written(stores: dict[str, Any], name: str) -> None:
    """Also where there would be nothing to write: no entries, no such key, a version that is too old."""
    made = {**OWN, **PIPELINE}[name]
    kind: Any = made.kind
    store = stores[name] if name in PIPELINE else kind.open(stores[name].reader.path)
    calls: list[tuple[str, tuple[Any, ...]]] = [
        (method, tuple(good(made, part) for part in parts)) for method, parts in _WRITES[made.kind].items()
    ]
    absent = 9 if isinstance(made.key, int) else ("z", 9) if len(made.keys) > 1 else "z"
    calls += (
        [("put_all", ([],)), ("delete", (absent,))] if made.kind is KeyValueStore else [("put_all", ([],))]
    )
    if made.kind is VersionedKeyValueStore:
        calls += [("put", (made.key, made.value, datetime.min.replace(tzinfo=UTC)))]
    for method, arguments in calls:
        with pytest.raises(StoreReadOnly, match=rf"^{method}\(\): .*expected .*, found .*; .*") as refused:
            getattr(store, method)(*arguments)
        assert store.reader.path in str(refused.value)


def test_range_that_is_turned_round_is_empty(stores: dict[str, Any]) -> None:
    """As in Kafka, in every call that takes two ends but one: a span of versions is refused there, and here."""
    early, late = at(0), at(10)
    key_value, window, session, versioned = (
        stores[n] for n in ("key-value", "window", "session", "versioned")
    )
    for method in ("range", "reverse_range"):
        assert list(getattr(key_value, method)("b", "a")) == []
    for direction in ("", "backward_"):
        for turned in (("b", "a", None, None), (None, None, late, early)):
            assert list(getattr(window, f"{direction}fetch_range")(*turned)) == []
        assert list(getattr(window, f"{direction}fetch")("a", late, early)) == []
        assert list(getattr(window, f"{direction}fetch_all")(late, early)) == []
        assert list(getattr(session, f"{direction}fetch_range")("b", "a")) == []
        assert list(getattr(session, f"{direction}find_sessions_range")("b", "a", None, None)) == []
        assert list(getattr(session, f"{direction}find_sessions_by_end")(late, early)) == []
        listed = getattr(versioned, f"{direction}versions")
        assert [row.value for row in listed("a", late, late)] == ["x"]
        with pytest.raises(
            WrongRange, match=rf"^{direction}versions\(\): .*expected a span .*, found .* to .*; give"
        ):
            listed("a", late, early)


def test_session_that_ends_before_it_starts_is_refused(stores: dict[str, Any]) -> None:
    """Kafka's session windows cannot be made so either; one that was never put is not found."""
    store: SessionStore = stores["session"]
    for call in (
        lambda: store.put("a", at(6), at(5), "x"), lambda: store.remove("a", at(6), at(5)),
        lambda: store.put_all([("a", at(6), at(5), "x")]),
    ):  # fmt: skip
        with pytest.raises(WrongRange, match=r"^(put|remove|put_all)\(\): .*ends no earlier than it starts"):
            call()
    assert store.fetch_session("a", at(6), at(5)) is None


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (pa.int64(), 1.5, None), (pa.int64(), True, None), (pa.string(), b"x", None), (pa.binary(), "x", None),
        (pa.date32(), at(0), None), (pa.timestamp("us", "UTC"), 1, None), (pa.decimal128(9, 1), 1.5, None),
        (pa.int64(), 2.0, 2), (pa.float64(), 1, 1.0), (pa.float32(), 0.1, pa.scalar(0.1, pa.float32()).as_py()),
    ],
)  # fmt: skip
def test_value_becomes_no_other_one(tmp_path: Path, kind: pa.DataType, value: Any, stored: Any) -> None:
    """What the column cannot hold is refused instead of cut off; only floats are rounded."""
    store = make_store(tmp_path / "store", Layout("key-value", ("key",), ("value",)), value={"value": kind})
    if stored is None:
        with pytest.raises(
            WrongKey, match=r"^put\(\): .*expected a value.* for value.*found .*; .*nothing was put"
        ):
            store.put("a", value)
        assert store.get("a") is None
    else:
        store.put("a", value)
        assert store.get("a") == stored


def test_order_is_for_frames_alone(stores: dict[str, Any]) -> None:
    """Of entries the last one counts."""
    for name in ("key-value", "window", "session", "versioned"):
        with pytest.raises(WrongKey, match=r"^put_all\(\): .*expected no order of entries, found 'number'; "):
            stores[name].put_all([good_entry(OWN[name])], order="number")


@pytest.mark.parametrize("kind", _READS)
@pytest.mark.parametrize("path", [None, Path("store"), 7])
def test_path_that_is_no_text_is_refused(kind: Callable[..., Any], path: Any) -> None:
    """Before any table is looked for."""
    with pytest.raises(StoreUnreadable, match=r"^open\(\): expected the path of a store as text, found "):
        kind.open(path)  # type: ignore[attr-defined]


def test_nothing_is_closed_and_what_is_gone_is_named(tmp_path: Path) -> None:
    """An iterator that was read to its end stays there; one that was left holds up no put, and says what it lost."""
    store: KeyValueStore = make_store(tmp_path / "store", Layout("key-value", ("key",), ("value",)))
    store.put("a", "x")
    path = store.reader.path
    done, left, asked_late = store.all(), KeyValueStore.open(path).all(), KeyValueStore.open(path)
    assert [len(list(done)), len(list(done))] == [1, 0]
    store.put("a", "y")
    assert store.get("a") == "y"
    shutil.rmtree(path)
    for read in (lambda: next(left), lambda: asked_late.get("a")):
        with pytest.raises(LakeInconsistent, match=path):
            read()
    with pytest.raises(StoreUnreadable, match=r"^open\(\): .*expected a table, found .*no Delta table; "):
        KeyValueStore.open(path)
