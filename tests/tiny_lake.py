"""The tiny recording, worked off once for all tests that only look at it."""

import csv
import io
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from pyspark.sql import SparkSession

from lakejoin.orchestration.demo.example import DEMO, Example, open_example

if TYPE_CHECKING:  # the tests that start no Spark do not import it either
    from lakejoin.orchestration.demo.days import Day
    from lakejoin.orchestration.show.tables import View

RECORDING = Path(__file__).parent / "data" / "flights-cdc-tiny"
Rows = list[dict[str, str]]
_DEMO_ALONE = {"tables": "stations", "joins": "board", "groups": "punctuality"}
"""What the shared lake goes without: a third of its time, and kinds of results that have tests of their own."""


@pytest.fixture(scope="session")
def copy_tiny() -> Callable[[Path], Path]:
    """Return what makes an example of the tiny recording: the demo's tables and joins."""

    def copy(folder: Path) -> Path:
        shutil.copytree(RECORDING, folder / "data")
        text = DEMO.read_text().replace(".jsonl.gz", ".jsonl")
        (folder / "lakejoin.yaml").write_text(text)
        return folder

    return copy


@pytest.fixture(scope="session")
def tiny(copy_tiny: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Example:
    """Return an example of the tiny recording; `tiny_days` works it off."""
    folder = copy_tiny(tmp_path_factory.mktemp("tiny"))
    text = yaml.safe_load((folder / "lakejoin.yaml").read_text())
    for section, name in _DEMO_ALONE.items():
        del text[section][name]
    (folder / "lakejoin.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    return open_example(folder, None)


@pytest.fixture(scope="session")
def tiny_days(tiny: Example, spark: SparkSession) -> tuple["Day", ...]:
    """Return its three days, worked off one after the other and compared with PostgreSQL."""
    from lakejoin.orchestration.demo.days import run_days

    return tuple(run_days(tiny, spark, lambda stage: None))


@pytest.fixture(scope="session")
def view(tiny: Example, tiny_days: tuple["Day", ...], spark: SparkSession) -> Callable[..., "View"]:
    """Return what opens a table of the tiny lake, as of a batch."""
    from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
    from lakejoin.orchestration.show.tables import find_view
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake
    from lakejoin.storage.state.pinned_state import State

    assert len(tiny_days) == 3

    def open_view(name: str, batch: int | None = None) -> "View":
        lake = Lake(tiny.pipeline.lake)
        return find_view(tiny.pipeline, name)(State(spark, lake, published_snapshot(Journal(lake), batch)))

    return open_view


@pytest.fixture(scope="session")
def read(view: Callable[..., "View"]) -> Callable[..., Rows]:
    """Return what reads a table of the tiny lake as of a batch, as csv has it, with the internal columns."""
    from lakejoin.orchestration.show.text_formats import lines

    @cache
    def rows(name: str, batch: int | None = None) -> Rows:
        opened = view(name, batch)
        text = "".join(lines(opened.shown(internal=True), "csv", opened.structs))
        return list(csv.DictReader(io.StringIO(text, newline="")))

    return rows
