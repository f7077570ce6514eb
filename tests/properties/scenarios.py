"""Random change data, aimed at the corners where its joins go wrong, and random ways to cut it into batches.

Many short sequences run side by side, each with keys of its own, so that one pipeline tests all of them.
Domains are tiny on purpose: a value that comes back (A→B→A), a foreign key that points nowhere and then
somewhere, a key that is deleted and inserted again must be likely, not possible.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, get_args

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from lakejoin.orchestration.planning.pending_input import BatchBy

Side = Literal["left", "right"]
DAYS = 4
UNSHRUNK = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate), suppress_health_check=list(HealthCheck)
)
"""Settings of examples that take half a minute: a failure is told as it was drawn, not shrunk."""

_LEFT_KEYS = ("j", "k")
_RIGHT_KEYS = ("x", "y")
_FOREIGN_KEYS = ("x", "x", "y", "gone", None)
_SECOND_FOREIGN_KEYS = ("x", "j", "k", None)
"""Of the right table for the join over the join, of the left one for the table joined with itself."""
_VALUES = ("a", "b")
_ORDERS = ("next", "next", "next", "next", "tie", "back", "again")
"""How a record's sequence stands to those before it; `again` delivers an earlier record once more."""
_NEXT_DAY = (False, False, True)
_KINDS = (*["left"] * 8, *["right"] * 5, *["delete left"] * 3, *["delete right"] * 3, "null key")


@dataclass(frozen=True)
class Change:
    """One source record of a sequence; value None: a delete, key None: a record that must be quarantined."""

    side: Side
    key: str | None
    value: Mapping[str, Any] | None
    sequence: int
    day: int = 0


@dataclass(frozen=True)
class Arrival:
    """Days whose files arrive together, and how they are cut into batches."""

    days: tuple[int, ...]
    batch_by: BatchBy = "date"
    batch_rows: int | None = None


@dataclass(frozen=True)
class Scenario:
    """Sequences, and the arrivals of their days."""

    sequences: tuple[Sequence[Change], ...]
    arrivals: tuple[Arrival, ...]

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        # printed whole for every failure, however long: what is wrong is told by the comparison
        printer.text(f"{len(self.sequences)} sequences, {self.arrivals}")


_DOMAINS: tuple[Sequence[Any], ...] = (
    _KINDS, _LEFT_KEYS, _RIGHT_KEYS, _FOREIGN_KEYS, _SECOND_FOREIGN_KEYS, _VALUES, _ORDERS, _NEXT_DAY,
)  # fmt: skip
"""What a step of a sequence is drawn from."""
_FEWEST, _MOST = 4, 14
"""Steps of a sequence."""


def sequences() -> st.SearchStrategy[Sequence[Change]]:
    """Changes of both sides in the order of their days, with sequence numbers that go astray now and then."""
    step = st.tuples(*map(st.sampled_from, _DOMAINS))
    return st.lists(step, min_size=_FEWEST, max_size=_MOST).map(_changes)


def random_sequence(random: Random) -> Sequence[Change]:
    """The same, drawn from a seed."""
    steps = random.randint(_FEWEST, _MOST)
    return _changes([tuple(map(random.choice, _DOMAINS)) for _ in range(steps)])


def _changes(steps: Iterable[tuple[Any, ...]]) -> Sequence[Change]:
    changes: list[Change] = []
    day, newest = 0, {"left": 0, "right": 0}
    for kind, left_key, right_key, fk, fk2, v, order, next_day in steps:
        day = min(DAYS - 1, day + next_day)
        side: Side = "right" if "right" in kind else "left"
        key = None if kind == "null key" else left_key if side == "left" else right_key
        value = None if "delete" in kind else {"fk": fk, "fk2": fk2, "v": v} if side == "left" else {"v": v}
        former = [change for change in changes if change.side == side]
        if order == "again" and former:
            again = former[len(former) // 2]
            changes.append(Change(side, again.key, again.value, again.sequence, day))
            continue
        sequence = max(0, newest[side] + {"tie": 0, "back": -2}.get(order, 1))
        newest[side] = max(newest[side], sequence)
        changes.append(Change(side, key, value, sequence, day))
    return changes


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Arrival, ...]:
    """All days, in any order, some together, cut by size, by date, not at all, or every few records."""
    days = draw(st.permutations(range(DAYS)))
    ends = sorted(draw(st.sets(st.integers(1, DAYS - 1))) | {DAYS})
    found = []
    for start, end in zip([0, *ends], ends, strict=False):
        batch_by = draw(st.sampled_from(get_args(BatchBy)))
        batch_rows = draw(st.sampled_from((None, None, 30)))
        found.append(Arrival(tuple(days[start:end]), batch_by, batch_rows))
    return tuple(found)


def scenarios(size: int) -> st.SearchStrategy[Scenario]:
    """So many sequences side by side, with one way for their days to arrive."""
    side_by_side = st.lists(sequences(), min_size=size, max_size=size).map(tuple)
    return st.builds(Scenario, side_by_side, arrivals())
