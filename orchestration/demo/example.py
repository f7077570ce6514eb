"""Opens an example: a pipeline with its data, and what a database answered after each day of them."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from orchestration.config import Pipeline, load
from orchestration.errors import WrongUsage

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"
"""The example that comes with the project."""
DEMO = EXAMPLE / "lakejoin.yaml"
"""Its configuration: what the demo runs and the web interface shows unless told otherwise."""


@dataclass(frozen=True)
class Example:
    """A folder with `lakejoin.yaml`, and in `data/expected/DAY` the database's `inner_join`, `left_join`."""

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
        """How many comparisons there are in all: each join of tables on each day."""
        return len(self.days) * len(self.pipeline.joins_of_tables)

    def answer(self, join: str, day: date) -> Path:
        """Return the file with the database's answer for a join at the end of a day."""
        stem = f"{self.pipeline.join_spec(join).parts[0].how}_join.csv"
        found = sorted((self.expected / day.isoformat()).glob(f"{stem}*"))
        if not found:
            raise WrongUsage(
                f"{self.expected / day.isoformat()}: no {stem} or {stem}.gz to compare {join} with"
            )
        return found[0]


def open_example(folder: Path, lake: Path | None) -> Example:
    """Read an example's configuration; `lake` replaces the lake it names."""
    if not (folder / "data" / "expected").is_dir():
        raise WrongUsage(
            f"{folder}: no example with lakejoin.yaml and data/expected; the demo runs from a source tree"
        )
    pipeline = load(folder / "lakejoin.yaml")
    if lake is not None:
        pipeline = pipeline.model_copy(update={"lake": str(lake.resolve())})
    return Example(pipeline, folder / "data" / "expected")
