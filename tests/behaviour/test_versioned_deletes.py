"""Deletes as Debezium writes them, in two lines, in a versioned table that does not take the first of them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.lake_state.quarantine_counts import open_counts
from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, known
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

pytestmark = pytest.mark.spark

_FAR_FUTURE = 10**13


def _line(op: str, time: int) -> dict[str, Any]:
    row = {"k": "1", "ts": time}
    before, after = (row, None) if op == "d" else (None, row)
    return {"key": {"k": "1"}, "value": {"op": op, "before": before, "after": after, "ts_ms": time}}


_TOMBSTONE = {"key": {"k": "1"}, "value": None}
_MOVED = {
    "key": {"k": "2"},
    "value": {
        "op": "u", "before": {"k": "1", "ts": 100}, "after": {"k": "2", "ts": _FAR_FUTURE}, "ts_ms": _FAR_FUTURE
    },
}  # fmt: skip
_LINES = [_line("c", 100), _line("d", 5), _TOMBSTONE, _line("d", _FAR_FUTURE), _TOMBSTONE]


def _write(folder: Path, records: list[dict[str, Any]]) -> Pipeline:
    """A versioned table and the records of a day."""
    table = {
        "source": {"format": "debezium", "path": "rows/{date}.jsonl"},
        "columns": {"k": "string", "ts": {"type": "timestamp", "as": "millis"}},
        "key": ["k"],
        "event_time": "ts",
        "versioned": {"history_retention": "10 milliseconds"},
    }
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump({"name": "deletes", "lake": "./lake", "tables": {"rows": table}}), "utf-8")
    (folder / "rows").mkdir()
    lines = "".join(f"{json.dumps(line)}\n" for line in records)
    (folder / "rows" / "2024-03-01.jsonl").write_text(lines, "utf-8")
    return load(path)


def test_key_that_changes_in_the_far_future_is_refused_once(tmp_path: Path, spark: SparkSession) -> None:
    """The record is a delete and an insert, and it is one record."""
    pipeline = _write(tmp_path, [_line("c", 100), _MOVED])
    (report,) = run_batches(pipeline, spark)
    lake = Lake(pipeline.lake)
    assert report.tables["rows"]["quarantined"] == 1
    assert open_counts(lake, Journal(lake)) == {"rows": {"in_the_future": 1}}
    (found,) = in_quarantine(pipeline, spark, known(pipeline, ())).collect()
    assert json.loads(found["raw"])["k"] == "2"


@pytest.mark.parametrize("batch_rows", [None, pytest.param(1, marks=pytest.mark.slow)])
def test_second_line_of_a_delete_that_was_not_taken_deletes_nothing(
    batch_rows: int | None, tmp_path: Path, spark: SparkSession
) -> None:
    """Of one that is older than the history and one from the far future, also at the start of a batch."""
    pipeline = _write(tmp_path, _LINES)
    reports = list(run_batches(pipeline, spark, batch_rows=batch_rows))
    expected = {"records": 5, "applied": 1, "expired": 1, "tombstone": 2, "quarantined": 1}
    assert {name: sum(report.tables["rows"][name] for report in reports) for name in expected} == expected
    assert reports[-1].rows["rows"] == 1
