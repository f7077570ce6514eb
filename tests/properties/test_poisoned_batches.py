"""However many records cannot be computed, no batch stops; all others are joined, and the bad ones can be healed."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run
from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, retry
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.layout import Lake, joined_of
from properties.poisoned_history import BEFORE, MENDED, TOLD, Joined, Line, Model, history, write_sources

pytestmark = pytest.mark.spark

SEED = 1127
MANY = int(os.environ.get("LAKEJOIN_POISONED_BATCHES", "500"))
"""Batches of the long run. 1,000 take about an hour on two cores."""


def _joined(spark: SparkSession, lake: Lake, join: str, text: str) -> Joined:
    rows = spark.read.format("delta").load(lake.path(joined_of(join))).collect()
    found = {row["id"]: (row[text], row["right_city"]) for row in rows}
    assert len(found) == len(rows)
    return found


def _place(line: Line) -> tuple[str, str, int]:
    return line.source, f"{line.date}.jsonl", line.number


@pytest.mark.parametrize(
    ("days", "every"),
    [(5, 2), pytest.param(10, 2, marks=pytest.mark.slow), pytest.param(MANY, 10, marks=pytest.mark.slow)],
    ids=["few", "some", "many"],
)
def test_poisoned_records_stop_no_batch_and_are_healed(
    days: int, every: int, tmp_path: Path, spark: SparkSession
) -> None:
    """Foreign key, stream's key, `where`, event time, text: each bad record is told, all others are as in the model.

    In the end the expressions are mended and the texts corrected, and nothing is left in quarantine.
    """
    lines = history(days, every, SEED)
    bad = [line for line in lines if line.poison]
    assert len(bad) == days // every
    write_sources(tmp_path, lines)
    pipeline, model = make_pipeline(tmp_path, BEFORE), Model()
    lake = Lake(pipeline.lake)
    for day, batch in enumerate(run_batches(pipeline, spark)):
        today = [line for line in lines if line.day == day]
        model.take([line for line in today if line.poison is None])
        expected = {
            name: sum(line.source == name and bool(line.poison) for line in today) for name in batch.tables
        }
        assert {name: counts["quarantined"] for name, counts in batch.tables.items()} == expected, batch.dates
    assert day == days - 1
    assert _joined(spark, lake, "located", "customer") == model.located()
    assert _joined(spark, lake, "visits", "page") == model.visits()

    waiting = in_quarantine(pipeline, spark, tuple(pipeline.inputs)).collect()
    told = {(row["table"], Path(row["file"]).name, row["line"]): row for row in waiting}
    assert sorted(told) == sorted(map(_place, bad))
    for line in bad:
        reason, cause = TOLD[line.poison]
        row = told[_place(line)]
        assert (row["reason"], cause in (row["detail"] or "")) == (reason, True), row

    _heal(tmp_path, lines, bad, spark)
    pipeline = make_pipeline(tmp_path, MENDED)
    model.take(bad)
    assert in_quarantine(pipeline, spark, tuple(pipeline.inputs)).collect() == []
    assert _joined(spark, lake, "located", "customer") == model.located()
    last = Model()  # the stream's join is a new one: it met the customers as they are in the end
    last.take([line for line in lines if line.source != "clicks"])
    last.take([line for line in lines if line.source == "clicks"])
    assert _joined(spark, lake, "visits_mended", "page") == last.visits()


def _heal(folder: Path, lines: list[Line], bad: list[Line], spark: SparkSession) -> None:
    """Correct the texts in their files, mend the expressions and the bound of times, and read the others again."""
    pipeline = make_pipeline(folder, BEFORE)
    for broken in [line for line in bad if line.poison == "parse"]:
        file = [line for line in lines if (line.source, line.day) == (broken.source, broken.day)]
        write_sources(folder, file, mended=True)
        assert run(pipeline, spark, replace=broken.date) == 1
    pipeline = make_pipeline(folder, MENDED)
    assert run(pipeline, spark, rebuild=["located"]) == 1
    assert len(list(retry(pipeline, lambda: spark, tuple(pipeline.inputs)))) == 1
