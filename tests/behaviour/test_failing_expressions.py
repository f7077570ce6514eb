"""A record for which an expression of the configuration raises goes to quarantine, and the batch goes on."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from orchestration.runs.retry_quarantine import retry
from storage.lake.journal import Journal
from storage.lake.layout import QUARANTINE, Lake, joined_of

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"}}
    columns: {{id: bigint, customer: string, parts: "array<int>"}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"}}
    columns: {{id: int, city: string}}
    key: [id]
joins:
  located: {{left: orders, right: customers, foreign_key: ["{key}"], how: left}}
  constant: {{left: orders, right: customers, foreign_key: ["1"], how: left}}
"""
CAST = "cast(customer as int)"
CITIES = [{"op": "c", "id": 1, "city": "Rome"}, {"op": "c", "id": 2, "city": "Oslo"}]


def _order(
    number: int, customer: str, operation: str = "c", parts: tuple[int, ...] = (1,)
) -> dict[str, object]:
    return {"op": operation, "id": number, "customer": customer, "parts": parts}


def _quarantine(lake: Lake, spark: SparkSession) -> list[tuple[str, int, str]]:
    rows = spark.read.format("delta").load(lake.path(QUARANTINE)).orderBy("_lj_batch", "line")
    return [(row["reason"], row["line"], row["detail"]) for row in rows.collect()]


def _cities(lake: Lake, spark: SparkSession, join: str = "located") -> dict[int, str | None]:
    rows = spark.read.format("delta").load(lake.path(joined_of(join)))
    return {row["id"]: row["right_city"] for row in rows.collect()}


def test_foreign_key_that_cannot_be_cast(tmp_path: Path, spark: SparkSession) -> None:
    """Its record is in quarantine with expression, value and Spark's reason; all others are joined."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    orders = [_order(1, "1"), _order(2, "N/A"), _order(3, "2"), _order(1, "none", "u")]
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", orders)
    pipeline = make_pipeline(tmp_path, TEXT.format(key=CAST))
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    assert _cities(lake, spark) == {1: "Rome", 3: "Oslo"}
    assert _cities(lake, spark, "constant") == {1: "Rome", 3: "Rome"}
    (reason, line, detail), second = _quarantine(lake, spark)
    assert (reason, line) == ("expression_failed", 2)
    assert detail.startswith(f'foreign key of located: {CAST} cannot be computed from {{"customer":"N/A"}}: ')
    assert "[CAST_INVALID_INPUT] The value 'N/A'" in detail
    assert second[:2] == ("expression_failed", 4)
    assert Journal(lake).last.tables["orders"]["quarantined"] == 2


def test_record_is_healed_once_the_expression_is_mended(tmp_path: Path, spark: SparkSession) -> None:
    """A record that a later one of its key has overtaken meanwhile stays superseded."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [_order(1, "no 1"), _order(2, "no 2")])
    run(make_pipeline(tmp_path, TEXT.format(key=CAST)), spark)
    write_lines(tmp_path / "orders" / "2024-01-02.jsonl", [_order(1, "2")])
    pipeline = make_pipeline(tmp_path, TEXT.format(key="cast(replace(customer, 'no ', '') as int)"))
    run(pipeline, spark, rebuild=["located"])
    lake = Lake(pipeline.lake)
    assert _cities(lake, spark) == {1: "Oslo"}
    list(retry(pipeline, lambda: spark, ["orders"]))
    assert _cities(lake, spark) == {1: "Oslo", 2: "Oslo"}
    assert Journal(lake).last.tables["orders"]["quarantined"] == 0


STREAM = """\
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, page: string, price: int, at: timestamp}
    key: [id]
    event_time: at
    where: "100 / price > 1"
joins:
  visits: {stream: clicks, table: customers, foreign_key: ["cast(split(page, '/')[1] as int)"], how: left}
"""


def test_where_and_key_of_a_stream_that_cannot_be_computed(tmp_path: Path, spark: SparkSession) -> None:
    """A division by zero, an index beyond the array and a bad number are each told by their record.

    What `where` leaves out is asked for no key.
    """
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    clicks = [
        (1, "a/1", 10),
        (2, "a/2", 0),
        (3, "a", 10),
        (4, "a/x", 10),
        (5, "a", 1000),
        (6, None, 10),
        (7, "a/2", 1),
    ]
    records = [
        {"op": "c", "id": number, "page": page, "price": price, "at": f"2024-01-01T00:00:0{number}Z"}
        for number, page, price in clicks
    ]
    write_lines(tmp_path / "clicks" / "2024-01-01.jsonl", records)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [])
    tables = TEXT.format(key=CAST).replace("joins:", STREAM)
    pipeline = make_pipeline(tmp_path, tables)
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    assert _cities(lake, spark, "visits") == {1: "Rome", 6: None, 7: "Oslo"}
    told = {line: (reason, detail) for reason, line, detail in _quarantine(lake, spark)}
    assert {reason for reason, _ in told.values()} == {"expression_failed"}
    assert told[2][1].startswith(
        'where of clicks: 100 / price > 1 cannot be computed from {"price":0}: [DIVIDE_BY_ZERO]'
    )
    assert "[INVALID_ARRAY_INDEX]" in told[3][1]
    assert "[CAST_INVALID_INPUT] The value 'x'" in told[4][1]
    assert sorted(told) == [2, 3, 4]
    assert Journal(lake).last.tables["clicks"]["ignored"] == 1


def test_many_records_that_fail_are_told_with_few_jobs(tmp_path: Path, spark: SparkSession) -> None:
    """Spark is asked for the cause of the first ten inputs; the others have expression and value."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [_order(n, f"no {n // 2}") for n in range(1000)])
    pipeline = make_pipeline(tmp_path, TEXT.format(key=CAST))
    run(pipeline, spark)
    told = [detail for _, _, detail in _quarantine(Lake(pipeline.lake), spark)]
    assert len(told) == 1000
    assert ["[CAST_INVALID_INPUT]" in detail for detail in told] == [True] * 20 + [False] * 980
    assert all(f'{{"customer":"no {n // 2}"}}' in detail for n, detail in enumerate(told))
