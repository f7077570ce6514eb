"""Files that cannot hold a batch's keys are passed over, and never one that holds some."""

from collections.abc import Iterator
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from deltalake import DeltaTable
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from storage.delta_table.direct_scan import read_table
from storage.delta_table.file_pruning import Few, FilesRead, Range, holding, statistics_of
from transforms.model.schemas import BATCH

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("prunes")]


def ranges(*bounds: tuple[Any, Any]) -> list[Range]:
    """Large files."""
    return [Range(1, *bound) for bound in bounds]


def table_of(spark: SparkSession, path: str, values: list[Any], dtype: str) -> StructType:
    """A base of a file for every two values, in their order; returns its schema."""
    rows = [(value, 1) for value in values]
    frame = spark.createDataFrame(rows, f"key {dtype}, {BATCH} bigint")
    files = -(-len(values) // 2)
    frame.repartitionByRange(files, "key").sortWithinPartitions("key").write.format("delta").save(path)
    assert len(DeltaTable(path).file_uris()) == files
    return frame.schema


KINDS: dict[str, tuple[str, list[Any], list[Any], int]] = {
    "numbers": ("bigint", [-5, 1, 2, 3, 2**62, 2**62 + 1], [2**62 + 1, 2**62 + 2], 1),
    "texts": ("string", ["", "a", "b" * 100, "b" * 101, "é", "\U0001f600"], ["b" * 101], 1),
    "texts behind each other": ("string", ["a", "b", "c", "d"], ["", "bb", "e", None], 0),
    "days": ("date", [date(1, 1, 1), date(2024, 1, 1), date(2024, 1, 2), date(9999, 12, 31)], [date(2024, 1, 2)], 1),
    "structs": ("struct<id:int,part:string>", [(1, "a"), (1, "b"), (2, "a"), (3, "a")], [(1, "z")], 1),
    "times": ("timestamp", [datetime(2024, 1, d) for d in (1, 2, 3, 4)], [datetime(2024, 1, 1)], 2),  # noqa: DTZ001
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_only_files_that_may_hold_a_key_are_read(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Whatever the type of the key; times are cut in the statistics, and so not relied upon."""
    dtype, stored, wanted, expected = KINDS[kind]
    path, counts = str(tmp_path / "it's a table"), FilesRead()
    schema = table_of(spark, path, stored, dtype)
    keys = spark.createDataFrame([(value,) for value in wanted], f"key {dtype}")

    rows = read_table(
        spark, path, 0, schema, few=Few(keys, "key"), count=partial(counts.add, "tables/t/rows")
    )

    assert len(rows.inputFiles()) == expected
    every = spark.read.format("delta").load(path)
    found, all_found = (frame.join(keys, "key").count() for frame in (rows, every))
    assert found == all_found
    assert counts.by_table == {"tables/t/rows": {"read": expected, "held": len(stored) // 2}}


def test_files_without_statistics_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """As those of a table with many columns before its key."""
    path = str(tmp_path / "t")
    spark.conf.set("spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols", "0")
    try:
        schema = table_of(spark, path, [1, 2, 3, 4], "int")
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols")
    keys = spark.createDataFrame([(1,)], "key int")
    assert len(read_table(spark, path, 0, schema, few=Few(keys, "key")).inputFiles()) == 2


def test_names_with_dots_are_not_mistaken_for_fields(spark: SparkSession) -> None:
    """What delta-rs calls `a.b` may be either."""
    schema = StructType.fromDDL("`a.b` int, a struct<b:int>, c struct<`d.e`:int>, f int")
    assert [statistics_of(name, schema) for name in schema.names] == [None, "a.b", None, "f"]


BOUNDS = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair)))


@settings(max_examples=15, phases=[Phase.explicit, Phase.generate], deadline=None)
@given(
    bounds=st.lists(BOUNDS | st.just((None, None)), min_size=1, max_size=8),
    keys=st.lists(st.integers(0, 20) | st.none(), max_size=4),
    most=st.integers(1, 8),
)
@example(bounds=[(0, 9), (3, 4), (5, 5), (6, 7)], keys=[8], most=2)
@example(bounds=[(0, 1), (2, 3)], keys=[], most=8)
def test_no_file_that_may_hold_a_key_is_passed_over(
    spark: SparkSession, bounds: list[tuple[int | None, int | None]], keys: list[int | None], most: int
) -> None:
    """Exactly the others are, unless there are so many that neighbours are asked about together."""
    few = Few(spark.createDataFrame([(key,) for key in keys], "id int"), "id")
    with patch("storage.delta_table.file_pruning.MOST_RANGES", most):
        found = holding(few, ranges(*bounds))

    needed = [
        low is None or any(key is not None and low <= key <= (high or 0) for key in keys)
        for low, high in bounds
    ]
    assert all(may for may, must in zip(found, needed, strict=True) if must)
    if len(bounds) <= most:
        assert found == needed


@pytest.fixture
def jobs(spark: SparkSession) -> Iterator[list[Any]]:
    """What was asked of Spark."""
    asked: list[Any] = []
    with patch(
        "storage.delta_table.file_pruning.aggregated", side_effect=lambda *question: asked.append(question)
    ):
        yield asked


def test_nothing_is_asked_where_reading_costs_no_more(spark: SparkSession, jobs: list[Any]) -> None:
    """Of small tables, and of those that only have small files."""
    few = Few(spark.range(1).select(F.col("id")), "id")
    with patch("storage.delta_table.file_pruning.WORTH_ROWS", 3):
        assert holding(few, ranges((1, 2), (5, 6))) == [True, True]
    with patch("storage.delta_table.file_pruning.LARGE_FILE", 2):
        assert holding(few, ranges((1, 2), (5, 6))) == [True, True]
    assert holding(few, []) == []
    assert jobs == []
