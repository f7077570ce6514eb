"""Rows that other tools write, from their files to a table; refused where they can be read in two ways."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run
from orchestration.planning.ambiguous_input import AmbiguousInput
from storage.lake.journal import Journal
from storage.lake.layout import Lake, changes_of

pytestmark = pytest.mark.spark

FILE = """\
name: shop
lake: ./lake
tables:
  customers:
    source: {{format: {form}, path: "in/*", {source}}}
    columns: {{id: bigint, name: string{more}}}
    key: [id]
"""


def write(folder: Path, name: str, lines: Sequence[object]) -> None:
    """A file of lines; an object stands for its JSON."""
    path = folder / "in" / name
    path.parent.mkdir(exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))


def rows(folder: Path, spark: SparkSession, form: str, source: str, more: str = "") -> dict[int, Any]:
    """The names of the customers that are there after a run, by key."""
    pipeline = make_pipeline(folder, FILE.format(form=form, source=source, more=more))
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    changes = spark.read.format("delta").load(lake.path(changes_of("customers")))
    applied = changes.where("_lj_verdict = 'applied'").orderBy("_lj_position").collect()
    last = {row["id"]: row for row in applied}
    return {key: row["name"] for key, row in last.items() if row["_lj_op"] == "upsert"}


def test_dms_loads_a_table_and_goes_on_with_its_changes(tmp_path: Path, spark: SparkSession) -> None:
    """Files of the full load have no column `Op`; those of the changes do."""
    write(tmp_path, "LOAD1.csv", ["id,name", "1,ann", "2,bob", "3,cat"])
    assert rows(tmp_path, spark, "csv", "op: dms") == {1: "ann", 2: "bob", 3: "cat"}

    write(tmp_path, "x20240615.csv", ["Op,id,name", "U,1,anne", "D,2,bob", "I,4,dan"])
    assert rows(tmp_path, spark, "csv", "op: dms") == {1: "anne", 3: "cat", 4: "dan"}


def test_dms_in_parquet(tmp_path: Path, spark: SparkSession) -> None:
    """The same rows, with types."""
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1, 2], "name": ["ann", "bob"]}), tmp_path / "in/LOAD1.parquet")
    changes = {"Op": ["U", "D"], "id": [1, 2], "name": ["anne", "bob"]}
    pq.write_table(pa.table(changes), tmp_path / "in/x.parquet")

    assert rows(tmp_path, spark, "parquet", "op: dms") == {1: "anne"}


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
        form="jsonl", source="absent: clear, op: {column: meta.kind, upsert: [new], delete: [old]}", more=""
    ).replace("name: string", "name: {type: string, from: who.name}")
    pipeline = make_pipeline(tmp_path, text)
    run(pipeline, spark)

    changes = spark.read.format("delta").load(Lake(pipeline.lake).path(changes_of("customers")))
    found = {row["id"]: (row["_lj_op"], row["name"]) for row in changes.collect()}
    assert found == {1: ("upsert", "ann"), 2: ("delete", None), 3: ("upsert", "cat")}
