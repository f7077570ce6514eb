"""Who takes part: the contenders by name, made and ended together, and a small race that warms them up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.contest.contender import Contender
from bench.contest.current import CurrentRows
from bench.contest.duck import Duck
from bench.contest.merge import Merge
from bench.contest.ours import JOIN, Ours, OursWithChangelog, OursWithHistory
from bench.contest.race import Course, Race, Round
from bench.contest.recompute import DuckRecompute, SparkRecompute
from bench.tpch.answers import change_file
from lakejoin.storage.lake.layout import joined_of

NAMES = ("ours", "spark", "duckdb", "merge", "changelog", "history")
_OURS = {contender.name: contender for contender in (Ours, OursWithChangelog, OursWithHistory)}
RECOMPUTING = ("ours", "spark", "duckdb")
"""Who races where nobody is named: us, and those who recompute the join."""
_WARM_UP_ROWS = 1000
_WARM_UP_BATCHES = 2


@dataclass(frozen=True)
class Track:
    """Where a race takes place."""

    spark: SparkSession
    folder: Path
    """Empty; everything that is written is below it."""
    memory: str
    """Limit of DuckDB, as Spark has one of its own."""

    @property
    def duckdb_settings(self) -> Mapping[str, str | int]:
        """As many threads for DuckDB as Spark has, and no more memory."""
        return {
            "threads": self.spark.sparkContext.defaultParallelism,
            "memory_limit": self.memory,
            "temp_directory": str(self.folder / "duckdb-temporary"),
        }


def run_race(track: Track, workload: Path, names: Sequence[str], course: Course) -> Iterator[Round]:
    """Let the named contenders race over a workload. Raises `WrongAnswer` where answers are checked."""
    recomputed = not set(names) <= set(_OURS)
    track.folder.mkdir()
    with ExitStack() as opened:
        current = (
            CurrentRows(workload, track.folder / "current", track.duckdb_settings) if recomputed else None
        )
        contenders = [
            opened.enter_context(closing(_make(name, track, workload, current, course.lake)))
            for name in names
        ]
        yield from Race(track.spark, workload, contenders, current).rounds(course)


def warm_up(track: Track, workload: Path, names: Sequence[str]) -> None:
    """Let the contenders race over the first rows of a workload, so that nobody's first batch starts cold."""
    small = track.folder.with_name("small")
    for side in ("left", "right"):
        (small / side).mkdir(parents=True)
    with Duck(None, {}) as duck:
        for side in ("left", "right"):
            for batch in range(_WARM_UP_BATCHES + 1):
                source, target = (change_file(folder, side, batch) for folder in (workload, small))
                duck.execute(
                    f"copy (select * from read_parquet('{source}') limit {_WARM_UP_ROWS}) "
                    f"to '{target}' (format parquet)"
                )
    for _ in run_race(track, small, names, Course(_WARM_UP_BATCHES, checked=False)):
        pass


def _make(
    name: str, track: Track, workload: Path, current: CurrentRows | None, kept: Path | None
) -> Contender:
    folder = track.folder / name
    if name in _OURS:
        return _OURS[name](track.spark, workload, folder, kept)
    assert current is not None  # made for these
    folder.mkdir()
    original = track.folder / "ours" / "lake" / joined_of(JOIN)
    makers: Mapping[str, Callable[[], Contender]] = {
        "spark": lambda: SparkRecompute(track.spark, workload, current, folder),
        "duckdb": lambda: DuckRecompute(track.spark, workload, current, folder, track.duckdb_settings),
        "merge": lambda: Merge(track.spark, current, folder, original),
    }
    return makers[name]()
