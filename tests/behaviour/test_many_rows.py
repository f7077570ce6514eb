"""A large batch of typed rows takes shorter ways where nothing can go wrong on them, and ends as on the long ones."""

from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from faults.shop import make_pipeline, run, texts
from lakejoin.orchestration.batch.tables import apply_to_table
from lakejoin.orchestration.planning import input_records
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, changes_of

pytestmark = pytest.mark.spark

_CONFIGURATION = """\
name: many
lake: ./lake
tables:
  orders:
    source: {format: parquet, path: "orders/*.parquet"}
    columns: {id: bigint, version: int, name: string}
    key: [id]
    sequence: [version]
"""
_BATCHES = (
    [("c", 1, 1, "a"), ("c", 2, 1, "b"), ("c", 3, 1, None)],
    [("u", 1, 2, "aa"), ("u", 2, 1, "b"), ("u", 3, 0, "late"), ("d", 4, 1, None), ("c", 5, 1, "e")],
    [("u", 1, 3, "c"), ("u", 1, 4, "d"), ("c", 6, 1, "f")],
    [("d", 5, 2, None), ("x", 6, 2, "g"), ("u", None, 7, "h"), ("c", 7, 1, "i")],
)
"""First rows, changes of some, two changes of a key, and records that cannot be accepted."""

Found = dict[str, list[str]]


class Ways:
    """Which ways a run took, batch by batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.unsorted: list[bool] = []
        self.not_judged: list[bool] = []
        unwatched, read = apply_to_table.apply_changes, input_records.read_records

        @wraps(unwatched)
        def watched_changes(*args: Any, alone: bool) -> DataFrame:
            self.unsorted.append(alone)
            return unwatched(*args, alone=alone)

        @wraps(read)
        def watched_read(spark: SparkSession, table: Any, options: Any, *others: Any) -> DataFrame:
            if options.flawless:
                self.not_judged[-1] = True
            else:
                self.not_judged.append(False)
            return read(spark, table, options, *others)

        monkeypatch.setattr(apply_to_table, "apply_changes", watched_changes)
        monkeypatch.setattr(input_records, "read_records", watched_read)


def work_off(folder: Path, spark: SparkSession) -> tuple[Found, list[dict[str, int]]]:
    """Work off the batches one after the other; return the rows of the tables, and the counts of each batch."""
    (folder / "orders").mkdir(parents=True)
    pipeline = make_pipeline(folder, _CONFIGURATION)
    for number, rows in enumerate(_BATCHES):
        names = pa.schema({"op": pa.string(), "id": pa.int64(), "version": pa.int32(), "name": pa.string()})
        records = [dict(zip(names.names, row, strict=True)) for row in rows]
        pq.write_table(pa.Table.from_pylist(records, names), folder / "orders" / f"{number}.parquet")
        assert run(pipeline, spark) == 1
    lake = Lake(pipeline.lake)
    frames = {
        name: spark.read.format("delta").load(lake.path(name)) for name in (changes_of("orders"), QUARANTINE)
    }
    # without a time of its own a change has that of its batch
    found = {name: texts(frame.drop("_lj_time")) for name, frame in frames.items()}
    return found, [published.tables["orders"] for published in Journal(lake).published]


def test_large_batches_take_the_short_ways_and_end_as_small_ones(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are not sorted unless a key has two records, and not judged once more unless one is not acceptable."""
    ways = Ways(monkeypatch)
    small = work_off(tmp_path / "small", spark)
    assert (ways.unsorted, ways.not_judged) == ([False] * 4, [False] * 4)
    ways = Ways(monkeypatch)
    monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", -1)

    large = work_off(tmp_path / "large", spark)

    assert ways.unsorted == [True, True, False, True]
    assert ways.not_judged == [True, True, True, False]
    assert large == small
    assert [len(rows) for rows in large[0].values()] == [13, 2]
