"""After tombstones were purged: what of a key that was there comes late is refused, and a new key is not."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import joins, run, write_lines
from orchestration.config import Pipeline, load
from orchestration.maintenance import maintain
from storage.journal import Journal
from storage.lake import Lake

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, rev: int}
    key: [id]
    sequence: [rev]
    tombstone_retention: 0 days
  customers:
    source: {format: jsonl, path: "customers.jsonl"}
    columns: {customer: string}
    key: [customer]
joins:
  left: {left: orders, right: customers, foreign_key: [customer], how: left}
"""


def day(folder: Path, number: int, *orders: tuple[str, int, int]) -> Pipeline:
    """Write a pipeline and a day of its orders: operation, key and revision of each."""
    (folder / "lakejoin.yaml").write_text(TEXT)
    write_lines(folder / "customers.jsonl", [{"op": "c", "customer": "ada"}])
    records = [{"op": op, "id": key, "customer": "ada", "rev": revision} for op, key, revision in orders]
    write_lines(folder / "orders" / f"2024-01-{number:02}.jsonl", records)
    return load(folder / "lakejoin.yaml")


def test_new_key_may_begin_below_what_was_purged(tmp_path: Path, spark: SparkSession) -> None:
    """Revisions are counted for each key; the purged one stays away, with all that comes in its batch."""
    run(day(tmp_path, 1, ("c", 1, 1), ("d", 1, 500), ("c", 2, 1)), spark)
    pipeline = load(tmp_path / "lakejoin.yaml")
    list(maintain(pipeline, lambda: spark, everything=True))
    run(day(tmp_path, 2, ("c", 3, 7), ("u", 3, 8), ("u", 1, 400), ("u", 2, 2), ("c", 4, 900)), spark)
    last = Journal(Lake(pipeline.lake)).last
    assert last is not None
    counts = {name: last.tables["orders"][name] for name in ("records", "applied", "expired", "inserted")}
    assert counts == {"records": 5, "applied": 4, "expired": 1, "inserted": 2}
    assert [text[:8] for text in joins(pipeline, spark)["left"]] == ['{"id":2,', '{"id":3,', '{"id":4,']
