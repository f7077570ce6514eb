"""What maintenance forgets and keeps at the edges of retention, and the time of what has none of its own."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changes_of, rows_of
from lakejoin.transforms.model.event_time import from_micros
from lakejoin.transforms.model.schemas import DELETED, TIME

pytestmark = pytest.mark.spark

CONFIGURATION = """\
name: corners
lake: ./lake
tables:
  parts:
    source: {format: jsonl, path: "parts.jsonl"}
    columns: {id: bigint, at: timestamp}
    key: [id]
    event_time: at
    tombstone_retention: 10 days
  prices:
    source: {format: jsonl, path: "prices.jsonl"}
    columns: {id: bigint, at: timestamp}
    key: [id]
    event_time: at
    max_future: 10000 days
    tombstone_retention: 0 days
    versioned: {history_retention: 10 days}
  kinds:
    source: {format: jsonl, path: "kinds.jsonl"}
    columns: {id: bigint}
    key: [id]
"""
NEWEST = datetime(2024, 3, 20, tzinfo=UTC)
EDGE = NEWEST - timedelta(days=10)


@pytest.fixture(scope="module")
def maintained(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a lake that was folded after its only batch: keys deleted at the edge of retention, before and after."""
    folder = tmp_path_factory.mktemp("retention")
    times = {1: EDGE - timedelta(microseconds=1), 2: EDGE, 3: EDGE + timedelta(microseconds=1)}
    records = [{"op": "d", "id": key, "at": time.isoformat()} for key, time in times.items()]
    for table in ("parts", "prices"):
        write_lines(
            folder / f"{table}.jsonl", [{"op": "c", "id": 4, "at": NEWEST.isoformat()}, *records[::-1]]
        )
    write_lines(folder / "kinds.jsonl", [{"op": "c", "id": 1}])
    pipeline = make_pipeline(folder, CONFIGURATION)
    assert run(pipeline, spark) == 1
    list(maintain(pipeline, lambda: spark, everything=True))
    return pipeline


def remembered(pipeline: Pipeline, spark: SparkSession, table: str) -> list[int]:
    """The deleted keys that the folded rows of a table still have."""
    rows = spark.read.format("delta").load(Lake(pipeline.lake).path(rows_of(table)))
    return sorted(row["id"] for row in rows.where(DELETED).collect())


def test_key_that_was_deleted_exactly_its_retention_ago_is_remembered(
    maintained: Pipeline, spark: SparkSession
) -> None:
    """A microsecond earlier it is forgotten."""
    assert remembered(maintained, spark, "parts") == [2, 3]


def test_deleted_key_of_a_versioned_table_is_remembered_as_long_as_its_history(
    maintained: Pipeline, spark: SparkSession
) -> None:
    """However short its own retention is: a late record within the history must not find it forgotten."""
    assert remembered(maintained, spark, "prices") == [2, 3]


def test_record_without_time_has_that_of_its_plan(maintained: Pipeline, spark: SparkSession) -> None:
    """Not that at which its row is made: a batch that is run again has to make the same row."""
    changes = spark.read.format("delta").load(Lake(maintained.lake).path(changes_of("kinds")))
    (row,) = changes.select(F.unix_micros(TIME).alias("micros")).collect()
    assert from_micros(row["micros"]) == Journal(Lake(maintained.lake)).plans[0].planned_at
