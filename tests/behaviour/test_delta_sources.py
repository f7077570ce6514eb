"""Runs over Delta tables of others: one who overwrites them and changes their columns, and another pipeline."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faults.shop import arrive, make_pipeline, result, run, write_lines
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of

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


SHOP = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, day: date, amount: int}
    key: [id]
groups:
  marked: {of: orders, by: [customer], select: {n: count(*), most: max(amount)}}
  merged: {of: orders, by: [customer], select: {n: count(*)}, materialized: {deletion_vectors: false}}
  parted: {of: orders, by: [day, customer], select: {n: count(*)}, materialized: {partition_by: [day]}}
"""
FOLLOWER = """\
name: follower
lake: ./lake
tables:
  marked:
    source: {format: delta, path: ../shop/lake/joins/marked/joined}
    columns: {customer: string, n: bigint, most: int}
    key: [customer]
  merged:
    source: {format: delta, path: ../shop/lake/joins/merged/joined}
    columns: {customer: string, n: bigint}
    key: [customer]
  parted:
    source: {format: delta, path: ../shop/lake/joins/parted/joined}
    columns: {day: date, customer: string, n: bigint}
    key: [day, customer]
groups:
  of_marked: {of: marked, by: [customer], select: {n: any(n), most: any(most)}}
  of_merged: {of: merged, by: [customer], select: {n: any(n)}}
  of_parted: {of: parted, by: [day, customer], select: {n: any(n)}}
"""


@pytest.mark.slow
def test_groups_of_another_pipeline_are_followed_however_their_table_is_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Groups that come, change, move and go, a table that is described meanwhile, and one that is computed anew."""
    shop = make_pipeline(tmp_path / "shop", SHOP)
    follower = make_pipeline(tmp_path / "follower", FOLLOWER)

    def order(op: str, number: int, customer: str, day: int, amount: int) -> dict[str, Any]:
        return {"op": op, "id": number, "customer": customer, "day": f"2024-01-0{day}", "amount": amount}

    days = [
        [order("c", 1, "a", 1, 5), order("c", 2, "a", 2, 7), order("c", 3, "b", 1, 1)],
        [order("u", 2, "b", 1, 7), order("d", 3, "b", 1, 1), order("c", 4, "c", 2, 2)],
        [order("d", 1, "a", 1, 5)],
    ]
    for number, records in enumerate(days, start=1):
        arrive(shop.path.parent, number, ["orders"], {"orders": records})
        run(shop, spark)
        run(follower, spark)
        for name in shop.groups:
            rows, followed = (sorted(map(str, result(*of))) for of in (
                (shop, spark, name), (follower, spark, f"of_{name}"),
            ))  # fmt: skip
            assert followed == rows, (number, name)
        described = SHOP.replace("false}", f"false, comment: day {number}}}")
        shop = make_pipeline(tmp_path / "shop", described)
        if number == 2:
            run(shop, spark, rebuild=["marked", "parted"])
