"""The source empties a table: every row it had is deleted, at that point of the table's history and no other."""

import json
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run
from lakejoin.orchestration.batch.tables.replaced_files import ReplaceRefused
from lakejoin.orchestration.batch.tables.table import TruncateStopped
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.lake_state.quarantine_counts import open_counts
from lakejoin.orchestration.runs.put_in_quarantine import place_of, put_in_quarantine
from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, retry
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, Lake, joined_of

pytestmark = pytest.mark.spark

CONFIGURATION = """\
name: parts
lake: ./lake
tables:
  parts:
    source: {format: debezium, path: "parts/{date}.jsonl"}
    columns: {id: bigint, kind: string}
    key: [id]
    sequence: [lsn]
    on_truncate: delete
  kinds:
    source: {format: jsonl, path: "kinds/{date}.jsonl"}
    columns: {kind: string, name: string}
    key: [kind]
joins:
  named: {left: parts, right: kinds, foreign_key: [kind], how: left}
"""
FIRST, SECOND = "2024-01-01", "2024-01-02"
CREATED = [("c", 1, 1, "a"), ("c", 2, 2, "b"), ("c", 3, 3, "a")]
# one more row, then none, then one of them again; the redelivery of an older change must not bring a row back
EMPTIED = [("c", 4, 4, "b"), ("t", 5, None, None), ("c", 6, 1, "b"), ("c", 2, 2, "b")]


def _events(path: Path, events: Iterable[tuple[str, int, int | None, str | None]]) -> None:
    path.parent.mkdir(exist_ok=True)
    lines = []
    for op, lsn, number, kind in events:
        row = None if number is None else {"id": number, "kind": kind}
        value = {"op": op, "before": None, "after": row, "source": {"lsn": lsn}, "ts_ms": lsn}
        key = None if number is None else {"id": number}
        lines.append(json.dumps({"key": key, "value": value}) + "\n")
    path.write_text("".join(lines))


@pytest.fixture
def parts(tmp_path: Path) -> Pipeline:
    """Return a pipeline whose left table is filled on the first day and emptied on the second."""
    _events(tmp_path / "parts" / f"{FIRST}.jsonl", CREATED)
    _events(tmp_path / "parts" / f"{SECOND}.jsonl", EMPTIED)
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / f"{FIRST}.jsonl").write_text('{"op": "c", "kind": "b", "name": "bolt"}\n')
    return make_pipeline(tmp_path, CONFIGURATION)


@pytest.mark.parametrize("batch_by", ["date", "all"])
def test_truncate_deletes_what_was_there_before_it_and_nothing_else(
    batch_by: str, parts: Pipeline, spark: SparkSession
) -> None:
    """Rows of earlier batches and of the same one; what comes after it stays."""
    run(parts, spark, batch_by=batch_by)
    rows = spark.read.format("delta").load(Lake(parts.lake).path(joined_of("named")))
    assert [(row["id"], row["kind"], row["right_name"]) for row in rows.collect()] == [(1, "b", "bolt")]
    counts = [published.tables["parts"] for published in Journal(Lake(parts.lake)).published]
    assert sum(count["records"] for count in counts) == len(CREATED) + len(EMPTIED)
    assert sum(count["out_of_order"] for count in counts) == 1
    assert Journal(Lake(parts.lake)).last.rows["parts"] == 1


def test_truncate_stops_the_batch_unless_it_is_allowed(parts: Pipeline, spark: SparkSession) -> None:
    """Nothing of the batch is committed but its plan, and with the permission it runs to its end."""
    text = parts.path.read_text()
    parts.path.write_text(text.replace("on_truncate: delete", "on_truncate: stop"))
    with pytest.raises(TruncateStopped, match=r"parts: .*2024-01-02.jsonl:2.*on_truncate: delete"):
        run(load(parts.path), spark)
    lake = Lake(parts.lake)
    assert len(Journal(lake).published) == 1
    assert lake.snapshot(PLAN).version == 1
    parts.path.write_text(text)
    assert run(load(parts.path), spark) == 1
    assert Journal(lake).last.rows["parts"] == 1


@pytest.mark.slow
def test_truncate_that_stops_a_batch_can_be_left_out(parts: Pipeline, spark: SparkSession) -> None:
    """It waits in quarantine; once it is allowed, it deletes what stood before it."""
    text = parts.path.read_text()
    parts.path.write_text(text.replace("on_truncate: delete", "on_truncate: stop"))
    stopping = load(parts.path)
    with pytest.raises(
        TruncateStopped, match=rf"`lakejoin quarantine add FILE parts --record {SECOND}.jsonl:2`"
    ):
        run(stopping, spark)
    list(put_in_quarantine(stopping, lambda: spark, [place_of("parts", f"{SECOND}.jsonl:2")]))
    rows = spark.read.format("delta").load(Lake(parts.lake).path(joined_of("named")))
    assert sorted(row["id"] for row in rows.collect()) == [1, 2, 3, 4]
    assert open_counts(Lake(parts.lake), Journal(Lake(parts.lake))) == {"parts": {"by_hand": 1}}

    parts.path.write_text(text)
    list(retry(load(parts.path), lambda: spark, ["parts"]))
    rows = spark.read.format("delta").load(Lake(parts.lake).path(joined_of("named")))
    assert [row["id"] for row in rows.collect()] == [1]


@pytest.mark.slow
def test_file_before_a_truncate_is_not_replaced(parts: Pipeline, spark: SparkSession) -> None:
    """What the file has new would not be deleted by it; a file behind it can be replaced."""
    third = parts.path.parent / "parts" / "2024-01-03.jsonl"
    _events(third, [("c", 7, 7, "a")])
    run(parts, spark)
    first = parts.path.parent / "parts" / f"{FIRST}.jsonl"
    before = first.read_text()
    _events(first, [("c", 3, 9, "b"), *CREATED])
    with pytest.raises(ReplaceRefused, match=r"parts: a truncate event at .*2024-01-02.*nothing was changed"):
        run(parts, spark, replace=date.fromisoformat(FIRST))
    first.write_text(before)
    _events(third, [("c", 7, 8, "b")])
    assert run(parts, spark, replace=date(2024, 1, 3)) == 1
    rows = spark.read.format("delta").load(Lake(parts.lake).path(joined_of("named")))
    assert sorted(row["id"] for row in rows.collect()) == [1, 8]


def test_file_with_a_truncate_is_not_replaced(parts: Pipeline, spark: SparkSession) -> None:
    """What the file says now or said then; nothing is planned, so that the next run goes on."""
    run(parts, spark)
    file = parts.path.parent / "parts" / f"{SECOND}.jsonl"
    before = file.read_text()
    _events(file, EMPTIED[:1])
    with pytest.raises(ReplaceRefused, match=r"parts: a truncate event at .*nothing was changed"):
        run(parts, spark, replace=date.fromisoformat(SECOND))
    file.write_text(before)
    assert run(parts, spark) == 0


@pytest.mark.slow
def test_record_before_a_truncate_does_not_come_back_out_of_quarantine(
    parts: Pipeline, spark: SparkSession
) -> None:
    """The source emptied the table behind it; a record behind the event is read."""
    text, long = parts.path.read_text(), "a" * 500
    _events(parts.path.parent / "parts" / f"{FIRST}.jsonl", [*CREATED, ("c", 9, 9, long)])
    _events(parts.path.parent / "parts" / f"{SECOND}.jsonl", [("c", 7, 7, long), *EMPTIED, ("c", 8, 8, long)])
    path = '"parts/{date}.jsonl"'
    parts.path.write_text(text.replace(path, f"{path}, limits: {{line: 500 bytes}}"))
    run(load(parts.path), spark)
    parts.path.write_text(text)
    pipeline = load(parts.path)
    before = [
        (f"{FIRST}.jsonl", 4, "before_truncate", f"the table was emptied at {SECOND}.jsonl:3"),
        (f"{SECOND}.jsonl", 1, "before_truncate", f"the table was emptied at {SECOND}.jsonl:3"),
    ]
    for applied in (1, 0):
        (batch,) = retry(pipeline, lambda: spark, ["parts"])

        counts = batch.tables["parts"]
        assert (counts["records"], counts["applied"], counts["quarantined"]) == (2 + applied, applied, 2)
        rows = spark.read.format("delta").load(Lake(parts.lake).path(joined_of("named")))
        assert sorted(row["id"] for row in rows.collect()) == [1, 8]
        left = in_quarantine(pipeline, spark, ["parts"]).collect()
        assert [(row["file"], row["line"], row["reason"], row["detail"]) for row in left] == before
        assert all(long in row["raw"] for row in left)
        lake = Lake(parts.lake)
        assert open_counts(lake, Journal(lake)) == {"parts": {"before_truncate": 2}}
