"""Values that Spark's hash takes for equal, and foreign keys that tell them apart."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.storage.lake.layout import Lake, joined_of

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  marks:
    source: {{format: jsonl, path: "marks/{{date}}.jsonl"}}
    columns: {{id: bigint, value: "{dtype}"}}
    key: [id]
  names:
    source: {{format: jsonl, path: "names/{{date}}.jsonl"}}
    columns: {{text: string, name: string}}
    key: [text]
joins:
  called: {{left: marks, right: names, foreign_key: ["cast(value as string)"], how: left}}
"""


def _run(
    folder: Path, spark: SparkSession, dtype: str, names: list[str], *lines: str
) -> dict[int, str | None]:
    """Load names, and marks as the lines say, in one batch; return by mark the name that it is joined with."""
    write_lines(
        folder / "names" / "2024-01-01.jsonl", [{"op": "c", "text": t, "name": f"<{t}>"} for t in names]
    )
    marks = folder / "marks" / "2024-01-01.jsonl"
    marks.parent.mkdir(parents=True)
    marks.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    pipeline = make_pipeline(folder, TEXT.format(dtype=dtype))
    run(pipeline, spark)
    checked = check_lake(pipeline, spark, batches=None)
    assert all(result.success for results in checked.results.values() for result in results)
    rows = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of("called"))).collect()
    return {row["id"]: row["right_name"] for row in rows}


@pytest.mark.parametrize("second", ["0.0", "-0.0"])
def test_zero_changes_its_sign_within_a_batch(tmp_path: Path, spark: SparkSession, second: str) -> None:
    """-0.0 and 0.0 are two values, and the last one counts."""
    first = "-0.0" if second == "0.0" else "0.0"
    lines = [
        json.dumps({"op": op, "id": 1})[:-1] + f', "value": {v}}}' for op, v in (("c", first), ("u", second))
    ]
    assert _run(tmp_path, spark, "double", ["0.0", "-0.0"], *lines) == {1: f"<{second}>"}


def test_map_comes_again_in_another_order(tmp_path: Path, spark: SparkSession) -> None:
    """The order of a map's entries is taken away where it is read: the row is the one that it was."""
    lines = ('{"op":"c","id":1,"value":{"b":2,"a":1}}', '{"op":"u","id":1,"value":{"a":1,"b":2}}')
    assert _run(tmp_path, spark, "map<string,int>", ["{a -> 1, b -> 2}"], *lines) == {1: "<{a -> 1, b -> 2}>"}


def test_map_with_a_key_twice_is_no_map(tmp_path: Path, spark: SparkSession) -> None:
    """Which of the two entries counts differs from expression to expression."""
    lines = ('{"op":"c","id":1,"value":{"b":2,"b":1}}', '{"op":"c","id":2,"value":{"b":2}}')
    assert _run(tmp_path, spark, "map<string,int>", ["{b -> 2}"], *lines) == {2: "<{b -> 2}>"}
