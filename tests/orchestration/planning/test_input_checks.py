"""`max_bad_ratio`: how the share of bad records is counted, and what is said of too many."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import run
from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.planning.input_checks import TooManyBadRecords, check_bad_ratio
from lakejoin.orchestration.planning.input_records import reading
from lakejoin.orchestration.planning.pending_input import pending_groups
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: {form}, path: "orders/*"}}
    columns: {{id: bigint}}
    key: [id]
    max_bad_ratio: {ratio}
"""
OTHERS = "source: {format: jsonl, path: events}, columns: {id: bigint}, key: [id]"
BAD_LINES = """\
{"op": "c", "id": 1}
{"op": "c", "id": "x"}
{"op": "c", "id": 2}
nonsense
{"op": "c", "id": "y"}
"""


def check(spark: SparkSession, folder: Path, form: str, ratio: float) -> None:
    """Check a plan, not committed, of all that is pending."""
    check_text(spark, folder, TEXT.format(form=form, ratio=ratio))


def check_text(spark: SparkSession, folder: Path, text: str, joins: tuple[str, ...] = ()) -> None:
    """The same of any pipeline, with these joins."""
    pipeline = load_text(text, folder / "lakejoin.yaml")
    now = datetime.now(UTC)
    journal = Journal(Lake(pipeline.lake))
    groups = pending_groups(pipeline, journal, now=now, spark=spark, settle=timedelta(0))
    draft = Plan(1, "batch", now, groups[0].files, {}, {}, {}, joins, (), "", {}, "0.1")
    with reading(pipeline, spark, draft) as records:
        check_bad_ratio(pipeline, records)


def source(folder: Path, name: str, text: str) -> None:
    """Write a source file."""
    (folder / "orders").mkdir(exist_ok=True)
    (folder / "orders" / name).write_text(text)


def test_too_many_bad_records_are_told_by_reason(spark: SparkSession, tmp_path: Path) -> None:
    """How many of how many, why, where the first of each kind is, and what to do."""
    source(tmp_path, "a.jsonl", BAD_LINES)
    source(tmp_path, "b.jsonl", "{}\n")

    with pytest.raises(TooManyBadRecords) as refused:
        check(spark, tmp_path, "jsonl", 0.5)

    message = str(refused.value)
    assert message.startswith(
        "table orders: 4 of 6 new records (66.7%) cannot be read: 2 type_mismatch, the first "
    )
    assert 'in a.jsonl:2 (id: "x" is no bigint); 1 parse_error, the first in a.jsonl:4 (' in message
    assert "; 1 unknown_op, the first in b.jsonl:1 (" in message
    assert "Expected at most 50.0% (max_bad_ratio: 0.5). Nothing of the batch was written." in message


@pytest.mark.parametrize("ratio", [0.6, 1.0])
def test_as_many_as_allowed_pass(spark: SparkSession, tmp_path: Path, ratio: float) -> None:
    """The limit itself is no excess."""
    source(tmp_path, "a.jsonl", BAD_LINES)

    check(spark, tmp_path, "jsonl", ratio)


def test_limit_of_zero_takes_good_records_only(spark: SparkSession, tmp_path: Path) -> None:
    """A single bad record is too many then, and none is not."""
    source(tmp_path, "a.jsonl", '{"op": "c", "id": 1}\n')
    check(spark, tmp_path, "jsonl", 0)
    source(tmp_path, "b.jsonl", "x\n")

    with pytest.raises(TooManyBadRecords, match="1 of 2 new records"):
        check(spark, tmp_path, "jsonl", 0)


@pytest.mark.parametrize("header", ["op,id", "number;kind", "number"])
def test_csv_of_another_shape_is_counted(spark: SparkSession, tmp_path: Path, header: str) -> None:
    """Also where it has no declared column at all."""
    source(tmp_path, "a.csv", f"{header}\n1,2,3\nz\n")

    with pytest.raises(TooManyBadRecords, match="2 of 2 new records"):
        check(spark, tmp_path, "csv", 0.9)


@pytest.mark.parametrize(
    "declared",
    [
        "tables:\n  events: {key: [id], versioned: {history_retention: 9 days}",
        f"tables:\n  others: {{{OTHERS}}}\nstreams:\n  events: {{key: [id]",
    ],
    ids=["versioned", "stream"],
)
def test_records_without_a_usable_time_are_bad(declared: str, spark: SparkSession, tmp_path: Path) -> None:
    """A batch would quarantine them: none, and one of a year to come."""
    lines = ["null", '"2024-01-01T00:00:00Z"', '"9024-01-01T00:00:00Z"']
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "a.jsonl").write_text(
        "".join(f'{{"op": "c", "id": {n}, "at": {at}}}\n' for n, at in enumerate(lines))
    )
    text = (
        f"name: shop\nlake: ./lake\n{declared}, columns: {{id: bigint, at: timestamp}}, event_time: at, "
        "source: {format: jsonl, path: events}, max_bad_ratio: 0.5}\n"
    )

    with pytest.raises(
        TooManyBadRecords, match=r"2 of 3 new records .* 1 in_the_future, .*; 1 no_event_time, "
    ):
        check_text(spark, tmp_path, text)


def test_rows_of_a_feed_are_counted_as_they_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """A commit that updates a row gives one record, whatever its feed has of it."""
    path = str(tmp_path / "orders")
    rows = spark.range(4).selectExpr("id", "id AS amount")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(path)
    text = (
        "name: shop\nlake: ./lake\ntables:\n  orders: {source: {format: delta, path: orders}, "
        "columns: {id: bigint, amount: int}, key: [id], max_bad_ratio: 0.5}\n"
    )
    run(load_text(text, tmp_path / "lakejoin.yaml"), spark)
    spark.sql(f"UPDATE delta.`{path}` SET amount = 1L << 40").collect()

    with pytest.raises(TooManyBadRecords, match="4 of 4 new records"):
        check_text(spark, tmp_path, text)


FAILING = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/*"}
    columns: {id: bigint, customer: string}
    key: [id]
    max_bad_ratio: 0.5
  customers: {source: {format: jsonl, path: "customers/*"}, columns: {id: int}, key: [id]}
streams:
  clicks:
    source: {format: jsonl, path: "clicks/*"}
    columns: {id: bigint, page: string, at: timestamp}
    key: [id]
    event_time: at
    where: "10 / id > 1"
    max_bad_ratio: 0.5
joins:
  located: {left: orders, right: customers, foreign_key: ["cast(customer as int)"], how: left}
  visits: {stream: clicks, table: customers, foreign_key: ["cast(page as int)"], how: left}
"""


def test_records_that_an_expression_fails_for_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Foreign key, condition, a stream's key: as a batch refuses them, and not what the condition leaves out."""
    orders = [
        '{"op": "c", "id": 1, "customer": "1"}',
        *[f'{{"op": "c", "id": {n}, "customer": "x"}}' for n in (2, 3)],
    ]
    click = '{{"op": "c", "id": {0}, "page": "{1}", "at": "2024-01-01T00:00:00Z"}}'
    clicks = [click.format(*one) for one in ((0, "1"), (1, "x"), (20, "x"), (2, "y"))]
    for name, lines in (("orders", orders[:2]), ("clicks", clicks), ("customers", [])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text("".join(f"{line}\n" for line in lines))
    joins = ("located", "visits")

    with pytest.raises(
        TooManyBadRecords, match=r"table clicks: 3 of 4 .* 3 expression_failed, .*where of clicks: 10"
    ):
        check_text(spark, tmp_path, FAILING, joins)
    (tmp_path / "clicks" / "a.jsonl").write_text("")
    check_text(spark, tmp_path, FAILING, joins)
    (tmp_path / "orders" / "a.jsonl").write_text("".join(f"{line}\n" for line in orders))
    with pytest.raises(
        TooManyBadRecords, match=r"table orders: 2 of 3 .* in a.jsonl:2 \(foreign key of located: cast"
    ):
        check_text(spark, tmp_path, FAILING, joins)
