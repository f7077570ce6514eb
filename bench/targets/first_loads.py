"""How row 6 follows from a measurement of first loads: as a load is run, in a new process, and once all is compiled."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.targets.results import Result, Turn, wall, warm
from bench.targets.sought import Measured, Sought, of_one
from bench.targets.targets import LEFT_ROWS, PEERS, Target

_LOADING = ("recompute", "sources", "load")
"""Who makes the joined table of a first load: the rival, the shortest program that leaves our tables, and ours."""


def first_load(target: Target, sought: Sought) -> Measured | None:
    """Return the newest measurement in which all three were run in new processes and in turn."""
    rows = round(LEFT_ROWS * target.scale * sought.size)
    result = next(
        (
            found
            for found in sought.results
            if found.kind == "floor" and found.has_costs(*_LOADING) and found.left_rows == rows
        ),
        None,
    )
    if result is None:
        return None
    new, again = (_loads(result, when) for when in ("new_process", "turns"))
    note = (
        f"{new.seconds}, medians of {len(new.ours)}, each in a new process, as a first load is run; "
        f"the shortest program that leaves the same tables {new.shortest:.3g}; "
        f"in turn in one process, once compiled, a load {again.load:.3g} ({again.seconds}), that program "
        f"{again.shortest:.3g}; {new.rate:,.0f} and {again.rate:,.0f} rows/s on {result.cores} cores ({PEERS}, on one)"
    )
    return of_one(new.load, note, result, [*new.ours, *new.spark])


@dataclass(frozen=True)
class _Loads:
    """A first load, the rival's, and the shortest program's time, as it was measured in one of two ways."""

    ours: Sequence[Turn]
    spark: Sequence[Turn]
    least: Sequence[Turn]
    rows: int

    @property
    def load(self) -> float:
        return wall(self.ours) / wall(self.spark)

    @property
    def shortest(self) -> float:
        return wall(self.least) / wall(self.spark)

    @property
    def rate(self) -> float:
        return self.rows / wall(self.ours)

    @property
    def seconds(self) -> str:
        return f"{wall(self.ours):.1f} s against {wall(self.spark):.1f} s"


def _loads(result: Result, when: str) -> _Loads:
    ours, spark, least = (warm(result.costs(piece, when)) for piece in ("load", "recompute", "sources"))
    return _Loads(ours, spark, least, result.loaded_rows)
