"""A lake for whoever reads results: values of every kind, rows that ended, and tables that are kept in several ways."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from faults.shop import arrive, make_pipeline, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.maintenance.folds import fold
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, rows_of, versions_of

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns:
      id: bigint
      customer: string
      day: date
      amount: decimal(12,2)
      weight: double
      at: timestamp
      lines: "array<struct<sku: string, n: int>>"
      tags: "map<string,string>"
      Paid: boolean
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, country: string, since: timestamp}
    key: [name]
    event_time: since
    versioned: {history_retention: 1000 days}
streams:
  visits:
    source: {format: jsonl, path: "visits/{date}.jsonl"}
    columns: {id: bigint, customer: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  sold:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    prefix: customer_
    changelog: true
    history: true
  sold_by_day:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    materialized: {partition_by: [day]}
  sold_plain:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    materialized: {deletion_vectors: false}
  seen: {stream: visits, table: customers, foreign_key: [customer], how: left}
groups:
  totals:
    of: orders
    by: [customer]
    select: {orders: count(*), amount: sum(amount)}
"""
KEYS = ("orders", "customers", "visits")
DAYS = 3


def _order(
    number: int, customer: str | None, amount: str | None, op: str = "u", **values: Any
) -> dict[str, Any]:
    day = f"2024-01-0{1 + number % 3}"
    return {
        "op": op, "id": number, "customer": customer, "day": day, "amount": amount, "weight": number / 3,
        "at": f"{day}T12:00:00.{number:06}Z", "lines": [{"sku": f"s{number}", "n": number}, {"sku": None, "n": None}],
        "tags": {"source": "web"}, "Paid": number % 2 == 0,
    } | values  # fmt: skip


def _customer(name: str, country: str | None, day: int, op: str = "u") -> dict[str, Any]:
    return {"op": op, "name": name, "country": country, "since": f"2024-01-0{day}T08:00:00.000001Z"}


def _visit(number: int, customer: str | None, day: int) -> dict[str, Any]:
    return {"op": "c", "id": number, "customer": customer, "at": f"2024-01-0{day}T09:00:00Z"}


RECORDS: tuple[dict[str, list[dict[str, Any]]], ...] = (
    {
        "orders": [
            *[_order(n, name, f"{n * 10}.50") for n, name in enumerate(["ada", "bob", "eve", None], 1)],
            _order(5, "ada", "-0.01", weight=-0.0, lines=[], tags={}),
            _order(6, "bob", None, weight=None, lines=None, tags=None, Paid=None, day=None, at=None),
            _order(7, "", "9999999999.99", weight=1e308, at="1900-01-01T00:00:00Z"),
            _order(8, "bob", "8.00"),
        ],
        "customers": [_customer("ada", "FR", 1), _customer("bob", None, 1)],
        "visits": [_visit(1, "ada", 1), _visit(2, "eve", 1)],
    },
    {
        "orders": [_order(1, "bob", "11.25"), _order(2, None, None, "d"), _order(9, "eve", "90.00")],
        "customers": [_customer("ada", "DE", 2), _customer("eve", "IT", 2)],
        "visits": [_visit(3, None, 2)],
    },
    {
        "orders": [_order(8, None, None, "d"), _order(2, "ada", "22.00"), _order(4, "zoe", "1.00")],
        "customers": [_customer("bob", "GB", 3), _customer("ada", None, 3, "d")],
        "visits": [_visit(4, "bob", 3)],
    },
)
"""Of each day: rows that change, move to another customer or partition, end, and come again."""


def make_shop_lake(folder: Path, spark: SparkSession) -> Pipeline:
    """Work off three days, each a batch; what the tables have after the second one is folded."""
    pipeline = make_pipeline(folder, TEXT)
    lake = Lake(pipeline.lake)
    for day, records in enumerate(RECORDS, 1):
        arrive(folder, day, KEYS, records)
        run(pipeline, spark)
        if day == 2:
            journal = Journal(lake)
            state = finished_state(pipeline, lake, journal, datetime.now(UTC))
            for base in (rows_of("orders"), versions_of("customers")):
                fold(pipeline, spark, lake, journal, state, base)
    return pipeline
