"""Hand-made sequences for corners that are known: each was once, somewhere, a wrong joined table."""

from collections.abc import Iterable, Sequence
from typing import Any

from properties.scenarios import Arrival, Change, Scenario

Entry = tuple[Any, ...]
"""("l", key, fk[, v]), ("r", key, v): upserts; ("dl", key), ("dr", key): deletes; "|": the next day."""


def _sequence(entries: Iterable[Entry | str]) -> Sequence[Change]:
    changes: list[Change] = []
    day = 0
    for number, entry in enumerate(entries):
        match entry:
            case "|":
                day += 1
            case "l", key, fk, *v:
                value = {"fk": fk, "fk2": fk, "v": v[0] if v else "a"}
                changes.append(Change("left", key, value, number, day))
            case "r", key, v:
                changes.append(Change("right", key, {"v": v}, number, day))
            case "dl", key:
                changes.append(Change("left", key, None, number, day))
            case "dr", key:
                changes.append(Change("right", key, None, number, day))
    return changes


_JOINED: tuple[Entry | str, ...] = (("r", "x", "a"), ("l", "k", "x"), "|")
"""A row that has a result, before the day that is tested."""

_SEQUENCES = (
    # several changes of a key in one batch, whose answers but the last are stale: who retracts the result?
    (*_JOINED, ("l", "k", "gone"), ("l", "k", "gone")),
    (*_JOINED, ("l", "k", "gone"), ("l", "k", "gone", "b")),
    (*_JOINED, ("dl", "k"), ("l", "k", "gone")),
    (*_JOINED, ("l", "k", None), ("l", "k", "gone")),
    (*_JOINED, ("l", "k", "gone"), ("l", "k", None)),
    (*_JOINED, ("l", "k", None), ("dl", "k")),
    (*_JOINED, ("l", "k", "gone"), ("dl", "k")),
    (*_JOINED, ("dl", "k"), ("l", "k", "x")),
    (*_JOINED, ("dl", "k"), ("l", "k", None)),
    # A→B→A, within a batch and across batches, while the right value changes
    (*_JOINED, ("l", "k", "x", "b"), ("l", "k", "x", "a")),
    (*_JOINED, ("l", "k", "x", "b"), ("r", "x", "b"), ("l", "k", "x", "a")),
    (*_JOINED, ("l", "k", "y"), "|", ("r", "x", "b"), ("l", "k", "x")),
    (*_JOINED, ("l", "k", "y"), ("l", "k", "x"), "|", ("r", "x", "b")),
    # both sides change in one batch
    (*_JOINED, ("dr", "x"), ("l", "k", "x", "b")),
    (*_JOINED, ("dr", "x"), ("r", "x", "b"), ("l", "k", "gone")),
    (*_JOINED, ("dl", "k"), ("dr", "x")),
    (*_JOINED, ("l", "k", "y"), ("r", "y", "b"), ("dr", "x")),
    # a right row that comes late, goes, and comes back
    (("l", "k", "x"), ("l", "j", "x"), "|", ("r", "x", "a"), "|", ("dr", "x"), "|", ("r", "x", "a")),
    (("l", "k", None), ("l", "j", "x"), "|", ("l", "k", "x"), "|", ("r", "x", "a"), ("dl", "j")),
    (("dl", "k"), ("dr", "x"), "|", ("l", "k", "x"), ("r", "x", "a"), "|", ("dl", "k"), ("dr", "x")),
)

IN_ORDER = Scenario(tuple(_sequence(s) for s in _SEQUENCES), tuple(Arrival((day,)) for day in range(4)))
"""A batch for each day."""
BACKWARDS = Scenario(IN_ORDER.sequences, tuple(Arrival((day,)) for day in reversed(range(4))))
"""The last day first: later arrivals are out of order, except for keys that only they have."""
AT_ONCE = Scenario(IN_ORDER.sequences, (Arrival((0,)), Arrival((1, 2, 3), "all")))
"""Everything after the first day in one batch."""
