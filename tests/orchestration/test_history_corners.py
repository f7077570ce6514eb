"""Versioned tables fed by Debezium, whose records leave out values and whose deletes may lack a line."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faults.shop import run, write_lines
from orchestration.config import Pipeline, load
from orchestration.cut import published_cut
from storage.journal import Journal
from storage.lake import Lake
from storage.state import State
from transforms.schemas import DELETED
from transforms.versions import VALID_FROM, VALID_TO, intervals

pytestmark = pytest.mark.spark

TEXT = """\
name: history
lake: ./lake
tables:
  rows:
    source: {format: debezium, path: "rows/{date}.jsonl", time: millis}
    columns: {k: string, note: string, ts: timestamp}
    key: [k]
    sequence: [lsn]
    event_time: ts
    versioned: {history_retention: 10 days}
"""
LEFT_OUT = "__debezium_unavailable_value"
TOMBSTONE = {"key": {"k": "1"}, "value": None}


def line(time: int, note: str | None) -> dict[str, Any]:
    """A record of the key; its place in the source's log goes with its time."""
    row = {"k": "1", "note": note, "ts": time}
    return {
        "key": {"k": "1"},
        "value": {"op": "u", "before": None, "after": row, "ts_ms": time, "source": {"lsn": time}},
    }


def days(folder: Path, *files: list[dict[str, Any]]) -> Pipeline:
    """Write a pipeline and its days."""
    (folder / "lakejoin.yaml").write_text(TEXT)
    for number, lines in enumerate(files, start=1):
        write_lines(folder / "rows" / f"2024-01-{number:02}.jsonl", lines)
    return load(folder / "lakejoin.yaml")


def history(pipeline: Pipeline, spark: SparkSession) -> list[tuple[Any, ...]]:
    """Value of the key and its validity, in milliseconds since 1970; no value where it did not exist."""
    state, table = (
        State(spark, lake := Lake(pipeline.lake), published_cut(Journal(lake))),
        pipeline.tables["rows"].spec,
    )
    rows = intervals(state.versions(table, None, small=False), table).orderBy(VALID_FROM)
    chosen = rows.selectExpr(
        f"if({DELETED}, null, note)", f"unix_millis({VALID_FROM})", f"unix_millis({VALID_TO})"
    )
    return [tuple(row) for row in chosen.collect()]


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_late_record_does_not_take_a_value_it_left_out_from_a_newer_one(
    together: bool, tmp_path: Path, spark: SparkSession
) -> None:
    """One that comes again changes nothing; of another nobody knows what it left out."""
    first = [line(100, "A"), line(200, LEFT_OUT), line(1000, "B")]
    again = [line(200, LEFT_OUT), line(300, LEFT_OUT)]
    pipeline = days(tmp_path, *([first + again] if together else [first, again]))
    run(pipeline, spark)
    assert history(pipeline, spark) == [("A", 100, 200), ("A", 200, 1000), ("B", 1000, None)]
    counts = [batch.tables["rows"] for batch in Journal(Lake(pipeline.lake)).published]
    assert sum(count["out_of_order"] for count in counts) == 1
    assert sum(count["quarantined"] for count in counts) == 1


def test_tombstone_without_its_delete_deletes_at_the_time_of_the_row(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It has no time of its own; the batch's clock would be years after the data."""
    pipeline = days(tmp_path, [line(100, "A"), TOMBSTONE], [line(500, "B")])
    run(pipeline, spark)
    assert history(pipeline, spark) == [(None, 100, 500), ("B", 500, None)]
