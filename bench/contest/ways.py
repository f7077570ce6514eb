"""Serves scripts that work one pipeline off in several ways, and compare what these take and what they leave."""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.contest.surroundings import commit
from lakejoin.orchestration.cli.terminal import say
from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.transforms.model.schemas import is_internal


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return what reads the arguments that such scripts have in common; `doc`: what the script says of itself."""
    found = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    found.add_argument("--driver-memory", default="4g")
    found.add_argument("--folder", type=Path, help="where the data is made; by default the system's place")
    found.add_argument("--json", type=Path)
    return found


def sized_parser(doc: str | None) -> argparse.ArgumentParser:
    """The same of those that make their data, of so many rows and batches."""
    found = parser(doc)
    found.add_argument("--rows", type=int, default=1_500_000, help="of the left table (default: 1,500,000)")
    found.add_argument("--batches", type=int, default=6)
    return found


def write_day(rows: DataFrame, folder: Path, table: str, day: int) -> None:
    """Write what a table changes on a day as one Parquet file; days count from 0, the first of January 2024."""
    file = folder / table / f"2024-01-{day + 1:02}.parquet"
    rows.coalesce(1).write.parquet(f"{file}.made")
    (made,) = Path(f"{file}.made").glob("*.parquet")
    made.rename(file)


def written_bytes(folder: str) -> int:
    """Bytes of all data files below a folder, those of older versions included."""
    return sum(file.stat().st_size for file in Path(folder).rglob("*.parquet"))


def in_own_lake(folder: Path, text: str, name: str) -> Pipeline:
    """A pipeline in `folder` with a lake for one of the ways; `text` has `./lake` for it."""
    return load_text(text.replace("./lake", f"./lake-{name}"), folder / "lakejoin.yaml")


def in_turn(
    pipelines: Mapping[str, Pipeline], spark: SparkSession, days: int, make: Callable[[int], None]
) -> dict[str, list[float]]:
    """Work each day off by each of the ways in turn; return their seconds. `make`: writes the files of a day."""
    seconds: dict[str, list[float]] = {way: [] for way in pipelines}
    for day in range(days):
        make(day)
        for way, pipeline in pipelines.items():
            seconds[way].append(timed(partial(list, run_batches(pipeline, spark))))
        tell(day, seconds)
    return seconds


def timed(work: Callable[[], object]) -> float:
    """The seconds that something takes."""
    started = time.monotonic()
    work()
    return round(time.monotonic() - started, 2)


def tell(day: int, seconds: Mapping[str, Sequence[float]]) -> None:
    """Print what the ways took for the batch of a day."""
    say(f"batch {day + 1}: {', '.join(f'{way} {took[-1]} s' for way, took in seconds.items())}")


def joined_rows(spark: SparkSession, pipeline: Pipeline, join: str) -> DataFrame:
    """The rows of a joined table, without internal columns."""
    rows = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join)))
    return rows.drop(*filter(is_internal, rows.columns))


def differences(one: DataFrame, other: DataFrame) -> int:
    """How many rows either has that the other has not."""
    return one.exceptAll(other).count() + other.exceptAll(one).count()


def keep(file: Path | None, facts: Mapping[str, object]) -> None:
    """Write what was measured into a file, if there is to be one, with the time and the commit."""
    if file is not None:
        made = {"made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "commit": commit()}
        file.write_text(json.dumps({**made, **facts}, indent=2) + "\n")
