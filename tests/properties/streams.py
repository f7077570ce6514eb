"""Random streams and tables whose records come late, and random ways to cut them into batches.

All keys of a table share its time, and all records of a stream theirs, so a history is one list of records
in the order of their arrival. Domains are tiny on purpose: equal times, records exactly at a bound, a key
that is deleted and comes back must be likely, not possible.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from properties.scenarios import DAYS, Arrival

Side = Literal["stream", "table"]
GRACE = 5
"""Of the joins that wait, in milliseconds, as all times are."""
FAR_FUTURE = 10**13
"""A time that no clock has reached."""

_SIDES: tuple[Side, ...] = ("stream", "table")
_KEYS = ("x", "x", "y")
_FOREIGN_KEYS = ("x", "x", "y", "gone", None)
_VALUES = ("a", "b")
_KINDS = (*["record"] * 12, "again", "again", "delete", "delete", "skipped", "no key", "no time", "future")
"""`again` delivers an earlier record once more; `skipped` is one that the stream's condition leaves out."""
SKIPPED = "skip"
"""Value of a stream's record that its condition leaves out."""
_LATENESS = (0, 0, 0, 1, 2, GRACE, GRACE + 1, 9, 20)
_ORDERS = ("next", "next", "tie", "back")
"""How a table record's sequence stands to those before it."""
_NEXT_DAY = (False, False, False, False, True)


@dataclass(frozen=True)
class Event:
    """One source record of either side, with the day whose file holds it; value None: a delete."""

    side: Side
    id: int | None
    """What identifies a stream record; None: one that must be quarantined. Of a table record, any number."""
    key: str | None
    """Key of a table record; what a stream record looks up."""
    value: str | None
    time: int | None
    sequence: int
    day: int


@dataclass(frozen=True)
class History:
    """Records in the order of their arrival, and the arrivals of their days."""

    events: tuple[Event, ...]
    arrivals: tuple[Arrival, ...]

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        # printed whole for every failure, however long: what is wrong is told by the comparison
        printer.text(f"{len(self.events)} records, {self.arrivals}")


_STEP = st.tuples(
    st.sampled_from(_SIDES),
    st.sampled_from(_KINDS),
    st.sampled_from(_KEYS),
    st.sampled_from(_FOREIGN_KEYS),
    st.sampled_from(_VALUES),
    st.integers(0, 3),
    st.sampled_from(_LATENESS),
    st.sampled_from(_ORDERS),
    st.sampled_from(_NEXT_DAY),
)


@st.composite
def events(draw: st.DrawFn) -> tuple[Event, ...]:
    """Records of both sides in the order of their days, at times that mostly rise."""
    found: list[Event] = []
    day = clock = newest = 0
    steps = draw(st.lists(_STEP, min_size=40, max_size=70))
    for number, (side, kind, key, fk, v, pause, lateness, order, next_day) in enumerate(steps, start=1):
        day, clock = min(DAYS - 1, day + next_day), clock + pause
        former = [event for event in found if event.side == side]
        if kind == "again" and former:
            found.append(replace(former[len(former) // 2], day=day))
            continue
        if side == "table":
            sequence = max(0, newest + {"tie": 0, "back": -2}.get(order, 1))
            newest = max(newest, sequence)
        value = {"delete": None, "skipped": SKIPPED}.get(kind, v)
        time = {"no time": None, "future": FAR_FUTURE}.get(kind, max(0, clock - lateness))
        event = Event(
            side,
            number,
            key if side == "table" else fk,
            value,
            time,
            sequence if side == "table" else number,
            day,
        )
        found.append(replace(event, **_without_key(side)) if kind == "no key" else event)
    return tuple(found)


def _without_key(side: Side) -> dict[str, None]:
    return {"key": None} if side == "table" else {"id": None}


def within_grace(drawn: Sequence[Event]) -> tuple[Event, ...]:
    """The same records, none of the table's so late that a batch of an earlier day could have missed it."""
    times = [(one.day, one.time) for one in drawn if one.side == "stream" and _is_timely(one)]
    kept = []
    for event in drawn:
        if event.side == "table" and _is_timely(event):
            stream_time = max((time for day, time in times if day < event.day), default=0)
            kept.append(replace(event, time=max(event.time, stream_time - GRACE + 1)))
        else:
            kept.append(event)
    return tuple(kept)


def _is_timely(event: Event) -> bool:
    """False for a record that is quarantined by its time."""
    return event.time not in {None, FAR_FUTURE}


@st.composite
def arrivals_in_order(draw: st.DrawFn) -> tuple[Arrival, ...]:
    """All days in their order, some of them in one batch."""
    ends = sorted(draw(st.sets(st.integers(1, DAYS - 1))) | {DAYS})
    return tuple(
        Arrival(tuple(range(start, end)), "all") for start, end in zip([0, *ends], ends, strict=False)
    )
