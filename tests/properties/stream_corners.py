"""Hand-made histories of a stream and its table, for corners that are known: bounds, ties, repeats, tombstones.

History goes back 8 milliseconds, and the joins that wait give 5 of grace.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from properties.scenarios import Arrival
from properties.streams import Event, History

Entry = tuple[Any, ...]
"""("t", key, value, time, sequence), ("s", id, foreign key, value, time): records; "|": the next day."""


def _events(entries: Iterable[Entry | str]) -> Sequence[Event]:
    events: list[Event] = []
    day = 0
    for entry in entries:
        match entry:
            case "|":
                day += 1
            case "t", key, value, time, sequence:
                events.append(Event("table", 0, key, value, time, sequence, day))
            case "s", number, key, value, time:
                events.append(Event("stream", number, key, value, time, number, day))
    return events


_IN_ORDER = (
    ("t", "x", "a", 10, 1),
    ("t", "y", "a", 10, 2),
    ("s", 1, "x", "waits", 12),
    ("s", 2, None, "no key", 90),  # moves no time
    ("s", 3, "gone", "no match", 12),
    ("s", 4, "x", "before the first version", 9),
    "|",
    ("t", "x", "late", 11, 3),  # what record 1 meets
    ("t", "y", None, 13, 4),
    ("s", 5, "y", "after the tombstone", 17),  # releases what is at 12
    ("s", 6, "y", "before the tombstone", 12),  # at the bound: not late
    ("s", 7, "y", "late", 11),
    ("s", 1, "x", "waits", 12),  # again
    ("s", 8, "x", "skip", 99),
    "|",
    ("t", "x", "b", 30, 5),  # from here on history begins at 22
    ("t", "x", "same time", 30, 6),
    ("t", "x", "older sequence", 30, 4),
    ("t", "y", "at the bound", 22, 7),
    ("t", "y", "expired", 21, 8),
    ("s", 9, "x", "behind the bound", 21),
    ("s", 10, "y", "at the bound", 22),
    ("s", 11, "x", "newest", 30),
)
IN_ORDER = History(tuple(_events(_IN_ORDER)), tuple(Arrival((day,)) for day in range(3)))
"""A batch for each day."""
AT_ONCE = History(IN_ORDER.events, (Arrival((0,)), Arrival((1, 2), "all")))
"""Everything after the first day in one batch."""

_BACKWARDS = (
    ("t", "x", "a", 10, 1),
    ("t", "y", "a", 10, 1),
    ("s", 1, "x", "waits", 12),
    "|",
    ("t", "x", "b", 10, 1),  # arrives last, and stands before the repeated one
    ("t", "y", "b", 10, 1),  # stands after the first, and before nothing else
    ("t", "z", "b", 11, 1),
    ("s", 2, "x", "waits", 13),
    ("s", 3, "y", "waits", 13),
    ("s", 4, "z", "waits", 13),
    "|",
    ("t", "x", "a", 10, 1),  # again: a duplicate
    ("t", "y", "newest", 14, 2),  # from here on what comes at 10 is history
    ("t", "z", "newest", 14, 2),
    ("s", 1, "x", "waits", 12),  # again
    ("s", 5, "x", "waits", 13),
)
BACKWARDS = History(tuple(_events(_BACKWARDS)), (Arrival((0,)), Arrival((2,)), Arrival((1,))))
"""The day in the middle comes last."""
