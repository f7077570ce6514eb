"""Rows in files that no commit names yet: nobody sees them, and a table that they begin is like one of Spark's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import append
from lakejoin.storage.delta_table.direct_scan import ENCODING, LOG_PROPERTIES
from lakejoin.storage.delta_table.uncommitted_files import write
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.joined_table import PROPERTIES
from lakejoin.transforms.model.schemas import BATCH

pytestmark = pytest.mark.spark

FIRST, SECOND = (Transaction("lake/stage", batch, {}) for batch in (1, 2))


def rows(spark: SparkSession, *ids: int) -> DataFrame:
    """Rows with a nested column; none of their columns may be null, as computed ones are."""
    found = spark.range(10).where(F.col("id").isin(*ids)).coalesce(1)
    nested, batch = F.struct(F.lit("a").alias("text")), F.lit(1).cast("bigint")
    return found.select(batch.alias(BATCH), "id", nested.alias("nested"))


def ids(spark: SparkSession, path: Path) -> list[int]:
    """The keys that a reader of the table finds."""
    return sorted(row["id"] for row in spark.read.format("delta").load(str(path)).collect())


def stated(path: Path) -> dict[str, Any]:
    """What the first commit says of a table: protocol and metadata, apart from what is another one for each table."""
    lines = (path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    actions = {name: value for line in lines for name, value in json.loads(line).items()}
    kept = {name: value for name, value in actions["metaData"].items() if name not in {"id", "createdTime"}}
    return {"metadata": kept, "protocol": actions["protocol"]}


@pytest.mark.parametrize("properties", [PROPERTIES, LOG_PROPERTIES], ids=["joined", "log"])
def test_table_that_begins_states_what_one_of_spark_states(
    properties: dict[str, str], tmp_path: Path, spark: SparkSession
) -> None:
    """Columns that may be null, the properties given and those of the session, the features that they need."""
    append(rows(spark, 1), str(tmp_path / "ours"), FIRST, properties)
    rows(spark, 1).write.format("delta").options(**properties).save(str(tmp_path / "theirs"))
    ours, theirs = (stated(tmp_path / table) for table in ("ours", "theirs"))
    # Spark's writer takes Delta's own properties only
    theirs["metadata"]["configuration"] |= {n: v for n, v in properties.items() if n in ENCODING}
    assert ours == theirs
    assert ids(spark, tmp_path / "ours") == [1]


def test_rows_in_files_are_seen_once_they_are_committed(tmp_path: Path, spark: SparkSession) -> None:
    """Before, there is no table, and whoever wrote them reads them as they stand there."""
    table = tmp_path / "a table"
    written = write(rows(spark, 1, 2), str(table), FIRST, LOG_PROPERTIES)
    assert written is not None
    assert Lake(str(tmp_path)).snapshot(table.name) is None
    assert sorted(written.read().collect()) == sorted(rows(spark, 1, 2).collect())

    append(written.read(), str(table), FIRST, LOG_PROPERTIES, first=written)

    assert ids(spark, table) == [1, 2]
    assert write(rows(spark, 1, 2), str(table), FIRST) is None
    append(rows(spark, 3), str(table), SECOND)
    assert ids(spark, table) == [1, 2, 3]


def test_rows_that_are_removed_leave_no_file(tmp_path: Path, spark: SparkSession) -> None:
    """Where no table comes of them, no vacuum would ever find them."""
    written = write(rows(spark, 1, 2), str(tmp_path / "table"), FIRST)
    assert written is not None
    assert [*tmp_path.rglob("*.parquet")]
    written.remove()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_no_rows_make_an_empty_table(tmp_path: Path, spark: SparkSession) -> None:
    """It has columns, and what is read of its files is of these columns, too."""
    written = write(rows(spark).limit(0), str(tmp_path / "table"), FIRST)
    assert written is not None
    assert (written.read().columns, written.read().count()) == ([BATCH, "id", "nested"], 0)
    append(written.read(), str(tmp_path / "table"), FIRST, first=written)
    assert ids(spark, tmp_path / "table") == []


def test_table_that_another_run_begins_meanwhile_is_appended_to(tmp_path: Path, spark: SparkSession) -> None:
    """The commit is refused, for there is a table now; the rows are written anew, behind those of the other run."""
    path = str(tmp_path / "table")
    written = write(rows(spark, 1), path, SECOND)
    assert written is not None
    append(rows(spark, 5), path, FIRST)

    append(written.read(), path, SECOND, first=written)

    assert ids(spark, tmp_path / "table") == [1, 5]


def test_the_same_rows_of_another_run_are_not_committed_twice(tmp_path: Path, spark: SparkSession) -> None:
    """Two runs of one batch have both put them into files; the second one to commit finds the first's identifier."""
    path = str(tmp_path / "table")
    ours, theirs = (write(rows(spark, 1), path, FIRST) for _ in range(2))
    assert ours is not None
    append(rows(spark, 1), path, FIRST, first=theirs)

    append(ours.read(), path, FIRST, first=ours)

    assert ids(spark, tmp_path / "table") == [1]
