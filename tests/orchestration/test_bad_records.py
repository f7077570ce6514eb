"""`max_bad_ratio`: how the share of bad records is counted, and what is said of too many."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from orchestration.bad_records import TooManyBadRecords, check_bad_ratio
from orchestration.config import load_text
from orchestration.pending import pending_groups
from storage.journal import Journal
from storage.lake import Lake
from storage.plan import Plan
from storage.sources import csv_counter

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
BAD_LINES = """\
{"op": "c", "id": 1}
{"op": "c", "id": "x"}
{"op": "c", "id": 2}
nonsense
{"op": "c", "id": "y"}
"""


def check(spark: SparkSession, folder: Path, form: str, ratio: float) -> None:
    """Check a plan, not committed, of all that is pending."""
    pipeline = load_text(TEXT.format(form=form, ratio=ratio), folder / "lakejoin.yaml")
    now = datetime.now(UTC)
    journal, counter = Journal(Lake(pipeline.lake)), csv_counter(spark)
    groups = pending_groups(pipeline, journal, now=now, counter=counter, settle=timedelta(0))
    draft = Plan(1, "batch", now, groups[0].files, {}, {}, {}, (), (), "", {}, "0.1")
    check_bad_ratio(pipeline, spark, draft)


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
