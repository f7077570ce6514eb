"""After tombstones were purged: a record is refused that comes late for its own key, and no other."""

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import joins, make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

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
    write_lines(folder / "customers.jsonl", [{"op": "c", "customer": "ada"}])
    records = [{"op": op, "id": key, "customer": "ada", "rev": revision} for op, key, revision in orders]
    write_lines(folder / "orders" / f"2024-01-{number:02}.jsonl", records)
    return make_pipeline(folder, TEXT)


@pytest.mark.slow
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


def purge(pipeline: Pipeline, spark: SparkSession) -> None:
    """Fold the rows, and with it forget the deleted keys."""
    list(maintain(pipeline, lambda: spark, everything=True))
    assert Journal(Lake(pipeline.lake)).last is not None


@pytest.mark.slow
def test_purged_key_may_come_back_below_what_was_purged_of_others(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It is held against its own last revision: whether its tombstone was purged decides nothing."""
    days = (
        [("c", 1, 1), ("d", 1, 2), ("c", 2, 1), ("d", 2, 500)],
        [("c", 1, 2), ("u", 1, 1), ("c", 1, 3), ("u", 1, 2), ("u", 2, 400)],
        [("u", 1, 4), ("c", 2, 501)],
    )
    found = []
    for name in ("purged", "kept"):
        for number, orders in enumerate(days, start=1):
            (tmp_path / name).mkdir(exist_ok=True)
            pipeline = day(tmp_path / name, number, *orders)
            run(pipeline, spark)
            if name == "purged" and number == 1:
                purge(pipeline, spark)
        counts = [done.tables["orders"] for done in Journal(Lake(pipeline.lake)).published]
        late = [(count["applied"], count["expired"], count["out_of_order"]) for count in counts]
        found.append((joins(pipeline, spark), late))
    (purged, late), (kept, usual) = found
    assert purged == kept
    assert [text[:8] for text in purged["left"]] == ['{"id":1,', '{"id":2,']
    # the first record of revision 2 wins a tie with the deletion, so that what comes behind it is out of order
    assert (late, usual) == ([(4, 0, 0), (2, 1, 2), (2, 0, 0)], [(4, 0, 0), (2, 0, 3), (2, 0, 0)])


@pytest.mark.slow
def test_deletion_of_a_file_that_was_replaced_since_refuses_nothing(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Its tombstone was purged before, so that nothing but the log of changes knows of it."""
    day(tmp_path, 1, ("c", 1, 1), ("d", 1, 500))
    pipeline = day(tmp_path, 2, ("c", 2, 1), ("d", 2, 600))
    run(pipeline, spark)
    purge(pipeline, spark)
    run(day(tmp_path, 1, ("c", 3, 1)), spark, replace=date(2024, 1, 1))
    run(day(tmp_path, 3, ("c", 1, 400), ("u", 2, 599)), spark)
    assert [text[:8] for text in joins(pipeline, spark)["left"]] == ['{"id":1,', '{"id":3,']
