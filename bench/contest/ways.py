"""Serves scripts that work one pipeline off in several ways, and compare what these take and what they leave."""

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.contest.surroundings import commit
from orchestration.config import Pipeline, load_text
from storage.lake.layout import Lake, joined_of
from transforms.model.schemas import is_internal


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Return what reads the arguments that such scripts have in common; `doc`: what the script says of itself."""
    found = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    found.add_argument("--driver-memory", default="4g")
    found.add_argument("--folder", type=Path, help="where the data is made; by default the system's place")
    found.add_argument("--json", type=Path)
    return found


def in_own_lake(folder: Path, text: str, name: str) -> Pipeline:
    """A pipeline in `folder` with a lake for one of the ways; `text` has `./lake` for it."""
    return load_text(text.replace("./lake", f"./lake-{name}"), folder / "lakejoin.yaml")


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
