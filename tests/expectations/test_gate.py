"""The gate is one query that leaves the caller's frames alone."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakejoin.expectations.gate import gate
from lakejoin.expectations.keys import Kind

Frames = dict[str, DataFrame]


def jobs_of(spark: SparkSession, group: str, action: Callable[[], object]) -> int:
    """Return how many Spark jobs an action starts."""
    spark.sparkContext.setJobGroup(group, group)
    try:
        action()
    finally:
        spark.sparkContext.setJobGroup("", "")
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup(group))


def materialised(frames: Frames) -> Frames:
    """Return the frames persisted, in more than one partition, and computed."""
    kept = {name: frame.repartition(2).persist() for name, frame in frames.items()}
    for frame in kept.values():
        frame.count()
    return kept


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["inner", "left", "table"])
def test_small_gate_is_one_job(
    kind: Kind, spark: SparkSession, sound: Any, frames: Callable[[Any], Frames]
) -> None:
    """Over rows that are at hand the whole gate runs as one Spark job, however many rules and joins."""
    kept = materialised(frames(sound(kind)))
    results = gate(kept, kind, small=True)
    assert jobs_of(spark, f"gate-{kind}", results.collect) == 1
    for frame in kept.values():
        frame.unpersist()


@pytest.mark.spark
@pytest.mark.parametrize("small", [True, False], ids=["small", "large"])
def test_gate_leaves_frames_persisted(small: bool, sound: Any, frames: Callable[[Any], Frames]) -> None:
    """A frame that the caller keeps in memory is still there after the gate."""
    kept = materialised(frames(sound("inner")))
    gate(kept, "inner", small=small).collect()
    assert all(frame.storageLevel.useMemory for frame in kept.values())
    for frame in kept.values():
        frame.unpersist()


@pytest.mark.spark
def test_gates_in_threads_do_not_meet(sound: Any, row: Any, frames: Callable[[Any], Frames]) -> None:
    """Joins that are gated at the same time each get the result on their own frames."""
    broken = sound("inner")
    broken["joined"].append(row("joined", 1, 11, "A", 21, 3))
    both = [frames(sound("inner")), frames(broken)] * 3

    def offending(mine: Frames) -> int:
        return sum(result["offending"] for result in gate(mine, "inner", small=True).collect())

    with ThreadPoolExecutor(max_workers=6) as threads:
        assert list(threads.map(offending, both)) == [0, 1] * 3


@pytest.mark.spark
def test_gate_leaves_no_view_behind(spark: SparkSession, sound: Any, frames: Callable[[Any], Frames]) -> None:
    """The names by which the query reads the frames are gone when it is built."""
    gate(frames(sound("inner")), "inner")
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("_pyspark")]


def test_gate_names_missing_frames() -> None:
    """A frame that the rules need and that is not given is an error that names it."""
    with pytest.raises(ValueError, match=r"kind 'table' also need the frames rows; found: joined\."):
        gate({"joined": None}, "table")  # type: ignore[dict-item]


def test_gate_does_not_import_great_expectations() -> None:
    """Neither the gate nor the front of the validation waits for Great Expectations, which takes seconds."""
    program = (
        "import sys, os, lakejoin.expectations.gate, lakejoin.expectations.validation\n"
        "assert not any(name.startswith('great_expectations') for name in sys.modules)\n"
        "assert os.environ['GX_ANALYTICS_ENABLED'] == 'false'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
