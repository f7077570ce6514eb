"""KIP-617's calls under their Python names, each forwards and backwards.

The KIP: "If a backward read direction option becomes available, then we could start from the latest record within a
time range and go backwards, returning the first N value more efficiently."
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakejoin.storage.stores.errors import NullKey, StoreReadOnly, StoreUnreadable, WrongKey
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.write.layout import Layout
from stores_without_spark import at, make_store


@pytest.fixture
def key_value(tmp_path: Path) -> Any:
    """Keys a, b, c and ca, put out of order and over two puts."""
    store = make_store(tmp_path / "key-value", Layout("key-value", ("key",), ("value",)))
    store.put_all([("c", "3"), ("a", "0"), ("b", "2")])
    store.put_all([("a", "1"), ("ca", "4"), ("d", "5"), ("d", None)])
    return store


@pytest.fixture
def window(tmp_path: Path) -> Any:
    """Two keys in windows of ten seconds, put newest first."""
    layout = Layout("window", ("key",), ("value",), window=timedelta(seconds=10))
    store = make_store(tmp_path / "window", layout)
    store.put_all([(key, f"{key}{start}", at(start)) for start in (30, 20, 10) for key in ("b", "a")])
    return store


@pytest.fixture
def session(tmp_path: Path) -> Any:
    """Sessions of two keys; two of a end at the same time."""
    store = make_store(tmp_path / "session", Layout("session", ("key",), ("value",)))
    sessions = [("b", 0, 5), ("a", 20, 30), ("a", 0, 10), ("a", 25, 30), ("a", 40, 50)]
    store.put_all([(key, at(start), at(end), f"{key}{start}") for key, start, end in sessions])
    return store


def pairs(found: Iterator[Any]) -> list[tuple[str, str]]:
    """Keys and values of what an iterator yields."""
    return [(row.key, row.value) for row in found]


def values(found: Iterator[Any]) -> list[str]:
    """Values of what an iterator yields."""
    return [row.value for row in found]


def test_all_and_reverse_all_of_keys(key_value: KeyValueStore) -> None:
    """`all`, `reverseAll`: every key with its last value, deleted ones left out."""
    expected = [("a", "1"), ("b", "2"), ("c", "3"), ("ca", "4")]
    assert pairs(key_value.all()) == expected
    assert pairs(key_value.reverse_all()) == expected[::-1]


def test_range_and_reverse_range(key_value: KeyValueStore) -> None:
    """`range`, `reverseRange`: both ends inclusive, open where None, nothing where they cross."""
    assert pairs(key_value.range("b", "c")) == [("b", "2"), ("c", "3")]
    assert pairs(key_value.reverse_range("b", "c")) == [("c", "3"), ("b", "2")]
    assert values(key_value.range(None, "b")) == ["1", "2"]
    assert values(key_value.reverse_range("b", None)) == ["4", "3", "2"]
    assert values(key_value.range("c", "b")) == values(key_value.reverse_range("c", "b")) == []


def test_prefix_scan_and_its_reverse(key_value: KeyValueStore) -> None:
    """`prefixScan`: the empty prefix is every key's."""
    assert values(key_value.prefix_scan("c")) == ["3", "4"]
    assert values(key_value.reverse_prefix_scan("c")) == ["4", "3"]
    assert values(key_value.prefix_scan("")) == ["1", "2", "3", "4"]
    assert values(key_value.prefix_scan("x")) == []


def test_no_part_of_a_key_is_the_prefix_of_every_key(key_value: KeyValueStore) -> None:
    """As an empty text is; as an end of a range it is open."""
    everything = ["1", "2", "3", "4"]
    assert values(key_value.prefix_scan(())) == values(key_value.prefix_scan("")) == everything
    assert values(key_value.range((), None)) == values(key_value.range(None, ())) == everything
    assert values(key_value.reverse_prefix_scan(())) == everything[::-1]


def test_get_put_if_absent_and_delete(key_value: KeyValueStore) -> None:
    """`get`, `putIfAbsent`, `delete`: the former value, or None."""
    assert key_value.get("a") == "1"
    assert key_value.get("d") is None
    assert key_value.put_if_absent("a", "9") == "1"
    assert key_value.put_if_absent("d", "6") is None
    assert key_value.get("d") == "6"
    assert key_value.delete("d") == "6"
    assert key_value.delete("d") is None
    assert key_value.get("d") is None


def test_approximate_number_of_entries(key_value: KeyValueStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """`approximateNumEntries`: keys are counted in a small store, rows by the log in a large one."""
    assert key_value.approximate_num_entries() == 4
    monkeypatch.setattr("lakejoin.storage.stores.kinds.key_value.COUNTED", 5)
    opened = list(key_value.reader.opened)
    assert key_value.approximate_num_entries() == 7
    assert key_value.reader.opened == opened


def test_fetch_and_backward_fetch_of_a_key(window: WindowStore) -> None:
    """`fetch(key, from, to)`, `backwardFetch`: times inclusive."""
    assert values(window.fetch("a", at(10), at(20))) == ["a10", "a20"]
    assert values(window.backward_fetch("a", at(10), at(20))) == ["a20", "a10"]
    assert values(window.fetch("a", at(11), at(19))) == values(window.fetch("a", at(20), at(10))) == []
    (first, *_) = window.fetch("a", None, None)
    assert (first.key, first.start, first.end, first.value) == ("a", at(10), at(20), "a10")


def test_fetch_one_window(window: WindowStore) -> None:
    """`fetch(key, time)`: by the exact start."""
    assert window.fetch_one("a", at(20)) == "a20"
    assert window.fetch_one("a", at(21)) is None


def test_fetch_and_backward_fetch_of_a_range_of_keys(window: WindowStore) -> None:
    """`fetch(keyFrom, keyTo, from, to)`, `backwardFetch`: by key, then by time."""
    expected = ["a20", "a30", "b20", "b30"]
    assert values(window.fetch_range("a", "b", at(20), at(30))) == expected
    assert values(window.backward_fetch_range("a", "b", at(20), at(30))) == expected[::-1]
    assert values(window.fetch_range("b", None, None, at(10))) == ["b10"]


def test_fetch_all_and_backward_fetch_all(window: WindowStore) -> None:
    """`fetchAll(from, to)`, `backwardFetchAll`."""
    assert values(window.fetch_all(at(10), at(15))) == ["a10", "b10"]
    assert values(window.backward_fetch_all(at(10), at(15))) == ["b10", "a10"]


def test_all_and_backward_all_of_windows(window: WindowStore) -> None:
    """`all`, `backwardAll`; a null value deletes a window."""
    window.put("b", None, at(20))
    expected = ["a10", "a20", "a30", "b10", "b30"]
    assert values(window.all()) == expected
    assert values(window.backward_all()) == expected[::-1]


def test_fetch_and_backward_fetch_of_sessions(session: SessionStore) -> None:
    """`fetch(key)`, `backwardFetch(key)`: by end, then by start."""
    expected = ["a0", "a20", "a25", "a40"]
    assert values(session.fetch("a")) == expected
    assert values(session.backward_fetch("a")) == expected[::-1]


def test_fetch_and_backward_fetch_of_sessions_of_a_range_of_keys(session: SessionStore) -> None:
    """`fetch(keyFrom, keyTo)`, `backwardFetch(keyFrom, keyTo)`."""
    expected = ["a0", "a20", "a25", "a40", "b0"]
    assert values(session.fetch_range("a", "b")) == values(session.fetch_range(None, None)) == expected
    assert values(session.backward_fetch_range("a", "b")) == expected[::-1]
    assert values(session.fetch_range("b", "a")) == []


def test_find_sessions_and_backward_find_sessions(session: SessionStore) -> None:
    """`findSessions(key, earliestEnd, latestStart)`, `backwardFindSessions`: end and start inclusive."""
    assert values(session.find_sessions("a", at(10), at(20))) == ["a0", "a20"]
    assert values(session.backward_find_sessions("a", at(10), at(20))) == ["a20", "a0"]
    assert values(session.find_sessions("a", at(11), at(24))) == ["a20"]


def test_find_sessions_of_a_range_of_keys(session: SessionStore) -> None:
    """`findSessions(keyFrom, keyTo, earliestEnd, latestStart)`, `backwardFindSessions`."""
    assert values(session.find_sessions_range("a", "b", at(5), at(20))) == ["a0", "a20", "b0"]
    assert values(session.backward_find_sessions_range(None, None, at(5), at(20))) == ["b0", "a20", "a0"]


def test_find_sessions_by_end(session: SessionStore) -> None:
    """`findSessions(earliestEnd, latestEnd)` of all keys, which Kafka's persistent stores do not have."""
    assert values(session.find_sessions_by_end(at(5), at(30))) == ["a0", "a20", "a25", "b0"]
    assert values(session.backward_find_sessions_by_end(at(11), at(30))) == ["a25", "a20"]


def test_fetch_session_and_remove(session: SessionStore) -> None:
    """`fetchSession(key, start, end)`, `remove`: exactly this session, and nothing where there is none."""
    assert session.fetch_session("a", at(20), at(30)) == "a20"
    assert session.fetch_session("a", at(20), at(31)) is None
    session.remove("a", at(20), at(30))
    session.remove("a", at(21), at(30))
    assert session.fetch_session("a", at(20), at(30)) is None
    assert values(session.fetch("a")) == ["a0", "a25", "a40"]


def test_window_store_of_duplicates_keeps_every_put(tmp_path: Path) -> None:
    """In the order of puts; a null value is ignored, and a point get finds nothing."""
    store = make_store(tmp_path / "window", Layout("window", ("key",), ("value",), duplicates=True))
    store.put_all([("a", "1", at(0)), ("a", "2", at(0)), ("a", None, at(0))])
    store.put("a", "3", at(0))
    assert values(store.fetch("a", None, None)) == ["1", "2", "3"]
    assert values(store.backward_all()) == ["3", "2", "1"]
    assert store.fetch_one("a", at(0)) is None


def test_row_is_gone_once_it_is_as_old_as_the_retention(tmp_path: Path) -> None:
    """By the newest start of all keys, to the microsecond, whatever is put late; a later delete counts as a time."""
    layout = Layout("window", ("key",), ("value",), retention=timedelta(seconds=10))
    store = make_store(tmp_path / "window", layout)
    microsecond = timedelta(microseconds=1)
    store.put_all(
        [("a", "old", at(0)), ("a", "edge", at(1)), ("a", "kept", at(1) + microsecond), ("b", "new", at(11))]
    )
    assert values(store.all()) == ["kept", "new"]
    store.put("a", "late", at(1))
    assert store.fetch_one("a", at(1)) is None
    store.put("b", None, at(12))
    assert values(store.all()) == ["new"]


def test_null_keys_and_times_are_refused_and_nothing_is_put(
    key_value: KeyValueStore, window: WindowStore, session: SessionStore
) -> None:
    """With an error of its own, in each call that takes a key."""
    nothing: Any = None
    for call in (
        lambda: key_value.put(None, "x"), lambda: key_value.get(None), lambda: key_value.delete(None),
        lambda: key_value.put_all([("x", "1"), (None, "2")]), lambda: window.put(None, "x", at(0)),
        lambda: window.put("a", "x", nothing), lambda: window.fetch_one("a", nothing),
        lambda: window.fetch(None, None, None), lambda: session.put("a", nothing, at(1), "x"),
        lambda: session.fetch(None), lambda: session.fetch_session("a", at(0), nothing),
    ):  # fmt: skip
        with pytest.raises(NullKey):
            call()
    assert key_value.get("x") is None


@pytest.mark.parametrize("key", [1, b"a", ("a", "b"), ["a", "b"], 1.5])
def test_key_of_another_type_is_refused(key_value: KeyValueStore, key: Any) -> None:
    """The message names column and type."""
    with pytest.raises(WrongKey, match="key"):
        key_value.get(key)


def test_store_opened_without_a_session_is_for_reading(key_value: KeyValueStore) -> None:
    """A put says what to open instead; another kind of store is not opened at all."""
    path = key_value.reader.path
    store = KeyValueStore.open(path)
    assert store.get("a") == "1"
    with pytest.raises(StoreReadOnly, match="Spark session"):
        store.put("a", "2")
    with pytest.raises(StoreUnreadable, match="is a key-value store"):
        WindowStore.open(path)
