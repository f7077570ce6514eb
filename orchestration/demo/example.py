"""Opens an example: a pipeline with its data, and what a database answered after each day of them."""

import shutil
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePath

from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.transforms.model.specs import JoinSpec

EXAMPLE = (Path(__file__).parent / "flights").resolve()
"""The example that comes with the project: in the source tree a link leads there."""
DEMO = EXAMPLE / "lakejoin.yaml"
"""Its configuration: what the demo runs and the web interface shows unless told otherwise."""


def own_example() -> Path:
    """Return the example's folder, where it may be written beside it: of an installed package a copy in this directory.

    The copy is made once.
    """
    if EXAMPLE.parent != Path(__file__).resolve().parent:
        return EXAMPLE
    copy = Path("lakejoin-demo")
    if not copy.exists():
        shutil.copytree(EXAMPLE, copy)
    return copy


@dataclass(frozen=True)
class Example:
    """A folder with `lakejoin.yaml`, and in `data/expected/DAY` the database's `inner_join`, `left_join` and tables."""

    pipeline: Pipeline
    expected: Path

    @property
    def days(self) -> list[date]:
        """The days that there are answers for."""
        return sorted(
            date.fromisoformat(folder.name) for folder in self.expected.iterdir() if folder.is_dir()
        )

    @property
    def comparisons(self) -> int:
        """How many comparisons there are in all: each join of tables, and each group, on each day."""
        return len(self.days) * len(self.pipeline.kept_by_key)

    def answer(self, join: JoinSpec, day: date) -> Path:
        """Return the file with the database's answer for a join with one right side at the end of a day."""
        return self._file(f"{join.how}_join", day)

    def rows(self, table: str, day: date) -> Path:
        """Return the file with the database's rows of a table at the end of a day, named as the table's folder.

        The left join has the rows of its left table.
        """
        return self._file(PurePath(self.pipeline.tables[table].source.path).parent.name, day, "left_join")

    def _file(self, stem: str, day: date, other: str = "") -> Path:
        folder = self.expected / day.isoformat()
        found = [file for name in (stem, other) if name for file in sorted(folder.glob(f"{name}.csv*"))]
        if not found:
            raise WrongUsage(f"{folder}: no {stem}.csv or {stem}.csv.gz to compare with")
        return found[0]


def open_example(folder: Path, lake: Path | None) -> Example:
    """Read an example's configuration; `lake` replaces the lake it names."""
    if not (folder / "data" / "expected").is_dir():
        raise WrongUsage(f"{folder}: no example; it has lakejoin.yaml and data/expected")
    pipeline = load(folder / "lakejoin.yaml")
    if lake is not None:
        pipeline = pipeline.model_copy(update={"lake": str(lake.resolve())})
    # a JVM that stays has another working directory
    return Example(pipeline, (folder / "data" / "expected").absolute())
