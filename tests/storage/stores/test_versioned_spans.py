"""KIP-968: a version is valid from its time until that of the next one, exclusive; a span includes both its ends."""

from datetime import timedelta
from pathlib import Path

import pytest

from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.write.layout import Layout
from stores_without_spark import at, make_store

MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def store(tmp_path: Path) -> VersionedKeyValueStore:
    """Versions of ten seconds each, the last one without an end."""
    found: VersionedKeyValueStore = make_store(tmp_path / "store", Layout("versioned", ("key",), ("value",)))
    found.put_all([("k", "b", at(20)), ("k", "a", at(10)), ("k", "c", at(30))])
    return found


def test_version_is_not_valid_at_its_end(store: VersionedKeyValueStore) -> None:
    """There the next one is; a microsecond before, it still is."""
    assert store.get_as_of("k", at(20) - MICROSECOND) == ("a", at(10), at(20))
    assert store.get_as_of("k", at(20)) == ("b", at(20), at(30))
    assert store.get_as_of("k", at(10) - MICROSECOND) is None


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (at(20), at(20), "b"), (at(20) - MICROSECOND, at(20), "ab"), (at(20), at(30) - MICROSECOND, "b"),
        (at(20), at(30), "bc"), (at(30), None, "c"), (None, at(10), "a"), (None, at(10) - MICROSECOND, ""),
    ],
)  # fmt: skip
def test_span_lists_what_is_valid_within_it_in_either_direction(
    store: VersionedKeyValueStore, start: object, end: object, expected: str
) -> None:
    """A version that ends where the span begins is not listed; one that begins where the span ends is."""
    found = [version.value for version in store.versions("k", start, end)]  # type: ignore[arg-type]
    back = [version.value for version in store.backward_versions("k", start, end)]  # type: ignore[arg-type]
    assert "".join(found) == "".join(back)[::-1] == expected


def test_versions_that_are_put_together_are_refused_one_after_the_other(tmp_path: Path) -> None:
    """A version is too old by what came before it, not by what comes later, and not as old as the retention."""
    layout = Layout("versioned", ("key",), ("value",), retention=timedelta(seconds=10))
    store: VersionedKeyValueStore = make_store(tmp_path / "store", layout)

    put = store.put_all(
        [("a", "1", at(5)), ("a", "2", at(0)), ("b", "3", at(30)), ("b", "late", at(19)), ("b", "4", at(20))]
    )

    assert put == (4, 1)
    assert [version.value for version in store.versions("b", None, None)] == ["4", "3"]
