"""Columns that are called as Lakejoin calls things on its way: they are data like any other."""

from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from faults.shop import run, write_lines
from orchestration.config import load
from storage.lake import Lake, joined_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = (
    "answer", "at_once", "batch", "before", "cause", "content", "date", "deleted", "detail", "due", "file",
    "foreign_key", "hash", "instruction", "key", "known", "last", "left_hash", "line", "met", "position",
    "primary_key", "raw", "reason", "record", "resolution", "right_hash", "right_key", "right_value",
    "sequence", "stream", "table", "value", "version",
)  # fmt: skip


def test_columns_may_be_called_as_what_batches_work_with(tmp_path: Path, spark: SparkSession) -> None:
    """On both sides of a join of tables and of a stream, where rows come, move and go."""
    columns = {"id": "bigint", "ref": "bigint", **dict.fromkeys(NAMES, "string"), "at": "timestamp"}

    def source(name: str) -> dict[str, object]:
        path = f"{name}/{{date}}.jsonl"
        return {
            "source": {"format": "jsonl", "path": path},
            "columns": columns,
            "key": ["id"],
            "event_time": "at",
        }

    join = {"foreign_key": ["ref"], "how": "left", "prefix": "b_"}
    pipeline = {
        "name": "names",
        "lake": "./lake",
        "tables": {"a": source("a"), "b": source("b") | {"versioned": {"history_retention": "9 days"}}},
        "streams": {"s": source("s")},
        "joins": {
            "tables": {"left": "a", "right": "b", "changelog": True, **join},
            "marked": {"left": "a", "right": "b", "resolution": "highwater", **join},
            "paired": {"left": "a", "right": "b", "result_key": "combined", **join, "how": "inner"},
            "timed": {"stream": "s", "table": "b", "grace": "1 hour", **join},
            "now": {"stream": "s", "table": "b", **join},
        },
    }
    (tmp_path / "lakejoin.yaml").write_text(yaml.safe_dump(pipeline))

    def write(day: int, name: str, *rows: tuple[str, int, int | None]) -> None:
        texts = {column: f"{column} of {name} on {day}" for column in NAMES}
        time = f"2024-01-{day:02}T12:00:00Z"
        records = [{"op": op, "id": key, "ref": ref, "at": time, **texts} for op, key, ref in rows]
        write_lines(tmp_path / name / f"2024-01-{day:02}.jsonl", records)

    write(1, "a", ("c", 1, 10), ("c", 2, 10), ("c", 3, 11))
    write(1, "b", ("c", 10, None), ("c", 11, None))
    write(1, "s", ("c", 1, 10))
    write(2, "a", ("u", 1, 11), ("d", 2, None), ("c", 4, 12))
    write(2, "b", ("u", 10, None), ("c", 12, None))
    write(2, "s", ("c", 2, 11))
    run(load(tmp_path / "lakejoin.yaml"), spark, flush=True)

    lake = Lake(str(tmp_path / "lake"))
    for name, expected in {
        "tables": [(1, 11, 2, 1), (3, 11, 1, 1), (4, 12, 2, 2)],
        "marked": [(1, 11, 2, 1), (3, 11, 1, 1), (4, 12, 2, 2)],
        "paired": [(1, 11, 2, 1), (3, 11, 1, 1), (4, 12, 2, 2)],
        "timed": [(1, 10, 1, 1), (2, 11, 2, 1)],
        "now": [(1, 10, 1, 1), (2, 11, 2, 1)],
    }.items():
        rows = spark.read.format("delta").load(lake.path(joined_of(name))).orderBy("id").collect()
        assert [(row["id"], row["ref"]) for row in rows] == [row[:2] for row in expected], name
        for row, (_, _, left, right) in zip(rows, expected, strict=True):
            for column in NAMES:
                side = "s" if name in {"timed", "now"} else "a"
                assert row[column] == f"{column} of {side} on {left}", (name, column)
                assert row[f"b_{column}"] == f"{column} of b on {right}", (name, column)
