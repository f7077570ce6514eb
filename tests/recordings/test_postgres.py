"""What a real Debezium recorded from PostgreSQL in four settings, beside PostgreSQL's own answers, cell by cell."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faults.shop import run
from recordings.reading import Special, add_steps, answers, differences, joined, pipeline_of

pytestmark = pytest.mark.spark

KEYS = {
    "orders_with_customers": ["id"], "items_with_orders": ["order_id", "line"], "kinds_with_customers": ["id"],
    "documents_with_customers": ["id"], "edges_with_customers": ["id"],
}  # fmt: skip
ENDS = {
    "infinity": ("9999-12-31 23:59:59.999999", "9999-12-31"),
    "-infinity": ("0001-01-01 00:00:00", "0001-01-01"),
}


def micros(name: str) -> Any:
    """The microseconds of a day that a time of it is."""

    def of(answer: Mapping[str, Any]) -> int | None:
        if answer[name] is None:
            return None
        hours, minutes, seconds = answer[name].split(":")
        return (int(hours) * 60 + int(minutes)) * 60_000_000 + round(float(seconds) * 1_000_000)

    return of


def little_endian(name: str) -> Any:
    """A bit string as the bytes that Debezium makes of it: the last bit first, no zeros at the end."""

    def of(answer: Mapping[str, Any]) -> str | None:
        if answer[name] is None:
            return None
        number = int(answer[name] or "0", 2)
        return number.to_bytes((number.bit_length() + 7) // 8, "little").hex()

    return of


def place(answer: Mapping[str, Any]) -> Any:
    """The two numbers of a point."""
    return None if answer["place_x"] is None else {"x": str(answer["place_x"]), "y": str(answer["place_y"])}


ALL: Special = {}


def steps_differ(
    spark: SparkSession, folder: Path, setting: str, steps: list[list[int]], special: Special
) -> list[str]:
    """Every difference, after each batch of steps."""
    pipeline, told = pipeline_of("postgres", setting, folder), list[str]()
    for batch in steps:
        add_steps("postgres", setting, folder, batch)
        assert run(pipeline, spark) == 1
        types, rows = joined(pipeline, spark)
        for name, key in KEYS.items():
            found = differences(types[name], rows[name], answers("postgres", name, batch[-1]), key, special)
            told += [f"{name} after step {batch[-1]} {difference}" for difference in found]
    return told


def test_explore(tmp_path, spark):
    import os

    for setting in os.environ["SETTINGS"].split():
        told = steps_differ(spark, tmp_path / setting, setting, [[1, 2, 3]], {})
        print("\n".join(f"@@{setting} {line}" for line in told))
        q = spark.read.format("delta").load(str(tmp_path / setting / "lake/quarantine"))
        for r in q.collect():
            print(f"@@Q {setting}", str(r.asDict())[:700])
