"""KIP-923's example through a pipeline: its table, its stream, and every result it prints.

The same rows go into four tables: two are whole before the stream is read; the other two hold only what was
so at timestamp 1 by then, and learn the rest a batch later. The page has lost the times of the stream's
records; those below make both of its results what it prints.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession

from faults.shop import write_lines
from lakejoin.orchestration.config import load
from lakejoin.orchestration.runs.run import run_batches

pytestmark = pytest.mark.spark

TABLE = (("1", "a", "a", "a"), ("2", "b", "x", "x"), ("3", "c", "c", "y"))
"""Key, value at timestamp 1, at 2, at 3: "a versioned table like this and a history retention time of 10"."""
STREAM = (("1", "d", 1), ("2", "e", 1), ("3", "f", 2), ("2", "g", 3), ("3", "h", 3))
FIRST_RESULT = [("1", "da"), ("2", "ex"), ("3", "fy"), ("2", "gx"), ("3", "hy")]
"""Key and join result: "without buffering the stream it could look like this"."""
SECOND_RESULT = [("1", "da"), ("2", "eb"), ("3", "fc"), ("2", "gb"), ("3", "hc")]
"""The same: "or this is also a valid result"."""
AS_OF_RESULT = [("1", "da"), ("2", "eb"), ("3", "fc"), ("2", "gx"), ("3", "hy")]
"""What the proposal is for: "the record in the table side is the right one for its timestamp"."""

_VERSIONED = {"event_time": "ts", "versioned": {"history_retention": "10 milliseconds"}}
_DAYS = ("2024-03-01", "2024-03-02")
_TABLES: Mapping[str, tuple[tuple[tuple[int, ...], ...], dict[str, Any]]] = {
    # timestamps whose rows come on each day, and what is declared
    "whole": (((1, 2, 3),), {}),
    "whole_versioned": (((1, 2, 3),), _VERSIONED),
    "learning": (((1,), (2, 3)), {}),
    "learning_versioned": (((1,), (2, 3)), _VERSIONED),
}
_JOINS: Mapping[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "whole_table": ({"table": "whole"}, FIRST_RESULT),
    "learning_table": ({"table": "learning"}, SECOND_RESULT),
    "whole_history": ({"table": "whole_versioned"}, AS_OF_RESULT),
    "learning_history": ({"table": "learning_versioned"}, SECOND_RESULT),
    "with_grace": ({"table": "learning_versioned", "grace": "5 milliseconds"}, AS_OF_RESULT),
}


def test_example_gives_the_results_that_the_proposal_prints(tmp_path: Path, spark: SparkSession) -> None:
    """Without grace they depend on what was read when; with grace there is one, the right one."""
    _write_sources(tmp_path)
    pipeline = load(_write_pipeline(tmp_path))
    expected = {join: result for join, (_, result) in _JOINS.items()}
    days = [_joined(spark, Path(pipeline.lake)) for _ in run_batches(pipeline, spark)]
    assert days == [{**expected, "with_grace": []}] * len(_DAYS)
    flushed = [report.joins["with_grace"]["released"] for report in run_batches(pipeline, spark, flush=True)]
    assert flushed == [len(STREAM)]
    assert _joined(spark, Path(pipeline.lake)) == expected
    path = Path(pipeline.lake) / "joins" / "with_grace" / "joined"
    feed = (
        spark.read.option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .format("delta")
        .load(str(path))
    )
    followed = [
        (row["k"], row["v"] + row["right_v"], row["_change_type"]) for row in feed.orderBy("id").collect()
    ]
    assert followed == [(*row, "insert") for row in expected["with_grace"]]


def _joined(spark: SparkSession, lake: Path) -> dict[str, list[tuple[str, str]]]:
    """Key and join result of every output so far, in the order of the stream."""
    found: dict[str, list[tuple[str, str]]] = {join: [] for join in _JOINS}
    for join in _JOINS:
        path = lake / "joins" / join / "joined"
        if (path / "_delta_log").is_dir():  # not there before anything was emitted
            rows = spark.read.format("delta").load(str(path)).orderBy("id").collect()
            found[join] = [(row["k"], row["v"] + row["right_v"]) for row in rows]
    return found


def _write_pipeline(folder: Path) -> Path:
    columns = {"k": "string", "v": "string", "ts": {"type": "timestamp", "as": "millis"}}
    table: dict[str, Any] = {"columns": columns, "key": ["k"]}
    stream = {"columns": {"id": "int", **columns}, "key": ["id"], "event_time": "ts"}
    join = {"stream": "events", "foreign_key": ["k"], "how": "inner"}
    document = {
        "name": "kip923",
        "lake": "./lake",
        "tables": {name: {"source": _source(name), **table, **own} for name, (_, own) in _TABLES.items()},
        "streams": {"events": {"source": _source("events"), **stream}},
        "joins": {name: {**join, **own} for name, (own, _) in _JOINS.items()},
    }
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def _source(name: str) -> dict[str, Any]:
    return {"format": "jsonl", "path": f"{name}/{{date}}.jsonl"}


def _write_sources(folder: Path) -> None:
    for name, (days, _) in _TABLES.items():
        for day, times in zip(_DAYS, days, strict=False):
            rows = [{"op": "c", "k": row[0], "v": row[time], "ts": time} for time in times for row in TABLE]
            write_lines(folder / name / f"{day}.jsonl", rows)
    events = [
        {"op": "c", "id": number, "k": k, "v": v, "ts": time} for number, (k, v, time) in enumerate(STREAM)
    ]
    write_lines(folder / "events" / f"{_DAYS[0]}.jsonl", events)
