"""Statistics of texts from footers are those that Delta gathers, and no reader finds fewer."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import append
from lakejoin.storage.delta_table.footer_statistics import columns_but_texts
from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.spark.session import changed_settings
from lakejoin.storage.state.joined_table import PROPERTIES

FIRST = Transaction("lake/stage", 1, {})
DEFAULTS = "spark.databricks.delta.properties.defaults"
LONG = "á" * 31 + "𝄞" * 5 + "z" * 6000
SIMPLE = "id BIGINT, price DECIMAL(38, 10), name STRING, open BOOLEAN, at TIMESTAMP, of STRUCT<note: STRING, n: INT>"
ROWS = [
    (1, "1234567890123456789012345678.0123456789", "b", True, "2026-01-01 00:00:00.123456", ("x", 1)),
    (2, None, "", None, None, None),
    (3, "0.1", LONG, False, "1970-01-01", (None, None)),
    (4, "-7", None, None, None, ('quote " and \\', 3)),
    (5, "-7", "\uffff" * 40, None, None, ("\U0010ffff" * 33, 3)),
]


def frame(spark: SparkSession, rows: list[Any], schema: str = SIMPLE) -> DataFrame:
    """Rows as a table may begin with them, in one file."""
    texts = schema.replace("DECIMAL(38, 10)", "STRING").replace("TIMESTAMP", "STRING")
    found = spark.createDataFrame(rows, texts)
    return found.select(*[F.col(name).cast(kind) for name, kind in typed(spark, schema)]).coalesce(1)


def typed(spark: SparkSession, schema: str) -> list[tuple[str, Any]]:
    """The columns of a schema with their types."""
    return [(field.name, field.dataType) for field in spark.createDataFrame([], schema).schema]


def numbered(spark: SparkSession, count: int, files: int) -> DataFrame:
    """Rows with long texts in the order of their numbers."""
    digits = F.lpad(F.col("id").cast("string"), 10, "0")
    return spark.range(0, count, 1, files).select("id", F.rpad(digits, 50, ".").alias("text"))


def actions(table: Path) -> list[Any]:
    """What the first commit says, that of itself first."""
    return [json.loads(line) for line in (table / "_delta_log" / f"{0:020}.json").read_text().splitlines()]


def stated(table: Path) -> list[Any]:
    """What the first commit says of its files, as text; None where it says nothing."""
    return [action["add"].get("stats") for action in actions(table) if "add" in action]


def statistics(table: Path) -> list[Any]:
    """The same, each number as it was written."""
    return [json.loads(text, parse_float=str) for text in stated(table)]


def figures(table: Path) -> Any:
    """What the first commit says of itself."""
    return {**actions(table)[0]["commitInfo"]["operationMetrics"], "numOutputBytes": ""}


def both(rows: DataFrame, folder: Path) -> tuple[Path, Path]:
    """A table that begins with these rows, made by us and by Spark."""
    ours, theirs = folder / "ours", folder / "theirs"
    append(rows, str(ours), FIRST, PROPERTIES)
    rows.write.format("delta").options(**PROPERTIES).save(str(theirs))
    return ours, theirs


@pytest.mark.spark
@pytest.mark.parametrize(
    "rows", [ROWS, ROWS[1:2], ROWS[3:4], ROWS[:1]], ids=["all", "no long text", "no text", "one"]
)
def test_footers_tell_what_delta_gathers(rows: list[Any], tmp_path: Path, spark: SparkSession) -> None:
    """Texts that are empty, null, long and beyond the first plane; booleans; and decimals no float could hold."""
    ours, theirs = both(frame(spark, rows), tmp_path)
    assert statistics(ours) == statistics(theirs)
    assert figures(ours) == figures(theirs)


@pytest.mark.spark
def test_each_of_several_files_has_its_own_bounds(tmp_path: Path, spark: SparkSession) -> None:
    """And row groups of one file are put together."""
    rows = numbered(spark, 40_000, files=2)
    with changed_settings(spark, {"parquet.block.size": "200000"}):
        ours, theirs = both(rows, tmp_path)
    assert sorted(map(str, statistics(ours))) == sorted(map(str, statistics(theirs)))
    assert len(statistics(ours)) == 2
    assert all(pq.read_metadata(file).num_row_groups > 1 for file in ours.glob("*.parquet"))


@pytest.mark.spark
@pytest.mark.parametrize(
    "setting",
    [
        {f"{DEFAULTS}.dataSkippingNumIndexedCols": "2"},
        {f"{DEFAULTS}.dataSkippingStatsColumns": "name,price"},
        {"spark.databricks.delta.stats.collect": "false"},
    ],
    ids=["fewer columns", "other columns", "none"],
)
def test_statistics_that_a_session_states_are_left_to_delta(
    setting: dict[str, str], tmp_path: Path, spark: SparkSession
) -> None:
    """A user's word about statistics counts for the first rows of a table as for all others."""
    with changed_settings(spark, setting):
        ours, theirs = both(frame(spark, ROWS), tmp_path)
    assert stated(ours) == stated(theirs) != []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("asked", "error", "has_texts"),
    [
        ("pq.read_metadata", OSError("slow down"), False),
        ("open_file_system", SourceRefused("no such store"), True),
    ],
    ids=["just now", "ever"],
)
def test_footer_that_cannot_be_read_costs_no_more_than_bounds(
    asked: str,
    error: Exception,
    has_texts: bool,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The table begins all the same, and is whole: with bounds of numbers, or with all where Delta gathers them."""
    monkeypatch.setattr(f"lakejoin.storage.delta_table.footer_statistics.{asked}", Mock(side_effect=error))
    append(frame(spark, ROWS), str(tmp_path / "table"), FIRST, PROPERTIES)
    assert spark.read.format("delta").load(str(tmp_path / "table")).count() == len(ROWS)
    (found,) = statistics(tmp_path / "table")
    assert (found["numRecords"], found["minValues"]["id"]) == (5, 1)
    assert ("name" in found["minValues"]) == has_texts


@pytest.mark.spark
def test_reader_skips_files_by_texts(tmp_path: Path, spark: SparkSession) -> None:
    """A filter upon a text leaves out files that cannot hold it."""
    append(numbered(spark, 1000, files=4), str(tmp_path / "table"), FIRST, PROPERTIES)
    found = spark.read.format("delta").load(str(tmp_path / "table"))
    assert len(found.inputFiles()) == 4
    assert len(found.where(F.col("text") == "0000000999" + "." * 40).inputFiles()) == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("id BIGINT, `a,``b.c` DATE, text STRING", "`id`,`a,``b.c`"),
        ("id BIGINT, of STRUCT<at: TIMESTAMP, note: STRING>", "`id`,`of`.`at`"),
        ("id BIGINT, open BOOLEAN", None),
        ("text STRING", None),
        ("id BIGINT, text STRING, many ARRAY<INT>", None),
        (", ".join(f"n{number} INT" for number in range(32)) + ", text STRING", None),
    ],
)
def test_delta_gathers_all_where_footers_would_not_do(
    schema: str, expected: str | None, spark: SparkSession
) -> None:
    """Without texts among the first 32 columns nothing is gained; arrays are counted otherwise in footers."""
    assert columns_but_texts(spark.createDataFrame([], schema).schema) == expected
