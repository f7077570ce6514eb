"""Random puts, deletes and reads against a plain dictionary that is sorted for each read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.write.layout import Layout
from lakejoin.transforms.model.event_time import EPOCH
from stores_without_spark import at, make_store

EXAMPLES = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
octets = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF]), max_size=3).map(bytes) | st.binary(
    max_size=2
)
characters = st.text(st.sampled_from("\0ab\u00e9\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=3)
contents = st.none() | st.sampled_from("xyz")
seconds = st.integers(0, 20).map(at)
_numbers = count()


def fresh(folder: Path) -> Path:
    """A place for a store of its own in every example."""
    return folder / str(next(_numbers))


def batches(*parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[tuple[Any, ...]]]]:
    """A few puts of a few entries each."""
    return st.lists(st.lists(st.tuples(*parts), min_size=1, max_size=5), max_size=5)


@pytest.mark.bad_input(19)
@EXAMPLES
@given(batches(octets, contents), octets, octets)
def test_keys_of_every_byte_are_read_as_from_a_sorted_dictionary(
    tmp_path: Path, puts: list[list[tuple[bytes, Any]]], low: bytes, high: bytes
) -> None:
    """Ranges, prefixes, single keys and everything, in both directions, after every put."""
    layout, kinds = Layout("key-value", ("key",), ("value",)), {"key": pa.binary()}
    store: KeyValueStore = make_store(fresh(tmp_path), layout, kinds)
    model: dict[bytes, str] = {}
    for entries in puts:
        store.put_all(entries)
        _apply(model, entries)
        assert list(store.all()) == sorted(model.items())
    assert list(store.reverse_all()) == sorted(model.items())[::-1]
    ranged = [(key, value) for key, value in sorted(model.items()) if low <= key <= high]
    assert list(store.range(low, high)) == ranged
    assert list(store.reverse_range(low, high)) == ranged[::-1]
    prefixed = [(key, value) for key, value in sorted(model.items()) if key.startswith(low)]
    assert list(store.prefix_scan(low)) == prefixed
    assert list(store.reverse_prefix_scan(low)) == prefixed[::-1]
    for key in {low, high, *model}:
        assert store.get(key) == model.get(key)


@EXAMPLES
@given(batches(st.tuples(characters, st.integers(-2, 2)), contents), characters, st.integers(-2, 2))
def test_keys_of_several_columns_are_read_column_after_column(
    tmp_path: Path, puts: list[list[tuple[tuple[str, int], Any]]], text: str, number: int
) -> None:
    """The first columns alone are a prefix, and an end of a range that takes in all keys with them."""
    layout, kinds = Layout("key-value", ("a", "b"), ("value",)), {"a": pa.string(), "b": pa.int64()}
    store: KeyValueStore = make_store(fresh(tmp_path), layout, kinds)
    model: dict[tuple[str, int], str] = {}
    for entries in puts:
        store.put_all(entries)
        _apply(model, entries)
    rows = sorted(model.items(), key=lambda row: (row[0][0].encode(), row[0][1]))
    assert list(store.all()) == rows
    assert list(store.prefix_scan((text,))) == [row for row in rows if row[0][0] == text]
    assert list(store.range((text,), None)) == [row for row in rows if row[0][0] >= text]
    assert list(store.reverse_range(None, (text, number))) == [
        row for row in rows[::-1] if row[0] <= (text, number)
    ]


@EXAMPLES
@given(batches(st.sampled_from("abc"), contents, seconds), st.none() | st.integers(1, 15), seconds, seconds)
def test_windows_are_read_as_from_a_sorted_dictionary(
    tmp_path: Path,
    puts: list[list[tuple[str, Any, datetime]]],
    keep: int | None,
    low: datetime,
    high: datetime,
) -> None:
    """By key, then by start; gone are those as old as the retention."""
    retention = None if keep is None else timedelta(seconds=keep)
    layout = Layout("window", ("key",), ("value",), retention=retention)
    store: WindowStore = make_store(fresh(tmp_path), layout)
    model: dict[tuple[str, datetime], str] = {}
    for entries in puts:
        store.put_all(entries)
        _apply(model, [((key, start), value) for key, value, start in entries])
    bound = _bound([start for entries in puts for *_, start in entries], retention)
    rows = [(*place, value) for place, value in sorted(model.items()) if bound is None or place[1] > bound]

    def found(windows: Any) -> list[Any]:
        return [(row.key, row.start, row.value) for row in windows]

    assert found(store.all()) == rows
    assert found(store.backward_all()) == rows[::-1]
    timed = [row for row in rows if low <= row[1] <= high]
    assert found(store.fetch_all(low, high)) == timed
    assert found(store.backward_fetch_all(low, high)) == timed[::-1]
    assert found(store.fetch_range("a", "b", low, high)) == [row for row in timed if row[0] <= "b"]
    assert found(store.backward_fetch("b", low, None)) == [
        r for r in rows[::-1] if r[0] == "b" and r[1] >= low
    ]
    assert store.fetch_one("b", low) == next((r[2] for r in rows if r[:2] == ("b", low)), None)


@EXAMPLES
@given(
    batches(st.sampled_from("abc"), seconds, seconds, contents),
    st.none() | st.integers(1, 15),
    seconds,
    seconds,
)
def test_sessions_are_read_as_from_a_sorted_dictionary(
    tmp_path: Path, puts: list[list[tuple[Any, ...]]], keep: int | None, earliest: datetime, latest: datetime
) -> None:
    """By key, then by end, then by start; gone are those whose end is as old as the retention."""
    retention = None if keep is None else timedelta(seconds=keep)
    store: SessionStore = make_store(
        fresh(tmp_path), Layout("session", ("key",), ("value",), retention=retention)
    )
    model: dict[tuple[str, datetime, datetime], str] = {}
    puts = [[(key, *sorted(times), value) for key, *times, value in entries] for entries in puts]
    for entries in puts:
        store.put_all(entries)
        _apply(model, [((key, end, start), value) for key, start, end, value in entries])
    bound = _bound([end for entries in puts for _, _, end, _ in entries], retention)
    rows = [(*place, value) for place, value in sorted(model.items()) if bound is None or place[1] > bound]

    def found(sessions: Any) -> list[Any]:
        return [(row.key, row.end, row.start, row.value) for row in sessions]

    assert found(store.fetch_range(None, None)) == rows
    assert found(store.backward_fetch_range(None, "b")) == [row for row in rows[::-1] if row[0] <= "b"]
    wanted = [row for row in rows if row[1] >= earliest and row[2] <= latest]
    assert found(store.find_sessions_range(None, None, earliest, latest)) == wanted
    ending = [row for row in rows if earliest <= row[1] <= latest]
    assert found(store.find_sessions_by_end(earliest, latest)) == ending
    assert found(store.backward_find_sessions_by_end(earliest, latest)) == ending[::-1]
    assert found(store.backward_find_sessions("a", earliest, latest)) == [
        r for r in wanted[::-1] if r[0] == "a"
    ]


@EXAMPLES
@given(batches(st.sampled_from("ab"), contents, seconds), st.none() | st.integers(0, 15), seconds, seconds)
def test_versions_are_what_was_put_up_to_their_time(
    tmp_path: Path,
    puts: list[list[tuple[str, Any, datetime]]],
    keep: int | None,
    low: datetime,
    high: datetime,
) -> None:
    """What is older than the retention is refused one put after the other, and forgotten unless it is the latest."""
    retention = None if keep is None else timedelta(seconds=keep)
    layout = Layout("versioned", ("key",), ("value",), retention=retention)
    store: VersionedKeyValueStore = make_store(fresh(tmp_path), layout)
    model, times = _Versions(retention), [low, high]
    for entries in puts:
        expected = [model.put(*entry) for entry in entries]
        counts = store.put_all(entries)
        assert (counts.accepted, counts.expired) == (expected.count(True), expected.count(False))
        times += [time for _, _, time in entries]
    for key in "ab":
        for time in times:
            found = store.get_as_of(key, time)
            assert (None if found is None else found.value) == model.as_of(key, time)
        low, high = sorted((low, high))
        listed = [tuple(version) for version in store.versions(key, low, high)]
        assert listed == model.between(key, low, high)
        assert [tuple(version) for version in store.backward_versions(key, low, high)] == listed[::-1]


class _Versions:
    """The rules of versioned stores, over a sorted list of all versions of a key."""

    def __init__(self, retention: timedelta | None) -> None:
        self._retention, self._newest = retention, EPOCH - timedelta(days=1)
        self._of_key: dict[str, dict[datetime, str | None]] = {"a": {}, "b": {}}

    @property
    def bound(self) -> datetime:
        return (
            datetime.min.replace(tzinfo=EPOCH.tzinfo)
            if self._retention is None
            else self._newest - self._retention
        )

    def put(self, key: str, value: str | None, time: datetime) -> bool:
        if time < self.bound:
            return False
        self._of_key[key][time] = value
        self._newest = max(self._newest, time)
        return True

    def as_of(self, key: str, time: datetime) -> str | None:
        valid = [(start, value) for start, value in sorted(self._of_key[key].items()) if start <= time]
        if not valid or (time < self.bound and valid[-1][0] != max(self._of_key[key])):
            return None
        return valid[-1][1]

    def between(self, key: str, low: datetime, high: datetime) -> list[tuple[Any, ...]]:
        ended = pairwise([*sorted(self._of_key[key]), None])
        return [
            (value, start, end)
            for start, end in ended
            if start is not None and start <= high
            if (value := self._of_key[key][start]) is not None
            if end is None or (end > low and high >= self.bound)
        ]


def _apply(model: dict[Any, str], entries: Sequence[tuple[Any, Any]]) -> None:
    for key, value in entries:
        model.pop(key, None)
        if value is not None:
            model[key] = value


def _bound(times: Sequence[datetime], retention: timedelta | None) -> datetime | None:
    return None if retention is None or not times else max(times) - retention
