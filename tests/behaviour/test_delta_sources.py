"""Runs over Delta tables of somebody else, who overwrites them and changes their columns between two runs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from storage.lake.journal import Journal
from storage.lake.layout import Lake, joined_of

pytestmark = pytest.mark.spark

TEXT = """\
name: board
lake: ./lake
tables:
  prices:
    source: {format: jsonl, path: prices.jsonl}
    columns: {code: string, price: int}
    key: [code]
  shown:
    source: {format: delta, path: clicks}
    columns: {id: bigint, code: string}
    key: [id]
streams:
  clicks:
    source: {format: delta, path: clicks}
    columns: {id: bigint, code: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  sold: {stream: clicks, table: prices, foreign_key: [code], how: left}
"""


def test_table_overwritten_with_other_columns_brings_no_event_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Versions before it wait as well; a stream gets what is new, a table every row that came."""
    write_lines(tmp_path / "prices.jsonl", [{"op": "c", "code": "a", "price": 1}])
    pipeline, path = make_pipeline(tmp_path, TEXT), str(tmp_path / "clicks")
    at = datetime(2024, 1, 1, tzinfo=UTC)

    def clicks(*numbers: int) -> list[tuple[int, str, datetime]]:
        return [(number, "a", at) for number in numbers]

    schema = "id bigint, code string, at timestamp"
    on = {"delta.enableChangeDataFeed": "true"}
    spark.createDataFrame(clicks(1), schema).write.format("delta").options(**on).save(path)
    run(pipeline, spark)
    spark.createDataFrame(clicks(2), schema).write.format("delta").mode("append").save(path)
    rows = spark.createDataFrame(clicks(1, 2, 3), schema).selectExpr(
        "cast(id AS string)", "code", "at", "1 AS n"
    )
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)

    assert run(pipeline, spark) == 1

    lake = Lake(pipeline.lake)
    joined = spark.read.format("delta").load(lake.path(joined_of("sold")))
    assert sorted(row["id"] for row in joined.collect()) == [1, 2, 3]
    counts = Journal(lake).last.tables
    assert (counts["clicks"]["applied"], counts["shown"]["applied"]) == (2, 4)
