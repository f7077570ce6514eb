"""Versioned tables fed by Debezium, whose records leave out values and whose deletes may lack a line."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.batch.tables.table import TruncateStopped
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State
from lakejoin.storage.stores.pipeline.histories_and_streams import versioned_store
from lakejoin.transforms.changelog.versions import intervals
from lakejoin.transforms.model.event_time import EPOCH
from lakejoin.transforms.model.schemas import DELETED, VALID_FROM, VALID_TO

pytestmark = pytest.mark.spark

TEXT = """\
name: history
lake: ./lake
tables:
  rows:
    source: {format: debezium, path: "rows/{date}.jsonl"}
    columns: {k: string, note: string, ts: {type: timestamp, as: millis}}
    key: [k]
    sequence: [lsn]
    event_time: ts
    versioned: {history_retention: 10 days}
"""
LEFT_OUT = "__debezium_unavailable_value"
TENTH = 1_704_844_800_000
"""Nine days after the first day's file."""
TOMBSTONE = {"key": {"k": "1"}, "value": None}


def line(time: int, note: str | None) -> dict[str, Any]:
    """A record of the key; its place in the source's log goes with its time."""
    row = {"k": "1", "note": note, "ts": time}
    return {
        "key": {"k": "1"},
        "value": {"op": "u", "before": None, "after": row, "ts_ms": time, "source": {"lsn": time}},
    }


def days(folder: Path, *files: list[dict[str, Any]], text: str = TEXT) -> Pipeline:
    """Write a pipeline and its days."""
    for number, lines in enumerate(files, start=1):
        write_lines(folder / "rows" / f"2024-01-{number:02}.jsonl", lines)
    return make_pipeline(folder, text)


def history(pipeline: Pipeline, spark: SparkSession) -> list[tuple[Any, ...]]:
    """Value of the key and its validity, in milliseconds since 1970; no value where it did not exist."""
    state, table = (
        State(spark, lake := Lake(pipeline.lake), published_snapshot(Journal(lake))),
        pipeline.tables["rows"].spec,
    )
    rows = intervals(state.versions(table), table).orderBy(VALID_FROM)
    chosen = rows.selectExpr(
        f"if({DELETED}, null, note)", f"unix_millis({VALID_FROM})", f"unix_millis({VALID_TO})"
    )
    return [tuple(row) for row in chosen.collect()]


@pytest.mark.parametrize("together", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_late_record_does_not_take_a_value_it_left_out_from_a_newer_one(
    together: bool, tmp_path: Path, spark: SparkSession
) -> None:
    """One that comes again changes nothing; of another nobody knows what it left out."""
    first = [line(100, "A"), line(200, LEFT_OUT), line(1000, "B")]
    again = [line(200, LEFT_OUT), line(300, LEFT_OUT)]
    pipeline = days(tmp_path, *([first + again] if together else [first, again]))
    run(pipeline, spark)
    assert history(pipeline, spark) == [("A", 100, 200), ("A", 200, 1000), ("B", 1000, None)]
    counts = [batch.tables["rows"] for batch in Journal(Lake(pipeline.lake)).published]
    assert sum(count["out_of_order"] for count in counts) == 1
    assert sum(count["quarantined"] for count in counts) == 1


def test_tombstone_without_its_delete_deletes_at_the_time_of_the_row(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It has no time of its own; the batch's clock would be years after the data."""
    pipeline = days(tmp_path, [line(100, "A"), TOMBSTONE], [line(500, "B")])
    run(pipeline, spark)
    assert history(pipeline, spark) == [(None, 100, 500), ("B", 500, None)]


def test_truncate_event_of_a_time_to_come_stops_the_batch(tmp_path: Path, spark: SparkSession) -> None:
    """Its deletes would outrank every later record; with the time allowed the batch goes on."""
    pipeline = days(
        tmp_path, [line(100, "A"), {"key": None, "value": {"op": "t", "ts_ms": TENTH, "source": {}}}]
    )
    text = TEXT.replace("    versioned:", "    on_truncate: delete\n    versioned:")
    pipeline.path.write_text(text)
    with pytest.raises(TruncateStopped, match=r"rows: the truncate event at 2024-01-01.jsonl:2 .*max_future"):
        run(load(pipeline.path), spark)
    pipeline.path.write_text(text.replace("    versioned:", "    max_future: 30 days\n    versioned:"))
    assert run(load(pipeline.path), spark) == 1


@pytest.mark.slow
def test_retention_that_was_raised_brings_nothing_back(tmp_path: Path, spark: SparkSession) -> None:
    """What a fold forgot is not known whole any more: a record of before is refused, and nothing is as of then."""
    day = 24 * 3600 * 1000
    first = [line(day, "a"), line(2 * day, "b"), line(3 * day, "c"), line(20 * day, "d")]
    pipeline = days(tmp_path, first)
    run(pipeline, spark)
    list(maintain(pipeline, lambda: spark, everything=True))
    kept = [("c", 3 * day, 10 * day), ("edge", 10 * day, 20 * day), ("d", 20 * day, None)]
    late = [line(day, "a"), line(3 * day // 2, "late"), line(10 * day - 1, "early"), line(10 * day, "edge")]
    pipeline = days(tmp_path, first, late)
    pipeline.path.write_text(TEXT.replace("10 days", "100 days"))
    pipeline = load(pipeline.path)

    run(pipeline, spark)

    last = Journal(Lake(pipeline.lake)).last
    assert (last.tables["rows"]["expired"], last.tables["rows"]["history"]) == (3, 1)
    assert history(pipeline, spark) == kept
    lake = Lake(pipeline.lake)
    store = versioned_store(lake, published_snapshot(Journal(lake)), pipeline.tables["rows"].spec)
    found = [store.get_as_of("1", EPOCH + timedelta(days=at)) for at in (2, 9, 15, 21)]
    assert [version and version.value["note"] for version in found] == [None, None, "edge", "d"]
    list(maintain(pipeline, lambda: spark, everything=True))
    assert history(pipeline, spark) == kept
    run(days(tmp_path, first, late, [line(5 * day, "later still")], text=pipeline.path.read_text()), spark)
    assert Journal(Lake(pipeline.lake)).published[-1].tables["rows"]["expired"] == 1
