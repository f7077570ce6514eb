"""Left rows that right changes reach are read in the order of their foreign key, and are the same as without it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from faults.shop import joins, make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.maintenance.folds import fold
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, left_rows_of, rows_of

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("prunes")]

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, amount: int}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, name: string}
    key: [customer]
joins:
  shop: {left: orders, right: customers, foreign_key: ["lower(customer)"], how: inner, prefix: its_}
"""
CUSTOMERS = ["ada", "bob", "c\0\n'\\", "dé", "\U0001f600"]
DAYS: Sequence[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = (
    (
        [
            *[{"op": "c", "id": n, "customer": CUSTOMERS[n % 5].upper(), "amount": n} for n in range(20)],
            {"op": "c", "id": 20, "customer": None, "amount": 20},
        ],
        [{"op": "c", "customer": name, "name": "first"} for name in CUSTOMERS],
    ),
    (
        [
            {"op": "u", "id": 0, "customer": "Bob", "amount": 100},
            {"op": "u", "id": 5, "customer": "Ada", "amount": 105},
            {"op": "d", "id": 10},
            {"op": "u", "id": 1, "customer": None, "amount": 101},
            {"op": "c", "id": 21, "customer": "Ada", "amount": 21},
        ],
        [],
    ),
    (
        [{"op": "u", "id": 15, "customer": "ADA", "amount": 115}],
        [
            {"op": "u", "customer": "ada", "name": "second"},
            {"op": "d", "customer": "bob"},
            {"op": "u", "customer": CUSTOMERS[2], "name": "second"},
        ],
    ),
    ([], [{"op": "u", "customer": CUSTOMERS[4], "name": "third"}]),
)


def day(folder: Path, number: int, spark: SparkSession) -> Pipeline:
    """Write a day of the shop and run it."""
    folder.mkdir(exist_ok=True)
    for side, records in zip(("orders", "customers"), DAYS[number - 1], strict=True):
        write_lines(folder / side / f"2024-01-{number:02}.jsonl", records)
    pipeline = make_pipeline(folder, TEXT)
    assert run(pipeline, spark) == 1
    return pipeline


def files_read(pipeline: Pipeline, table: str) -> tuple[int, int]:
    """How many files of a table the last batch read, of how many."""
    last = Journal(Lake(pipeline.lake)).last
    assert last is not None
    counts = last.files.get(table, {"read": 0, "held": 0})
    return counts["read"], counts["held"]


def folded(pipeline: Pipeline, spark: SparkSession) -> None:
    """Do all maintenance, in files of few rows."""
    with patch("lakejoin.storage.state.folds.ROWS_PER_FILE", 4):
        list(maintain(pipeline, lambda: spark, everything=True))


def test_rows_that_a_right_change_reaches_are_read_by_their_foreign_key(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Of rows folded before, of rows that changed since, and none of those that left the key; in few of the files."""
    for number in range(1, len(DAYS) + 1):
        pipeline = day(tmp_path / "folded", number, spark)
        if number == 1:
            folded(pipeline, spark)

    read, held = files_read(pipeline, left_rows_of("shop"))
    assert 0 < read < held
    assert files_read(pipeline, rows_of("orders")) == (0, 0)
    rows = [json.loads(text) for text in joins(pipeline, spark)["shop"]]
    amounts = {row["id"]: (row["amount"], row["its_name"]) for row in rows}
    untouched = {2: "second", 3: "first", 4: "third"}
    assert amounts == {
        **{n: (n, untouched[n % 5]) for n in range(20) if n % 5 in untouched},
        5: (105, "second"), 15: (115, "second"), 21: (21, "second"),
    }  # fmt: skip


@pytest.mark.slow
def test_copy_that_its_base_has_overtaken_is_not_read(tmp_path: Path, spark: SparkSession) -> None:
    """More would lie behind it than behind the base."""
    folded(day(tmp_path / "shop", 1, spark), spark)
    pipeline = day(tmp_path / "shop", 2, spark)
    lake, journal = Lake(pipeline.lake), Journal(Lake(pipeline.lake))
    state = finished_state(pipeline, lake, journal, datetime.now(UTC))
    fold(pipeline, spark, lake, journal, state, rows_of("orders"))
    pipeline = day(tmp_path / "shop", 3, spark)

    assert files_read(pipeline, left_rows_of("shop")) == (0, 0)
    assert files_read(pipeline, rows_of("orders"))[0] > 0
