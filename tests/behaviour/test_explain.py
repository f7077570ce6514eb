"""Why a row is as it is, or is not there: answers about every kind of result, from the logs of a lake."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.explain.explain import Question, explained
from lakejoin.orchestration.explain.explanation import Explanation

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, v: bigint, customer: string, item: string, amount: int}
    key: [id]
    sequence: [v]
    where: amount is null or amount < 1000
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, city: string}
    key: [name]
  items:
    source: {format: jsonl, path: "items/{date}.jsonl"}
    columns: {sku: string, price: int, at: timestamp}
    key: [sku]
    event_time: at
    versioned: {history_retention: 10 days}
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, sku: string, kind: string, at: timestamp}
    key: [id]
    event_time: at
    where: kind = 'buy'
joins:
  sold:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    select: [id, customer_city, {twice: amount * 2}]
    prefix: customer_
  kept: {left: orders, right: customers, foreign_key: [customer], how: left, history: true}
  dear: {left: orders, right: customers, foreign_key: [customer], how: inner, where: amount > 15}
  pairs: {left: orders, right: customers, foreign_key: [customer], how: inner, result_key: combined}
  placed: {left: kept, right: items, foreign_key: [lower(item)], how: left, prefix: item_}
  board:
    left: orders
    rights:
      who: {table: customers, foreign_key: [customer], how: inner}
      what: {table: items, foreign_key: [item], how: left}
  seen: {stream: clicks, table: items, foreign_key: [sku], how: inner, grace: 1 hour}
groups:
  by_customer: {of: orders, by: [customer], select: {orders: count(*)}}
  large: {of: orders, by: [{who: upper(customer)}], select: {most: max(amount)}, having: most > 15}
"""
ORDER = ("id", "v", "customer", "item", "amount")
DAYS = {
    "2024-01-01": {
        "orders": [
            ("c", 1, 1, "ada", "pen", 10), ("c", 2, 1, "bob", "ink", 20), ("c", 3, 1, None, "pen", 30),
            ("c", 4, 1, "eve", "ink", 40), ("c", 5, 1, "ada", "pen", 50), ("c", 7, 9, "ada", "pen", 5000),
        ],
        "customers": [("c", "ada", "Paris"), ("c", "bob", "Rome")],
        "items": [("c", "pen", 1, "2024-01-01T00:00:00Z"), ("u", "pen", 2, "2024-01-01T06:00:00Z")],
        "clicks": [
            ("c", 1, "pen", "buy", "2024-01-01T05:00:00Z"), ("c", 2, "pen", "look", "2024-01-01T05:00:00Z"),
            ("c", 3, "cup", "buy", "2024-01-01T05:00:00Z"), ("c", 4, "pen", "buy", "2024-01-01T08:00:00Z"),
        ],
    },
    "2024-01-02": {
        "orders": [
            ("u", 2, 2, "ada", "ink", 20), ("d", 5, 2, None, None, None), ("u", 1, 0, "bob", "pen", 9),
            ("u", "six", 1, "ada", "pen", 1), ("u", 4, 1, "eve", "ink", 40),
        ],
        "customers": [("u", "ada", "Lyon"), ("d", "bob", None)],
        "clicks": [("c", 5, "pen", "buy", "2024-01-01T06:30:00Z")],
    },
    "2024-01-03": {"customers": [("c", "eve", "Bonn")], "orders": [("u", 3, 2, "cyd", "pen", 12)]},
}  # fmt: skip
NAMES = {
    "orders": ORDER,
    "customers": ("name", "city"),
    "items": ("sku", "price", "at"),
    "clicks": ("id", "sku", "kind", "at"),
}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Return a pipeline whose three days are worked off, a batch for each."""
    folder = tmp_path_factory.mktemp("shop")
    for day, sources in DAYS.items():
        for source in NAMES:
            names = ("op", *NAMES[source])
            records = [dict(zip(names, row, strict=True)) for row in sources.get(source, ())]
            write_lines(folder / source / f"{day}.jsonl", records)
    pipeline = make_pipeline(folder, TEXT)
    assert run(pipeline, spark, batch_by="date") == len(DAYS)
    return pipeline
