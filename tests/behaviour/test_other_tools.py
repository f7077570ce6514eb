"""Rows that other tools write, from their files to a table; refused where they can be read in two ways."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run
from lakejoin.orchestration.planning.ambiguous_input import AmbiguousInput
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changes_of

pytestmark = pytest.mark.spark

FILE = """\
name: shop
lake: ./lake
tables:
  customers:
    source: {{format: {form}, path: "in/*", {source}}}
    columns: {{id: bigint, name: string{more}}}
    key: [id]
{order}"""
BY_TIME = (", at: timestamp", "    sequence: [at]\n")


def write(folder: Path, name: str, lines: Sequence[object]) -> None:
    """A file of lines; an object stands for its JSON."""
    path = folder / "in" / name
    path.parent.mkdir(exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))


def rows(
    folder: Path, spark: SparkSession, form: str, source: str, more: str = "", order: str = ""
) -> dict[int, Any]:
    """The names of the customers that are there after a run, by key."""
    pipeline = make_pipeline(folder, FILE.format(form=form, source=source, more=more, order=order))
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    changes = spark.read.format("delta").load(lake.path(changes_of("customers")))
    applied = changes.where("_lj_verdict = 'applied'").orderBy("_lj_sequence", "_lj_position").collect()
    last = {row["id"]: row for row in applied}
    return {key: row["name"] for key, row in last.items() if row["_lj_op"] == "upsert"}


def test_dms_loads_a_table_and_goes_on_with_its_changes(tmp_path: Path, spark: SparkSession) -> None:
    """Files of the full load have no column `Op`, and names that come behind those of the changes."""
    load = [
        "id,name,at",
        "1,ann,2024-06-15T10:00:00Z",
        "2,bob,2024-06-15T10:00:00Z",
        "3,cat,2024-06-15T10:00:00Z",
    ]
    changes = [
        "U,1,anne,2024-06-15T11:00:00Z",
        "D,2,bob,2024-06-15T11:01:00Z",
        "I,4,dan,2024-06-15T11:02:00Z",
    ]
    write(tmp_path, "LOAD1.csv", load)
    write(tmp_path, "20240615.csv", ["Op,id,name,at", *changes])

    assert rows(tmp_path, spark, "csv", "op: dms", *BY_TIME) == {1: "anne", 3: "cat", 4: "dan"}


def test_dms_in_parquet(tmp_path: Path, spark: SparkSession) -> None:
    """The same rows, with types."""
    (tmp_path / "in").mkdir()
    load = {"id": [1, 2], "name": ["ann", "bob"], "at": [datetime(2024, 6, 15, 10, tzinfo=UTC)] * 2}
    changes = {
        "Op": ["U", "D"],
        **load,
        "name": ["anne", "bob"],
        "at": [datetime(2024, 6, 15, 11, tzinfo=UTC)] * 2,
    }
    pq.write_table(pa.table(load), tmp_path / "in/LOAD1.parquet")
    pq.write_table(pa.table(changes), tmp_path / "in/20240615.parquet")

    assert rows(tmp_path, spark, "parquet", "op: dms", *BY_TIME) == {1: "anne"}


def test_records_of_two_tables_are_refused_until_one_is_named(tmp_path: Path, spark: SparkSession) -> None:
    """A topic of Maxwell's holds all tables: another's rows would have become rows of this one."""
    about = {"database": "shop", "type": "insert"}
    write(
        tmp_path,
        "1.jsonl",
        [
            {**about, "table": "customers", "data": {"id": 1, "name": "ann"}},
            {**about, "table": "orders", "data": {"id": 7, "name": "x"}},
            {
                **about,
                "table": "customers",
                "type": "update",
                "data": {"id": 2, "name": "ann"},
                "old": {"id": 1},
            },
        ],
    )

    with pytest.raises(AmbiguousInput, match=r"shop\.customers.*shop\.orders"):
        rows(tmp_path, spark, "jsonl", "op: maxwell")
    assert rows(tmp_path, spark, "jsonl", "op: maxwell, tables: [shop.customers]") == {2: "ann"}


def test_unwrapped_rows_ask_what_events_ask(tmp_path: Path, spark: SparkSession) -> None:
    """Base64 that looks like digits, and updates that lack a column; a schema beside the row is an answer."""
    write(
        tmp_path,
        "1.jsonl",
        [{"id": 1, "name": "ann", "v": "1234", "__op": "c"}, {"id": 1, "v": "2000", "__op": "u"}],
    )
    form, more = "jsonl", ', v: "decimal(12,2)"'

    with pytest.raises(AmbiguousInput) as refused:
        rows(tmp_path, spark, form, "op: debezium-unwrapped", more)
    assert "as: precise" in str(refused.value)
    assert "absent: keep" in str(refused.value)
    assert Journal(Lake(f"{tmp_path}/lake")).plans == []

    meant = ', v: {type: "decimal(12,2)", as: precise}'
    assert rows(tmp_path, spark, form, "op: debezium-unwrapped, absent: keep", meant) == {1: "ann"}


def test_nested_rows_and_a_column_of_one_s_own(tmp_path: Path, spark: SparkSession) -> None:
    """Neither a preset nor flat: the operation and a column lie within objects."""
    lines = [
        {"meta": {"kind": "new"}, "id": 1, "who": {"name": "ann"}},
        {"meta": {"kind": "old"}, "id": 2, "who": None},
        {"meta": {"kind": "new"}, "id": 3, "who": {"name": "cat"}},
    ]
    write(tmp_path, "1.jsonl", lines)
    text = FILE.format(
        form="jsonl",
        source="absent: clear, op: {column: meta.kind, upsert: [new], delete: [old]}",
        more="",
        order="",
    ).replace("name: string", "name: {type: string, from: who.name}")
    pipeline = make_pipeline(tmp_path, text)
    run(pipeline, spark)

    changes = spark.read.format("delta").load(Lake(pipeline.lake).path(changes_of("customers")))
    found = {row["id"]: (row["_lj_op"], row["name"]) for row in changes.collect()}
    assert found == {1: ("upsert", "ann"), 2: ("delete", None), 3: ("upsert", "cat")}
