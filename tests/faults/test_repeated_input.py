"""Input that comes more than once: the same file, or its records in another one."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import content, joins, make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of

pytestmark = pytest.mark.spark

CONFIGURATION = """\
name: parts
lake: ./lake
tables:
  parts:
    source: {format: jsonl, path: "parts/{date}.jsonl"}
    columns: {id: bigint, kind: string, n: bigint}
    key: [id]
    sequence: [n]
  kinds:
    source: {format: jsonl, path: "kinds/{date}.jsonl"}
    columns: {kind: string, name: string, n: bigint}
    key: [kind]
    sequence: [n]
joins:
  named: {left: parts, right: kinds, foreign_key: [kind], how: inner}
"""
DAYS = {
    "2024-01-01": [("c", 1, "a", 1), ("c", 2, "b", 2), ("c", 3, "a", 3)],
    "2024-01-02": [("u", 1, "b", 4), ("d", 2, None, 5), ("c", 4, "a", 6)],
}
KINDS = [("c", "a", "anchor", 1), ("c", "b", "bolt", 2)]


def write(path: Path, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    """Write records."""
    write_lines(path, [dict(zip(names, row, strict=True)) for row in rows])


@pytest.fixture
def parts(tmp_path: Path, spark: SparkSession) -> Pipeline:
    """Return a pipeline that has worked off two days."""
    for day, rows in DAYS.items():
        write(tmp_path / "parts" / f"{day}.jsonl", ("op", "id", "kind", "n"), rows)
    write(tmp_path / "kinds" / "2024-01-01.jsonl", ("op", "kind", "name", "n"), KINDS)
    pipeline = make_pipeline(tmp_path, CONFIGURATION)
    assert run(pipeline, spark) == 2
    return pipeline


@pytest.mark.failure(10)
def test_file_that_comes_again_is_not_read_again(parts: Pipeline, spark: SparkSession) -> None:
    """It was written anew by whoever delivers it, with the same content, under its name and another time."""
    before = content(parts, spark)
    for file in (parts.path.parent / "parts").iterdir():
        text = file.read_bytes()
        file.unlink()
        file.write_bytes(text)
        os.utime(file, (1, 1))

    assert run(parts, spark) == 0
    assert content(parts, spark) == before


@pytest.mark.failure(11)
@pytest.mark.guard("sequence_check", slow=True)
@pytest.mark.guard("deduplication", slow=True)
def test_records_that_come_again_in_another_file_change_nothing(parts: Pipeline, spark: SparkSession) -> None:
    """Of days that were long read: each is older than what its key has, or the same as it, and counted as such."""
    joined = joined_of("named")
    before = content(parts, spark)[joined]
    again = "".join((parts.path.parent / "parts" / f"{day}.jsonl").read_text() for day in DAYS)
    (parts.path.parent / "parts" / "2024-01-03.jsonl").write_text(again)

    assert run(parts, spark) == 1

    assert content(parts, spark)[joined] == before
    counts = Journal(Lake(parts.lake)).published[-1].tables["parts"]
    wanted = {"records": 6, "applied": 0, "duplicate": 4, "out_of_order": 2}
    assert counts | wanted == counts


@pytest.mark.bad_input(25)
def test_of_a_thousand_updates_of_a_key_in_one_batch_the_last_one_counts(
    parts: Pipeline, spark: SparkSession
) -> None:
    """Its foreign key moves with each; none of those that it had before brings it back afterwards."""
    updates = [("u", 1, "ab"[n % 2], n) for n in range(1000, 2000)]
    write(parts.path.parent / "parts" / "2024-01-03.jsonl", ("op", "id", "kind", "n"), updates)
    assert run(parts, spark) == 1
    counts = Journal(Lake(parts.lake)).published[-1].tables["parts"]
    assert counts | {"records": 1000, "applied": 1000} == counts
    write(
        parts.path.parent / "kinds" / "2024-01-04.jsonl", ("op", "kind", "name", "n"), [("u", "a", "arm", 3)]
    )

    assert run(parts, spark) == 1

    rows = [json.loads(row) for row in joins(parts, spark)["named"]]
    found = {row["id"]: (row["kind"], row["n"], row["right_name"]) for row in rows}
    assert found == {1: ("b", 1999, "bolt"), 3: ("a", 3, "arm"), 4: ("a", 6, "arm")}
    responses = Journal(Lake(parts.lake)).published[-1].joins["named"]
    assert responses | {"answers": 2, "applied": 2} == responses
