"""What the versions of a Delta table say as records. Somebody else writes the table: delta-rs, or Spark's own SQL."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, MapType, StringType, StructField, StructType, TimestampType

from lakejoin.storage.errors import SourceTrimmed
from lakejoin.storage.sources.change_data_feed.feed_log import NOTHING, Feed
from lakejoin.storage.sources.planned.planned_file import FEED, PlannedFile
from lakejoin.storage.sources.reader import read_records
from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DERIVED,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions

pytestmark = pytest.mark.spark

TABLE = TableSpec(
    "customers",
    StructType([
        StructField("id", LongType()), StructField("city", StringType()),
        StructField("tags", MapType(StringType(), StringType())), StructField("absent", StringType()),
    ]),
    ("id",),
    POSITION_TYPE,
)  # fmt: skip
ON = {"delta.enableChangeDataFeed": "true"}


def append(path: Path, *values: tuple[int | None, str | None]) -> None:
    """Commit rows in a version of their own."""
    numbers, cities = zip(*values, strict=True)
    rows = pa.table({
        "id": pa.array(numbers, pa.int64()), "city": pa.array(cities, pa.string()), "op": ["?"] * len(numbers),
        "tags": pa.array([[("k", "v")]] * len(numbers), pa.map_(pa.string(), pa.string())),
    })  # fmt: skip
    write_deltalake(str(path), rows, mode="append", configuration=ON)


def versions(path: Path | str, after: int, through: int) -> PlannedFile:
    """Versions of a table after one up to another, as a plan has them."""
    return PlannedFile("places", str(path), FEED, None, 0, 0, "", 0, True, after, through)


def records(spark: SparkSession, path: Path, after: int, through: int) -> list[tuple[Any, ...]]:
    """Version, operation, key, city and line of each record, in order."""
    part = versions(path, after, through)
    frame = read_records(spark, TABLE, ParseOptions("delta"), [part])
    assert frame.where(F.col(CONTEXT) | F.col(DERIVED) | (F.col(SEQUENCE) != F.col(POSITION))).count() == 0
    rows = frame.orderBy(POSITION, "id", "city").collect()
    return [
        (int(row[POSITION]["file"]), row[OP] or row[REASON], row["id"], row["city"], row[POSITION]["line"])
        for row in rows
    ]


def test_table_is_read_as_inserts_of_its_version(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever came before it; columns that are not declared are left out, one named `op` is nothing special."""
    path = tmp_path / "t"
    append(path, (1, "Rome"), (2, "Oslo"))
    DeltaTable(str(path)).delete("id = 2")
    append(path, (3, None))

    assert records(spark, path, NOTHING, 1) == [(1, "upsert", 1, "Rome", 1)]
    assert records(spark, path, NOTHING, 2) == [(2, "upsert", 1, "Rome", 1), (2, "upsert", 3, None, 1)]


def test_changes_are_those_of_each_version(spark: SparkSession, tmp_path: Path) -> None:
    """The earlier half of an update is no record, but where the key changed it is the delete of the old one."""
    path = tmp_path / "t"
    append(path, (1, "Rome"), (2, "Oslo"))
    append(path, (3, "Bonn"))
    table = DeltaTable(str(path))
    table.update(updates={"city": "'Lyon'"}, predicate="id = 1")
    table.delete("id = 2")
    table.update(updates={"id": "4"}, predicate="id = 3")
    table.optimize.compact()
    write_deltalake(str(path), table.to_pyarrow_table().slice(0, 1), mode="overwrite")

    assert records(spark, path, 0, 4) == [
        (1, "upsert", 3, "Bonn", 1),
        (2, "upsert", 1, "Lyon", 1),
        (3, "delete", 2, None, 1),
        (4, "delete", 3, None, 1),
        (4, "upsert", 4, "Bonn", 1),
    ]
    # an overwrite deletes every row and inserts some: of a key that is in both, the insert is what counts
    assert sorted(op for _, op, *_ in records(spark, path, 4, table.version() + 1)) == ["delete", "upsert"]


def test_update_by_deletion_vector_is_one_record(spark: SparkSession, tmp_path: Path) -> None:
    """No feed is written for it: Delta tells a delete and an insert of the key from the files."""
    path = str(tmp_path / "t")
    schema = "id bigint, city string"
    properties = {**ON, "delta.enableDeletionVectors": "true"}
    rows = spark.createDataFrame([(1, "Rome"), (2, "Oslo"), (3, "Bonn")], schema)
    rows.coalesce(1).write.format("delta").options(**properties).save(path)
    replace_as_we_do(spark, path, schema)

    assert not (tmp_path / "t" / "_change_data").exists()
    assert records(spark, tmp_path / "t", 0, 1) == [(1, "upsert", 1, "Lyon", 1), (1, "delete", 3, None, 1)]
    identity = str(DeltaTable(path).metadata().id)
    assert len(Feed(path).after(0, identity)) == 1
    (vector,) = (tmp_path / "t").rglob("deletion_vector_*.bin")
    vector.unlink()
    with pytest.raises(SourceTrimmed, match=f"{vector.name}, which version 1 needs, is gone"):
        Feed(path).after(0, identity)


def replace_as_we_do(spark: SparkSession, path: str, schema: str) -> None:
    """Commit one row in the place of those of two keys, as a batch does to a joined table."""
    from lakejoin.storage.delta_log.transaction_id import Settled, Transaction
    from lakejoin.storage.delta_table.commits import replace
    from lakejoin.transforms.model.keys import Keys

    new = spark.createDataFrame([(1, "Lyon")], schema)
    keys = spark.createDataFrame([(1,), (3,)], "id bigint")
    transaction = Transaction("test", 1, {})
    replace(new, Keys(keys, few=True), keys.schema, path, transaction, ready=lambda: Settled(1, {}))


def test_range_behind_a_checkpoint_is_read_without_older_commits(spark: SparkSession, tmp_path: Path) -> None:
    """What the log must have for a range is what Delta asks for, and no more."""
    path = tmp_path / "t"
    for number in range(4):
        append(path, (number, "Rome"))
        if number == 2:
            DeltaTable(str(path)).create_checkpoint()
    for number in (0, 1):
        (path / "_delta_log" / f"{number:020d}.json").unlink()

    assert len(Feed(str(path)).after(1, str(DeltaTable(str(path)).metadata().id))) == 2
    assert [number for _, _, number, *_ in records(spark, path, 1, 3)] == [2, 3]


def test_rows_with_the_same_key_have_a_fixed_order(spark: SparkSession, tmp_path: Path) -> None:
    """Nobody keeps a table of Delta from having a key twice; records without key are bad ones."""
    path = tmp_path / "t"
    append(path, (9, "x"))
    append(path, (1, "b"), (1, "a"), (None, "c"), (1, None))

    found = records(spark, path, 0, 1)

    assert [(op, city, line) for _, op, number, city, line in found if number == 1] == [
        ("upsert", None, 1),
        ("upsert", "a", 2),
        ("upsert", "b", 3),
    ]
    assert [(op, line) for _, op, number, _, line in found if number is None] == [("null_key", 1)]
    part = versions(path, 0, 1)
    bad = read_records(spark, TABLE, ParseOptions("delta"), [part]).where(F.col(REASON).isNotNull())
    assert [row[RAW] for row in bad.collect()] == ['{"op":"c","id":null,"city":"c","tags":{"k":"v"}}']


def test_records_that_move_a_clock_have_one_order_in_a_version(spark: SparkSession, tmp_path: Path) -> None:
    """By their time, over all keys: so which of them came late is the same each time that they are read."""
    path = tmp_path / "t"
    times = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in (10, 12, 11)]
    rows = {"id": pa.array([1, 2, 3], pa.int64()), "city": ["Rome", "Oslo", "Bonn"], "at": times}
    write_deltalake(str(path), pa.table(rows), configuration=ON)
    columns = StructType([*TABLE.columns, StructField("at", TimestampType())])
    stream = replace(TABLE, columns=columns, event_time="at", max_future=timedelta(days=1))
    part = versions(path, NOTHING, 0)

    found = read_records(spark, stream, ParseOptions("delta"), [part]).orderBy(POSITION).collect()

    assert [(row["id"], row[POSITION]["line"]) for row in found] == [(1, 1), (3, 2), (2, 3)]


def overwrite_with_other_types(spark: SparkSession, path: str) -> None:
    """The key becomes text, a column goes, another one comes."""
    rows = spark.createDataFrame(
        [("1", "Lyon", "x"), ("4", "Graz", None)], "id string, city string, absent string"
    )
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


def widen(spark: SparkSession, path: str) -> None:
    """A column gets more digits; no file is written again."""
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id TYPE bigint")
    spark.sql(f"UPDATE delta.`{path}` SET city = 'Lyon' WHERE id = 1")


def rename(spark: SparkSession, path: str) -> None:
    """A column has another name, and the declared one is another column."""
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN city TO town")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN phone TO city")
    spark.sql(f"UPDATE delta.`{path}` SET city = 'Lyon' WHERE id = 1")


def add_column(spark: SparkSession, path: str) -> None:
    """A declared column comes later."""
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (absent string)")
    spark.sql(f"UPDATE delta.`{path}` SET city = 'Lyon', absent = 'y' WHERE id = 1")


CHANGES: dict[str, tuple[Callable[[SparkSession, str], None], list[tuple[Any, ...]]]] = {
    "overwritten with other types": (
        overwrite_with_other_types,
        [("delete", 2, None, None), ("upsert", 1, "Lyon", "x"), ("upsert", 4, "Graz", None)],
    ),
    "widened": (widen, [("upsert", 1, "Lyon", None)]),
    "renamed": (rename, [("upsert", 1, "Lyon", None)]),
    "added": (add_column, [("upsert", 1, "Lyon", "y")]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_versions_on_both_sides_of_a_change_of_columns_are_read(
    spark: SparkSession, tmp_path: Path, change: str
) -> None:
    """Each by the columns that it has; Delta alone refuses a range in which they change."""
    path = tmp_path / "t"
    rows = spark.createDataFrame([(1, "Rome", "1"), (2, "Oslo", "2")], "id int, city string, phone string")
    rows.limit(0).write.format("delta").options(**ON).save(str(path))
    rows.write.format("delta").mode("append").save(str(path))
    alter, expected = CHANGES[change]
    alter(spark, str(path))
    newest = DeltaTable(str(path)).version()
    part = versions(path, 0, newest)

    found = read_records(spark, TABLE, ParseOptions("delta"), [part]).collect()

    read = [(int(r[POSITION]["file"]), r[OP], r["id"], r["city"], r["absent"]) for r in found]
    before = [(1, "upsert", 1, "Rome", None), (1, "upsert", 2, "Oslo", None)]
    assert sorted(read, key=str) == sorted([*before, *[(newest, *record) for record in expected]], key=str)


def test_key_beyond_a_narrower_type_is_deleted_when_the_table_is_overwritten(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What went keeps its number, whatever the type of what came."""
    path = str(tmp_path / "t")
    for dtype, ids in (("bigint", [1, 2**40]), ("int", [1]), ("decimal(20,0)", [2**50]), ("smallint", [])):
        rows = spark.createDataFrame([(id_, "Rome") for id_ in ids], "id bigint, city string")
        rows = rows.withColumn("id", F.col("id").cast(dtype))
        writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        writer.options(**ON).save(path)

    assert [record[:3] for record in records(spark, Path(path), 0, 3)] == [
        (1, "upsert", 1), (1, "delete", 2**40), (2, "delete", 1), (2, "upsert", 2**50), (3, "delete", 2**50),
    ]  # fmt: skip


def test_versions_are_read_by_their_own_columns_when_newer_ones_have_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A batch by rows ends where it was cut, and the table has gone on by then."""
    path = tmp_path / "t"
    append(path, (1, "Rome"))
    append(path, (2, "Oslo"))
    overwrite_with_other_types(spark, str(path))

    assert records(spark, path, 0, 1) == [(1, "upsert", 2, "Oslo", 1)]
    assert [(op, number) for _, op, number, *_ in records(spark, path, 1, 2)] == [
        ("upsert", 1), ("delete", 2), ("upsert", 4),
    ]  # fmt: skip


STREAM = replace(TABLE, append_only=True)
WAYS = ["INSERT OVERWRITE", "with another type", "MERGE"]


def write_again(spark: SparkSession, path: str, way: str) -> None:
    """Rows 1, 2, 3 and 3 go; 1, 1, 2, 3 and a new 4 come. A third column differs each time."""
    new = [(1, "Rome"), (1, "Rome"), (2, None), (3, "Bonn"), (4, None)]
    schema = "id bigint, city string, tags map<string,string>, batch int"
    rows = spark.createDataFrame([(*row, {"b": "2", "a": None}, 2) for row in new], schema)
    if way == "with another type":
        rows = rows.withColumn("id", F.col("id").cast("string"))
    rows.createOrReplaceTempView("new_rows")
    if way == "MERGE":
        spark.sql(
            f"MERGE INTO delta.`{path}` t USING new_rows ON false WHEN NOT MATCHED THEN INSERT * "
            "WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )
    else:
        rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


@pytest.mark.parametrize("way", WAYS)
def test_row_that_comes_as_it_went_is_no_event_of_a_stream(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    """Each as often as it did both, nulls and maps compared as values; a table gets every row that came."""
    path = str(tmp_path / "t")
    old = [(1, "Rome"), (2, None), (3, "Bonn"), (3, "Bonn")]
    schema = "id bigint, city string, tags map<string,string>, batch int"
    rows = spark.createDataFrame([(*row, {"a": None, "b": "2"}, 1) for row in old], schema)
    rows.write.format("delta").options(**ON).save(path)
    write_again(spark, path, way)
    part = versions(path, 0, 1)

    events, records = (
        sorted(
            (row[OP], row["id"], row["city"])
            for row in read_records(spark, spec, ParseOptions("delta"), [part]).collect()
        )
        for spec in (STREAM, TABLE)
    )

    assert events == [("delete", 3, None), ("upsert", 1, "Rome"), ("upsert", 4, None)]
    assert [number for op, number, _ in records] == [1, 1, 2, 3, 4]
    assert {op for op, *_ in records} == {"upsert"}


def test_row_that_went_in_an_earlier_version_is_an_event_again(spark: SparkSession, tmp_path: Path) -> None:
    """Only within a version is it the same row."""
    path = tmp_path / "t"
    append(path, (1, "Rome"))
    DeltaTable(str(path)).delete("id = 1")
    append(path, (1, "Rome"))
    part = versions(path, 0, 2)

    found = read_records(spark, STREAM, ParseOptions("delta"), [part]).orderBy(POSITION).collect()

    assert [(row[OP], row["id"]) for row in found] == [("delete", 1), ("upsert", 1)]
