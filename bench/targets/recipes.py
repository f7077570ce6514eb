"""What is run for each row of the table, at any size. One run serves several rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from bench.targets.targets import CHANGES, HOT_SHARE

_RECOMPUTING = ("ours", "spark", "duckdb")


@dataclass(frozen=True)
class Recipe:
    """What is measured over a workload of TPC-H at a scale: a race, or something that needs no batches."""

    scale: float
    batches: int
    """Of the workload; turns, where there are none."""
    changes: tuple[int, int] = CHANGES
    contenders: Sequence[str] = ("ours", "spark")
    loads: bool = False
    """The first load is measured, too; others may begin with one that was kept."""
    hot_share: float = 0
    """Share of the left rows that point at one right row, which alone changes in every second batch."""
    rivals_every: int = 1
    maintain_every: int = 0
    measures: Literal["race", "starts", "floor"] = "race"

    @property
    def text(self) -> str:
        """The recipe in a line, as its results keep it."""
        return ", ".join(f"{name} {_words(value)}" for name, value in asdict(self).items() if value)


def _words(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, tuple) else str(value)


RECIPES: Mapping[str, Recipe] = {
    "small": Recipe(1, 30, contenders=_RECOMPUTING, loads=True),
    "middle": Recipe(5, 7, contenders=_RECOMPUTING, loads=True),
    "large": Recipe(10, 7, contenders=_RECOMPUTING, loads=True),
    "large-batches": Recipe(5, 5, (CHANGES[0] * 10, CHANGES[1] * 10)),
    "single-changes": Recipe(1, 20, (1, 0), ("ours", "merge")),
    "starts": Recipe(1, 7, contenders=(), measures="starts"),
    "first-loads": Recipe(1, 15, contenders=(), measures="floor"),
    "hot-customer": Recipe(5, 12, contenders=("ours",), hot_share=HOT_SHARE),
    "fifty-batches": Recipe(1, 50, rivals_every=10, maintain_every=50),
    "two-hundred-batches": Recipe(1, 200, (1000, 10), rivals_every=4, maintain_every=50),
    # no row asks for these: the plot of batch cost against batch size, and what a changelog or a history costs
    "hundred-changes": Recipe(1, 7, (100, 1), ("ours", "spark")),
    "thousand-changes": Recipe(1, 7, (1000, 10), ("ours", "spark")),
    "many-changes": Recipe(1, 5, (CHANGES[0] * 10, CHANGES[1] * 10)),
    "changelog": Recipe(1, 15, contenders=("ours", "changelog")),
    "large-changelog": Recipe(10, 7, contenders=("ours", "changelog")),
    "history": Recipe(1, 15, contenders=("ours", "history")),
    "large-history": Recipe(10, 7, contenders=("ours", "history")),
}
"""The runs by name."""

ROWS: Mapping[str, Sequence[str]] = {
    "1": ("small", "middle", "large"),
    "2": ("small", "large"),
    "3": ("large-batches",),
    "4": ("single-changes",),
    "5": ("starts",),
    "6": ("first-loads",),
    "7": ("hot-customer",),
    "8": ("fifty-batches",),
    "9": ("two-hundred-batches",),
    "10": ("small", "large"),
    "sizes": ("small", "hundred-changes", "thousand-changes", "many-changes"),
    "changelog": ("changelog", "large-changelog"),
    "history": ("history", "large-history"),
}
"""The runs that a row of the table needs, or a plot (`sizes`), or a section of the page (`changelog`, `history`)."""


def runs_of(rows: Iterable[str]) -> list[str]:
    """The runs that these rows need, each once, in the order of `RECIPES`."""
    needed = {run for row in rows for run in ROWS[row]}
    return [name for name in RECIPES if name in needed]
