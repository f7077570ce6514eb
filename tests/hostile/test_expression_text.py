"""Texts in the configuration's expressions, which reach Spark's parser as they are written."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.storage.lake.layout import Lake, joined_of, records_of

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string}
    key: [customer]
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, page: string, at: timestamp}
    key: [id]
    event_time: at
    where: "page = '${env:HOME}'"
joins:
  located: {left: orders, right: customers, foreign_key: ["coalesce(customer, '${system:user.home}')"], how: left}
"""


@pytest.mark.spark
def test_names_of_variables_are_texts(tmp_path: Path, spark: SparkSession) -> None:
    """Spark's own substitution would put the value of an environment variable into the joined table and its log."""
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [{"op": "c", "id": 1, "customer": None}])
    customers = [{"op": "c", "customer": "${system:user.home}", "city": "Rome"}]
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", customers)
    clicks = [{"op": "c", "id": 1, "page": "${env:HOME}", "at": "2024-01-01T00:00:00Z"}]
    write_lines(tmp_path / "clicks" / "2024-01-01.jsonl", clicks)
    pipeline = make_pipeline(tmp_path, TEXT)
    run(pipeline, spark)
    tables = {name: spark.read.format("delta").load(Lake(pipeline.lake).path(name)) for name in (
        joined_of("located"), records_of("clicks"),
    )}  # fmt: skip
    assert [row["right_city"] for row in tables[joined_of("located")].collect()] == ["Rome"]
    assert [row["_lj_verdict"] for row in tables[records_of("clicks")].collect()] == ["applied"]
