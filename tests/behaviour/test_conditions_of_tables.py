"""What `where` of a table leaves out, beside the same table in a few lines of Python: late, partial, as snapshots."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.runs.retry_quarantine import retry
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.state.pinned_state import State

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"{source}}}
    columns: {{id: bigint, customer: string, amount: int, note: string, seq: bigint}}
    key: [id]
    sequence: [seq]
    where: {where}
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"}}
    columns: {{name: string, city: string}}
    key: [name]
joins:
  placed: {{left: orders, right: customers, foreign_key: [customer], how: left, select: [id, amount, note, right_city]}}
"""
CUSTOMERS = [{"op": "u", "name": name, "city": name.upper()} for name in "ab"]
Record = dict[str, Any]


def _rows(pipeline: Pipeline, spark: SparkSession) -> dict[int, tuple[Any, ...]]:
    lake = Lake(pipeline.lake)
    state = State(spark, lake, published_snapshot(Journal(lake)))
    rows = state.all_rows(pipeline.tables["orders"].spec).where("not _lj_deleted").collect()
    return {row["id"]: (row["customer"], row["amount"], row["note"]) for row in rows}


def _joined(pipeline: Pipeline, spark: SparkSession) -> dict[int, tuple[Any, ...]]:
    lake = Lake(pipeline.lake)
    if lake.snapshot(joined_of("placed")) is None:
        return {}
    rows = spark.read.format("delta").load(lake.path(joined_of("placed"))).collect()
    return {row["id"]: (row["amount"], row["note"], row["right_city"]) for row in rows}


def _shown(rows: Mapping[int, tuple[Any, ...]]) -> dict[int, tuple[Any, ...]]:
    return {key: (amount, note, customer.upper()) for key, (customer, amount, note) in rows.items()}


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["small", "large"])
@pytest.mark.parametrize(
    "seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)]
)
def test_rows_are_the_newest_that_meet_it(
    seed: int, large: bool, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever order and batches the records come: one that comes late brings back nothing that was filtered out."""
    if large:
        monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", -1)
    chance = random.Random(seed)
    records: list[Record] = [
        {"op": chance.choice("uuuuud"), "id": chance.randrange(6), "customer": chance.choice("ab"),
         "amount": chance.choice([None, 1, 3, 5]), "note": chance.choice("xyz"), "seq": number}
        for number in range(40)
    ]  # fmt: skip
    come = chance.sample(records, len(records))
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CUSTOMERS)
    (tmp_path / "orders").mkdir()
    pipeline = make_pipeline(tmp_path, TEXT.format(where="amount > 2", source=", absent: clear"))
    for day in range(1, 5):
        write_lines(tmp_path / "orders" / f"2024-01-0{day}.jsonl", come[10 * day - 10 : 10 * day])
        run(pipeline, spark)
        newest: dict[int, Record] = {}
        for record in sorted(come[: 10 * day], key=lambda record: record["seq"]):
            newest[record["id"]] = record
        expected = {
            key: (record["customer"], record["amount"], record["note"])
            for key, record in newest.items()
            if record["op"] == "u" and record["amount"] is not None and record["amount"] > 2
        }
        assert _rows(pipeline, spark) == expected, (seed, day)
        assert _joined(pipeline, spark) == _shown(expected), (seed, day)
    unmet = sum(record["op"] == "u" and (record["amount"] or 0) <= 2 for record in records)
    counts = [batch.tables["orders"] for batch in Journal(Lake(pipeline.lake)).published]
    assert sum(count.get("filtered", 0) for count in counts) == unmet
    assert check_lake(pipeline, spark, batches=None).passed


def test_record_that_leaves_out_what_the_condition_reads_has_the_value_of_its_row(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A row that is there keeps meeting it; of one that is not there the value is unknown, and the record bad."""
    orders: list[Record] = [
        {"op": "u", "id": 1, "customer": "a", "amount": 5, "note": "x", "seq": 1},
        {"op": "u", "id": 2, "customer": "a", "amount": 1, "note": "x", "seq": 2},
        {"op": "u", "id": 1, "note": "y", "seq": 3},
        {"op": "u", "id": 2, "note": "y", "seq": 4},
        {"op": "u", "id": 1, "amount": 4, "seq": 5},
        {"op": "u", "id": 3, "customer": "b", "amount": 9, "note": "z", "seq": 6},
        {"op": "u", "id": 3, "amount": 2, "seq": 7},
    ]
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CUSTOMERS)
    (tmp_path / "orders").mkdir()
    pipeline = make_pipeline(
        tmp_path, TEXT.format(where="amount > 2 and note <> 'w'", source=", absent: keep")
    )
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", orders)
    run(pipeline, spark)

    assert _rows(pipeline, spark) == {1: ("a", 4, "y")}
    write_lines(tmp_path / "orders" / "2024-01-02.jsonl", [{"op": "u", "id": 1, "note": "w", "seq": 8}])
    run(pipeline, spark)
    assert _rows(pipeline, spark) == {}
    counts = [batch.tables["orders"] for batch in Journal(Lake(pipeline.lake)).published]
    assert [(count["quarantined"], count["filtered"]) for count in counts] == [(1, 2), (0, 1)]
    assert check_lake(pipeline, spark, batches=None).passed


def test_snapshot_lacks_what_does_not_meet_it(tmp_path: Path, spark: SparkSession) -> None:
    """A row of a snapshot that ceases to meet it is gone, and one that begins to is there."""
    text = TEXT.replace("    sequence: [seq]\n", "").format(where="amount > 2", source=", mode: snapshot")

    def snapshot(day: int, *amounts: int) -> None:
        rows = [
            {"id": key, "customer": "a", "amount": amount, "note": "x"} for key, amount in enumerate(amounts)
        ]
        write_lines(tmp_path / "orders" / f"2024-01-0{day}.jsonl", rows)

    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CUSTOMERS)
    snapshot(1, 1, 3, 5)
    pipeline = make_pipeline(tmp_path, text)
    run(pipeline, spark)
    assert set(_rows(pipeline, spark)) == {1, 2}
    snapshot(2, 4, 2, 5)
    run(pipeline, spark)
    assert set(_rows(pipeline, spark)) == {0, 2}
    assert set(_joined(pipeline, spark)) == {0, 2}
    assert check_lake(pipeline, spark, batches=None).passed


def test_record_of_which_it_cannot_be_computed_is_in_quarantine(tmp_path: Path, spark: SparkSession) -> None:
    """With the reason; once the condition was mended, it is there by a retry."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CUSTOMERS)
    rows = [
        {"op": "u", "id": key, "customer": "a", "amount": 5, "note": note, "seq": key}
        for key, note in ((1, "7"), (2, "many"))
    ]
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", rows)
    pipeline = make_pipeline(tmp_path, TEXT.format(where="cast(note as int) > 2", source=""))
    run(pipeline, spark)
    assert set(_rows(pipeline, spark)) == {1}
    quarantine = spark.read.format("delta").load(Lake(pipeline.lake).path("quarantine")).collect()
    assert [(row["reason"], row["line"]) for row in quarantine] == [("expression_failed", 2)]

    mended = make_pipeline(tmp_path, TEXT.format(where="coalesce(try_cast(note as int), 9) > 2", source=""))
    list(retry(mended, lambda: spark, ["orders"]))
    assert set(_rows(mended, spark)) == {1, 2}
