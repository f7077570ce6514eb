"""Columns that are called as Lakejoin calls things on its way: they are data like any other."""

from datetime import date
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.config import load
from lakejoin.storage.lake.layout import Lake, joined_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAMES = (
    "answer", "at_once", "batch", "before", "cause", "content", "date", "deleted", "detail", "due", "exists", "file",
    "foreign_key", "greatest", "hash", "healed", "instruction", "key", "known", "left_hash", "line", "marks", "met",
    "one_of", "order", "part", "position", "primary_key", "raw", "reason", "record", "resolution", "right_hash",
    "right_key", "right_value", "sequence", "since", "stream", "table", "value", "version",
)  # fmt: skip


KEYS = {"a": "latest", "b": "last", "s": "passed"}
"""A left table, a versioned right one and a stream."""


@pytest.mark.parametrize("size", ["small", "large"])
def test_columns_may_be_called_as_what_batches_work_with(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, size: str
) -> None:
    """On both sides of a join of tables and of a stream, keys included, where rows come, move, go and come late."""
    if size == "large":
        monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", -1)

    def source(name: str) -> dict[str, object]:
        path = f"{name}/{{date}}.jsonl"
        return {
            "source": {"format": "jsonl", "path": path},
            "columns": {
                KEYS[name]: "bigint",
                "ref": "bigint",
                **dict.fromkeys(NAMES, "string"),
                "at": "timestamp",
            },
            "key": [KEYS[name]],
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

    def write(day: int, name: str, *rows: tuple[str, int, int | None], late: int | None = None) -> None:
        texts = {column: f"{column} of {name} on {day}" for column in NAMES}
        times = {key: f"2024-01-{1 if key == late else day:02}T12:00:00Z" for _, key, _ in rows}
        records = [
            {"op": op, KEYS[name]: key, "ref": ref, "at": times[key], **texts} for op, key, ref in rows
        ]
        write_lines(tmp_path / name / f"2024-01-{day:02}.jsonl", records)

    write(1, "a", ("c", 1, 10), ("c", 2, 10), ("c", 3, 11))
    write(1, "b", ("c", 10, None), ("c", 11, None))
    write(1, "s", ("c", 1, 10))
    write(2, "a", ("u", 1, 11), ("d", 2, None), ("c", 4, 12))
    write(2, "b", ("u", 10, None), ("c", 12, None))
    write(2, "s", ("c", 2, 11), ("c", 3, 10), late=3)
    run(make_pipeline(tmp_path, yaml.safe_dump(pipeline)), spark, flush=True)

    lake = Lake(str(tmp_path / "lake"))
    for name, expected in {
        "tables": [(1, 11, 2, 1), (3, 11, 1, 1), (4, 12, 2, 2)],
        "marked": [(1, 11, 2, 1), (3, 11, 1, 1), (4, 12, 2, 2)],
        "paired": [(1, 11, 2, 1), (3, 11, 1, 1), (4, 12, 2, 2)],
        "timed": [(1, 10, 1, 1), (2, 11, 2, 1)],
        "now": [(1, 10, 1, 1), (2, 11, 2, 1), (3, 10, 2, 1)],
    }.items():
        side = "s" if name in {"timed", "now"} else "a"
        key = KEYS[side]
        rows = spark.read.format("delta").load(lake.path(joined_of(name))).orderBy(key).collect()
        assert [(row[key], row["ref"]) for row in rows] == [row[:2] for row in expected], name
        for row, (_, _, left, right) in zip(rows, expected, strict=True):
            for column in NAMES:
                assert row[column] == f"{column} of {side} on {left}", (name, column)
                assert row[f"b_{column}"] == f"{column} of b on {right}", (name, column)


def test_keys_may_be_called_as_what_truncations_and_replaced_files_work_with(
    tmp_path: Path, spark: SparkSession
) -> None:
    """What was truncated is gone, and what a file has no more."""
    table = {
        "source": {"format": "debezium", "path": "rows/{date}.jsonl"},
        "columns": {"at": "bigint", "last": "bigint"},
        "key": ["at", "last"],
        "on_truncate": "delete",
    }
    join = {"left": "rows", "right": "rows", "foreign_key": ["at", "last"], "how": "inner"}
    pipeline = {"name": "keys", "lake": "./lake", "tables": {"rows": table}, "joins": {"same": join}}

    def write(day: int, *keys: int, truncate: bool = False) -> None:
        rows = [{"op": "c", "after": {"at": key, "last": key}} for key in keys]
        write_lines(tmp_path / "rows" / f"2024-01-{day:02}.jsonl", [{"op": "t"}] * truncate + rows)

    write(1, 1, 2)
    write(2, 3, truncate=True)
    write(3, 4, 5)
    run(make_pipeline(tmp_path, yaml.safe_dump(pipeline)), spark)
    write(3, 4)
    run(load(tmp_path / "lakejoin.yaml"), spark, replace=date(2024, 1, 3))

    rows = spark.read.format("delta").load(Lake(str(tmp_path / "lake")).path(joined_of("same"))).collect()
    assert sorted((row["at"], row["right_last"]) for row in rows) == [(3, 3), (4, 4)]
