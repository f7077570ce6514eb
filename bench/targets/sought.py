"""What is looked for among the kept results, and what a measurement is.

A result serves a row by what was raced in it, whatever it was made for. `size` stands for tables and batches that are
so many times those of the table of targets: a thousandth of everything tells whether the measuring works.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.targets.results import Result, Turn, busy
from bench.targets.targets import LEFT_ROWS


@dataclass(frozen=True)
class Measured:
    """A figure, and what there is to say about how it came about."""

    value: float
    note: str
    results: Sequence[Result]
    """Where it is from; the newest first."""
    busy: float
    """Share of the processors that others used meanwhile."""


@dataclass(frozen=True)
class Sought:
    """Looks for results at a size; the newest that fits is taken."""

    results: Sequence[Result]
    size: float = 1

    def race(
        self,
        scale: float,
        changes: tuple[int, int],
        *names: str,
        fits: Callable[[Result], bool] = lambda _: True,
    ) -> Result | None:
        """A race at tables and batches of these sizes in which all of these took part."""
        return next(
            (
                result
                for result in self.results
                if result.is_race
                and result.left_rows == round(LEFT_ROWS * scale * self.size)
                and result.usual_changes() == scaled(changes, self.size)
                and result.has(*names)
                and fits(result)
            ),
            None,
        )


def scaled(changes: tuple[int, int], size: float) -> tuple[int, int]:
    """Left and right rows of a batch at a size: at least one, where there are any."""
    left, right = (max(1, round(count * size)) if count else 0 for count in changes)
    return left, right


def of_one(value: float, note: str, result: Result, turns: Iterable[Turn]) -> Measured:
    """Return a figure that some turns of a race gave."""
    return Measured(value, note + _lake(result), [result], busy(turns, result.cores))


def of_two(value: float, note: str, large: Result, small: Result) -> Measured:
    """Return a figure that our batches in two races gave."""
    newest = sorted([large, small], key=lambda result: result.date, reverse=True)
    note += "".join(dict.fromkeys(map(_lake, newest)))
    return Measured(value, note, newest, max(busy(r.turns("ours"), r.cores) for r in newest))


def _lake(result: Result) -> str:
    """Which commit made the lake that a race began with, where it is another."""
    made = (result.found.get("lake") or {}).get("commit", result.commit)
    return "" if made == result.commit else f"; its first load is of {made}"
