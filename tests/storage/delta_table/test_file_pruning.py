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

from lakejoin.storage.delta_table.direct_scan import read_table
from lakejoin.storage.delta_table.file_pruning import Few, FilesRead, Range, condition, holding, statistics_of
from lakejoin.storage.spark.session import changed_settings
from lakejoin.transforms.model.schemas import BATCH

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
    with patch("lakejoin.storage.delta_table.file_pruning.MOST_RANGES", most):
        found = holding(few, ranges(*bounds))

    needed = [
        low is None or any(key is not None and low <= key <= (high or 0) for key in keys)
        for low, high in bounds
    ]
    assert all(may for may, must in zip(found, needed, strict=True) if must)
    if len(bounds) <= most:
        assert found == needed


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3) | st.sampled_from(
    ["b" * 40, "\0", "é" * 20]
)


@settings(max_examples=8, phases=[Phase.explicit, Phase.generate], deadline=None)
@given(stored=st.sets(TEXTS, min_size=8, max_size=40), more=st.sets(TEXTS, max_size=4), data=st.data())
def test_rows_of_few_keys_are_found_by_page(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, stored: set[str], more: set[str], data: Any
) -> None:
    """Whatever text the keys are, exactly their rows are left."""
    path, ordered = str(tmp_path_factory.mktemp("few") / "t"), sorted(stored)
    wanted = {*data.draw(st.sets(st.sampled_from(ordered), max_size=4)), *more}
    frame = spark.createDataFrame([(text, 1) for text in ordered], f"key string, {BATCH} bigint")
    with changed_settings(spark, {"parquet.page.row.count.limit": "3"}):
        frame.repartitionByRange(2, "key").sortWithinPartitions("key").write.format("delta").save(path)
    keys = spark.createDataFrame([(text,) for text in wanted], "key string")

    with patch("lakejoin.storage.delta_table.file_pruning.TOLD_TOGETHER", 2):
        rows = read_table(spark, path, 0, frame.schema, few=Few(keys, "key", most=len(wanted)))

    assert sorted(row.key for row in rows.collect()) == sorted(stored & wanted)


def test_keys_are_not_told_one_by_one_where_they_are_many_or_another_text_in_python(
    spark: SparkSession,
) -> None:
    """Then only the ranges of files count."""
    schema, large = StructType.fromDDL("key string"), ranges(("a", "z"))
    keys = spark.sql("SELECT * FROM VALUES ('b'), ('c') AS t(key)")
    broken = spark.sql("SELECT CAST(x'62ff' AS string) AS key")

    told = [
        condition(few, large, schema)[1] is not None
        for few in (Few(keys, "key", 2), Few(keys, "key"), Few(keys, "key", 2_001), Few(broken, "key", 1))
    ]

    assert told == [True, False, False, False]
    assert condition(Few(broken, "key", 1), large, schema)[0] == [True]


@pytest.fixture
def jobs(spark: SparkSession) -> Iterator[list[Any]]:
    """What was asked of Spark."""
    asked: list[Any] = []
    with patch(
        "lakejoin.storage.delta_table.file_pruning.aggregated",
        side_effect=lambda *question: asked.append(question),
    ):
        yield asked


def test_nothing_is_asked_where_reading_costs_no_more(spark: SparkSession, jobs: list[Any]) -> None:
    """Of small tables, and of those that only have small files."""
    few = Few(spark.range(1).select(F.col("id")), "id")
    with patch("lakejoin.storage.delta_table.file_pruning.WORTH_ROWS", 3):
        assert holding(few, ranges((1, 2), (5, 6))) == [True, True]
    with patch("lakejoin.storage.delta_table.file_pruning.LARGE_FILE", 2):
        assert holding(few, ranges((1, 2), (5, 6))) == [True, True]
    assert holding(few, []) == []
    assert jobs == []
