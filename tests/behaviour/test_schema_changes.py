"""`on_schema_change`: what a difference between the columns of files and the declared ones is, and what it stops."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.planning.input_checks import SchemaChanged, check_schemas
from lakejoin.orchestration.planning.pending_input import pending_groups
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.parsing.schema_drift import always_fits

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: {form}, path: "{path}", on_schema_change: {policy}, strict: {strict}}}
    columns: {{id: bigint, amount: "decimal(12,2)", at: timestamp}}
    key: [id]
"""
NOON = "2024-01-01T12:00:00Z"
GOOD = {"op": "c", "id": 1, "amount": "1.50", "at": NOON}
Rows = list[dict[str, Any]]


def write_jsonl(folder: Path, name: str, rows: Rows) -> None:
    """Flat JSON lines."""
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_debezium(folder: Path, name: str, rows: Rows) -> None:
    """Events, of which a delete has no row behind it."""
    events = []
    for row in rows:
        columns = {column: value for column, value in row.items() if column != "op"}
        deleted = row["op"] == "d"
        events.append({"op": row["op"], "before" if deleted else "after": columns})
    write_jsonl(folder, name, [{"key": {"id": 1}, "value": event} for event in events])


def write_csv(folder: Path, name: str, rows: Rows) -> None:
    """A header of all names, nulls as empty fields."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    lines = [",".join("" if row.get(n) is None else str(row[n]) for n in names) for row in rows]
    (folder / f"{name}.csv").write_text("\n".join([",".join(names), *lines]) + "\n")


AVRO: Mapping[str, list[dict[str, Any]]] = {
    "a": [
        {"name": "op", "type": "string"},
        {"name": "id", "type": "int"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    ],
    "b": [
        {"name": "op", "type": "string"},
        {"name": "id", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "vip", "type": "boolean"},
    ],
}
"""The fields of a file as declared, and of another."""
WRITERS: Mapping[str, Callable[[Path, str, Rows], None]] = {
    "jsonl": write_jsonl,
    "debezium": write_debezium,
    "csv": write_csv,
}


def pipeline_of(
    folder: Path, form: str, *, policy: str = "fail", strict: bool = False, path: str = "orders/*"
) -> Pipeline:
    """A pipeline of one table."""
    text = TEXT.format(form=form, path=path, policy=policy, strict=str(strict).lower())
    return load_text(text, folder / "lakejoin.yaml")


def check(spark: SparkSession, pipeline: Pipeline) -> str:
    """What is said of the files that wait; empty if nothing is."""
    journal, now = Journal(Lake(pipeline.lake)), datetime.now(UTC)
    groups = pending_groups(pipeline, journal, now=now, spark=spark, batch_by="all", settle=timedelta(0))
    try:
        check_schemas(pipeline, spark, groups[0].files)
    except SchemaChanged as error:
        return str(error)
    return ""


def changed(message: str) -> list[str]:
    """The differences that a message tells."""
    start = "table orders: its source has other columns than are declared: "
    assert message.startswith(start)
    return message.removeprefix(start).partition(". Nothing of the batch was written.")[0].split("; ")


@pytest.mark.spark
@pytest.mark.parametrize("form", WRITERS)
def test_difference_of_text_is_told_by_file_and_column(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """What a file lacks, and what has values of which none fits; a single bad value is no change of type."""
    folder = tmp_path / "orders"
    folder.mkdir()
    delete = {"op": "d", "id": 3}
    WRITERS[form](folder, "a", [GOOD, {**GOOD, "amount": "x", "vip": 1}, {**GOOD, "at": None}, delete])
    assert check(spark, pipeline_of(tmp_path, form)) == ""
    WRITERS[form](folder, "b", [{"op": "u", "id": 1, "at": None}, {"op": "u", "id": 2, "at": "noon"}, delete])

    end = "csv" if form == "csv" else "jsonl"
    said = changed(check(spark, pipeline_of(tmp_path, form)))
    strict = changed(check(spark, pipeline_of(tmp_path, form, strict=True)))

    assert said == [
        f"b.{end}: amount: expected decimal(12,2), found no such column in any of 2 rows",
        f'b.{end}:2: at: expected timestamp, found "noon", and none of 1 values fits',
    ]
    first = "1" if form == "csv" else "2"  # a CSV file has the column in its header
    assert strict == [f"a.{end}:{first}: vip: expected no such column (strict), found one", *said]


@pytest.mark.bad_input(14)
@pytest.mark.bad_input(15)
@pytest.mark.bad_input(16)
@pytest.mark.spark
def test_renamed_column_is_one_that_is_missing_and_one_too_many(spark: SparkSession, tmp_path: Path) -> None:
    """Both stand in the message, and nothing is guessed."""
    (tmp_path / "orders").mkdir()
    write_jsonl(tmp_path / "orders", "a", [{"op": "c", "id": 1, "total": "1.50", "at": NOON}])

    assert changed(check(spark, pipeline_of(tmp_path, "jsonl", strict=True))) == [
        "a.jsonl: amount: expected decimal(12,2), found no such column in any of 1 rows",
        "a.jsonl:1: total: expected no such column (strict), found one",
    ]


@pytest.mark.spark
def test_event_need_not_repeat_its_key_nor_what_did_not_change(spark: SparkSession, tmp_path: Path) -> None:
    """The key stands beside the row, and a placeholder for a value is the value's."""
    (tmp_path / "orders").mkdir()
    row = {"amount": "__debezium_unavailable_value", "at": None}
    event = {"key": {"id": 1}, "value": {"schema": {}, "payload": {"op": "u", "after": row}}}
    (tmp_path / "orders/a.jsonl").write_text(f"{json.dumps(event)}\nbroken\n")

    assert check(spark, pipeline_of(tmp_path, "debezium", strict=True)) == ""


@pytest.mark.bad_input(16)
@pytest.mark.spark
def test_difference_of_files_with_types_and_delta_tables_stands_in_their_schemas(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No row is read; a type whose every value fits is none."""
    at = pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    good = {"id": pa.array([1], pa.int32()), "amount": pa.array(["1"]).cast(pa.decimal128(5, 1)), "at": at}
    other = {"id": ["1"], "at": at, "vip": [True]}
    for name, columns in (("a", good), ("b", other)):
        rows = pa.table({"op": ["c"], **columns})
        for form in ("parquet", "orc", "avro"):
            (tmp_path / form).mkdir(exist_ok=True)
        pq.write_table(rows, tmp_path / "parquet" / f"{name}.parquet")
        orc.write_table(rows, tmp_path / "orc" / f"{name}.orc")
        with (tmp_path / "avro" / f"{name}.avro").open("wb") as file:
            fastavro.writer(file, {"type": "record", "name": "r", "fields": AVRO[name]}, rows.to_pylist())
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path / "feed", pa.table(other), configuration=feed)

    of_files = {
        form: changed(check(spark, pipeline_of(tmp_path, form, strict=True, path=f"{form}/*")))
        for form in ("parquet", "orc", "avro")
    }
    of_delta = changed(check(spark, pipeline_of(tmp_path, "delta", strict=True, path="feed")))

    differences = [
        "id: expected bigint, found string",
        "amount: expected decimal(12,2), found no such column",
        "vip: expected no such column (strict), found one",
    ]
    assert of_files == {form: [f"b.{form}: {difference}" for difference in differences] for form in of_files}
    assert of_delta == [f"{tmp_path}/feed (version 0): {difference}" for difference in differences]


@pytest.mark.bad_input(13)
@pytest.mark.bad_input(14)
@pytest.mark.spark
def test_difference_stops_the_run_before_it_plans_unless_it_is_ignored(
    spark: SparkSession, tmp_path: Path
) -> None:
    """By default what is missing is null, and what is not declared is passed over."""
    (tmp_path / "orders").mkdir()
    write_jsonl(tmp_path / "orders", "a", [{"op": "c", "id": 1, "vip": 1}])

    with pytest.raises(SchemaChanged):
        list(run_batches(pipeline_of(tmp_path, "jsonl"), spark))
    assert Journal(Lake(str(tmp_path / "lake"))).plans == []
    (published,) = run_batches(pipeline_of(tmp_path, "jsonl", policy="ignore"), spark)
    assert published.tables["orders"]["applied"] == 1


@pytest.mark.bad_input(12)
@pytest.mark.spark
def test_hostile_names_make_no_long_message(spark: SparkSession, tmp_path: Path) -> None:
    """Of very many undeclared columns the first are told."""
    (tmp_path / "orders").mkdir()
    rows: Iterable[dict[str, Any]] = ({**GOOD, f"m{number}": 1} for number in range(3000))
    write_jsonl(tmp_path / "orders", "a", list(rows))

    message = check(spark, pipeline_of(tmp_path, "jsonl", strict=True))

    assert len(changed(message)) == 11
    assert len(message) < 2000


@pytest.mark.bad_input(16)
@pytest.mark.parametrize(
    ("found", "declared", "expected"),
    [
        ("int", "int", True),
        ("smallint", "bigint", True),
        ("bigint", "int", False),
        ("bigint", "decimal(21,2)", True),
        ("bigint", "decimal(20,2)", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(12,3)", "decimal(14,2)", False),
        ("decimal(12,1)", "decimal(12,2)", False),
        ("float", "double", True),
        ("double", "float", False),
        ("bigint", "timestamp", True),
        ("int", "date", True),
        ("timestamp_ntz", "timestamp", True),
        ("timestamp", "date", False),
        ("string", "int", False),
        ("int", "string", False),
        ("array<int>", "array<int>", True),
        ("array<int>", "array<bigint>", False),
    ],
)
def test_type_fits_if_every_value_of_it_does(found: str, declared: str, *, expected: bool) -> None:
    """A wider type may hold values that do not fit, and text may hold anything."""
    types: list[DataType] = [parse_type(found), parse_type(declared)]

    assert always_fits(*types) is expected
