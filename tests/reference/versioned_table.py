"""A versioned table, one record at a time, in plain Python: Kafka's versioned store (KIP-889, KIP-914).

A version is valid from its own time (inclusive) until the time of the key's next version (exclusive); a
tombstone is a version too, one that says nothing. Records may arrive in any order: a late one rewrites
history, as long as it is not older than the history retention behind the greatest time that the table has
seen, over all keys. Times are whole numbers; values are anything but None, which is a tombstone.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

Key = Hashable
Verdict = Literal["applied", "history", "out_of_order", "duplicate", "expired"]
"""Only what is applied goes on to foreign-key joins (KIP-914). `history`: older than the key's latest version, yet a
version; `out_of_order`: another record at its time keeps its place."""


@dataclass(frozen=True)
class Version:
    """What a key was from `valid_from` until before `valid_to`, None for a version still valid."""

    value: Any
    valid_from: int
    valid_to: int | None


@dataclass(frozen=True)
class _Entry:
    value: Any
    sequence: Any
    position: Any


class VersionedTable:
    """The versions of every key, with the time the table has seen."""

    def __init__(self, history_retention: int) -> None:
        self.history_retention = history_retention
        self.observed: int | None = None
        self._arrivals = 0
        self._history: dict[Key, dict[int, _Entry]] = {}

    def put(self, key: Key, value: Any, time: int, sequence: Any = None, position: Any = None) -> Verdict:
        """Take a record (value None: a tombstone) and say what became of it.

        Of records with the same time the last by sequence, then position, counts; by default both are the arrival.
        """
        if self.is_expired(time):
            return "expired"
        self._arrivals += 1
        self.observed = time if self.observed is None else max(self.observed, time)
        entry = _Entry(
            value,
            self._arrivals if sequence is None else sequence,
            self._arrivals if position is None else position,
        )
        versions = self._history.setdefault(key, {})
        verdict: Verdict = "applied" if time >= max(versions, default=time) else "history"
        held = versions.get(time)
        if held is not None and (held.value, held.sequence) == (value, entry.sequence):
            verdict, entry = "duplicate", max(held, entry, key=_order)
        elif held is not None and _order(entry) < _order(held):
            return "out_of_order"
        versions[time] = entry
        return verdict

    def is_expired(self, time: int) -> bool:
        """True for times before the observed time minus the retention; the bound itself still counts."""
        return self._is_behind(time, self.observed)

    def _is_behind(self, time: int, clock: int | None) -> bool:
        return clock is not None and time < clock - self.history_retention

    def get(self, key: Key, as_of: int | None = None) -> Version | None:
        """Return the version valid at a time, or the latest; None where that is a tombstone or not known.

        Behind the retention only a key's latest version answers: older ones may be gone.
        """
        if as_of is not None:
            return self.get_by(self.observed, key, as_of)
        versions = self.versions(key)
        return versions[-1] if versions and versions[-1].value is not None else None

    def get_by(self, clock: int | None, key: Key, as_of: int) -> Version | None:
        """Do the same, the retention measured from another time than the observed one: that before a batch."""
        versions = self.versions(key)
        known = versions[-1:] if self._is_behind(as_of, clock) else versions
        valid = [version for version in known if version.valid_from <= as_of]
        return valid[-1] if valid and valid[-1].value is not None else None

    def versions(self, key: Key) -> list[Version]:
        """Return every version of a key by its time, tombstones included."""
        versions = self._history.get(key, {})
        starts = [*sorted(versions), None]
        return [
            Version(versions[start].value, start, end) for start, end in pairwise(starts) if start is not None
        ]

    def between(self, key: Key, start: int | None = None, end: int | None = None) -> list[Version]:
        """Return the values that were valid at some time from `start` to `end`, both inclusive, None: open.

        Raises `ValueError` where it ends before it begins.
        """
        if start is not None and end is not None and end < start:
            raise ValueError(f"the span ends at {end}, before it begins at {start}")
        return [
            version
            for version in self.versions(key)
            if version.value is not None
            and (end is None or version.valid_from <= end)
            and (start is None or version.valid_to is None or version.valid_to > start)
        ]

    def look_up(self, key: Key, time: int) -> Any:
        """Return the value that a stream record of this time is joined with, None if there is none."""
        found = self.get(key, time)
        return None if found is None else found.value


class PlainTable:
    """A table that knows no time: the last value of each key, by arrival."""

    def __init__(self) -> None:
        self._rows: dict[Key, Any] = {}

    def put(self, key: Key, value: Any, time: int) -> Verdict:
        """Take a record; whenever it is from, it is the newest."""
        self._rows[key] = value
        return "applied"

    def look_up(self, key: Key, time: int) -> Any:
        """Return the latest value, None if there is none; the time does not matter."""
        return self._rows.get(key)


def _order(entry: _Entry) -> tuple[Any, Any]:
    return entry.sequence, entry.position
