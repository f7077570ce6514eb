"""Records of Avro and ORC files have the types of their file, and their place in it as position."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest
from py4j.java_gateway import get_field, set_field
from pyarrow import orc
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.storage.errors import SourceBroken, SourceUnreadable
from lakejoin.storage.sources.files.source_files import find_files
from lakejoin.storage.sources.formats.file_format import FileFormat
from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.reader import read_records
from lakejoin.storage.spark.session import changed_settings
from lakejoin.transforms.model.schemas import CONTEXT, DETAIL, OP, POSITION, POSITION_TYPE, RAW, REASON
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions

pytestmark = pytest.mark.spark

NOON = datetime(2013, 1, 1, 12, 0, 0, 123000)  # noqa: DTZ001 - as Spark's row holds it, in UTC
AT = NOON.replace(tzinfo=UTC)
Field = tuple[str, Any, Any]
"""Name, type as a format has it, and value."""


def logical(kind: Any, name: str, /, **more: Any) -> dict[str, Any]:
    """A type of Avro with what it stands for."""
    return {"type": kind, "logicalType": name, **more}


def write_avro(path: Path, *rows: Sequence[Field], codec: str = "null") -> None:
    """A file whose rows all have the types of the first."""
    fields = [{"name": name, "type": kind} for name, kind, _ in rows[0]]
    schema = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{name: value for name, _, value in row} for row in rows], codec=codec)


def write_orc(path: Path, *rows: Sequence[Field]) -> None:
    """The same in ORC."""
    columns = {name: pa.array([row[n][2] for row in rows], kind) for n, (name, kind, _) in enumerate(rows[0])}
    orc.write_table(pa.table(columns), path)


def table(columns: str, event_time: str | None = None) -> TableSpec:
    """A table whose key is the first column."""
    declared = StructType.fromDDL(columns)
    return TableSpec("t", declared, (declared.names[0],), POSITION_TYPE, event_time)


def parts_of(path: Path | str, form: str) -> list[PlannedFile]:
    """The files of a path as a plan would hold them."""
    files = FORMATS[form]
    assert isinstance(files, FileFormat)
    found = find_files(str(path), settle=timedelta(0), now=datetime.now(UTC))
    return [PlannedFile.behind(0, files.measure(file), "t") for file in found]


def read(
    spark: SparkSession, spec: TableSpec, form: str, parts: Sequence[PlannedFile], **options: Any
) -> list[Row]:
    """Records in the order of their positions."""
    records = read_records(spark, spec, ParseOptions(form, **options), parts)
    return sorted(records.collect(), key=lambda row: tuple(row[POSITION])[1:])


def days_of_avro() -> list[Sequence[Field]]:
    """A row a day, each with other types; what stands in a union with null may be null."""
    op = ("op", {"type": "enum", "name": "Op", "symbols": ["c", "u", "d"]}, "u")
    return [
        [("id", "long", 1), ("at", ["null", logical("long", "timestamp-micros")], AT), op],
        [("at", logical("long", "timestamp-millis"), AT), ("id", "int", 2), ("ID2", "int", 0), op],
        [("id", "double", 3.0), ("at", ["string", "null"], "2013-01-01T12:00:00.123Z"), op],
        [("id", logical("bytes", "decimal", precision=20), Decimal(2**64)), op],
        [("id", ["null", "int", "long"], 5), ("at", logical("long", "local-timestamp-micros"), NOON), op],
        [("id", "long", 6), ("at", logical("long", "timestamp-nanos"), 10**9 * int(AT.timestamp()) + 123000999), op],
        [("id", ["string", "int"], 7), op],
    ]  # fmt: skip


def days_of_orc() -> list[Sequence[Field]]:
    """The same in the types of ORC."""
    op = ("op", pa.string(), "u")
    return [
        [("id", pa.int64(), 1), ("at", pa.timestamp("ns", "UTC"), AT), op],
        [("at", pa.timestamp("ns", "UTC"), AT), ("id", pa.int8(), 2), ("ID2", pa.int32(), 0), op],
        [("id", pa.float64(), 3.0), ("at", pa.string(), "2013-01-01T12:00:00.123Z"), op],
        [("id", pa.decimal128(20, 0), Decimal(2**64)), op],
        [("id", pa.int16(), 5), ("at", pa.timestamp("ns"), NOON), op],
        [("id", pa.int32(), 6), ("at", pa.timestamp("ns", "UTC"), AT), op],
        [("id", pa.struct({"a": pa.int32()}), {"a": 7}), op],
    ]  # fmt: skip


WRITE: Mapping[str, Callable[..., None]] = {"avro": write_avro, "orc": write_orc}
DAYS = {"avro": days_of_avro, "orc": days_of_orc}


@pytest.mark.bad_input(14)
@pytest.mark.bad_input(16)
@pytest.mark.parametrize("form", ["avro", "orc"])
def test_columns_are_matched_by_name_and_type(spark: SparkSession, tmp_path: Path, form: str) -> None:
    """As those of Parquet: files with other types or other columns give the same records, if nothing is lost."""
    for n, fields in enumerate(DAYS[form](), start=1):
        WRITE[form](tmp_path / f"2013-01-0{n}.{form}", fields)
    WRITE[form](tmp_path / f"2013-01-08.{form}", DAYS[form]()[0][:1])
    files = parts_of(f"{tmp_path}/{{date}}.{form}", form)

    found = read(spark, table("id bigint, at timestamp", "at"), form, files)

    assert [(row["id"], row["at"], row[OP], row[REASON]) for row in found] == [
        (1, NOON, "upsert", None),
        (2, NOON, "upsert", None),
        (3, NOON, "upsert", None),
        (None, None, None, "type_mismatch"),
        (5, None, None, "bad_timestamp"),
        (6, NOON, "upsert", None),
        (None, None, None, "type_mismatch"),
        (1, None, None, "unknown_op"),
    ]
    assert '"id":18446744073709551616' in found[3][RAW]
    assert [(row[POSITION]["date"].day, row[POSITION]["line"]) for row in found] == [
        (n, 1) for n in range(1, 9)
    ]
    local = read(spark, table("id bigint, at timestamp"), form, files[4:5], timezone="+01:00")
    assert [row["at"] for row in local] == [NOON.replace(hour=11)]
    assert [row["at"] for row in read(spark, table("id int, at timestamp_ntz"), form, files[4:5])] == [NOON]


def write_large(spark: SparkSession, folder: Path, form: str, count: int) -> None:
    """A file of so many numbered rows in many blocks or stripes, between two small ones."""
    rows = spark.range(1, count + 1, numPartitions=1).selectExpr("id", "'c' op", "sha2(string(id), 256) text")
    settings = {"orc.stripe.size": "100000", "orc.rows.between.memory.checks": "1", "compression": "snappy"}
    rows.write.options(**settings).format(form).save(f"{folder}/written")
    (written,) = (folder / "written").glob(f"*.{form}")
    (folder / "in").mkdir()
    written.rename(large := folder / "in" / f"b.{form}")
    assert form == "avro" or orc.ORCFile(large).nstripes > 5
    whole, text = ("long", "string") if form == "avro" else (pa.int64(), pa.string())
    for name in ("a", "c"):
        rows_of = [[("id", whole, n), ("op", text, "c")] for n in (1, 2, 3)]
        WRITE[form](folder / "in" / f"{name}.{form}", *rows_of)


@pytest.mark.parametrize("form", ["avro", "orc"])
def test_position_is_the_place_in_the_file_however_spark_takes_it_apart(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """One file of many blocks or stripes, alone and beside small ones; a part of it; and all of it by one task."""
    write_large(spark, tmp_path, form, count := 60_000)
    files, spec = parts_of(tmp_path / "in", form), table("id bigint, text string")
    assert [file.lines for file in files] == [3, count, 3]
    small = {"spark.sql.files.maxPartitionBytes": "300000", "spark.sql.files.openCostInBytes": "1000"}

    def check(parts: Sequence[PlannedFile], *, tasks: range) -> None:
        records = read_records(spark, spec, ParseOptions(form), parts)
        assert records.rdd.getNumPartitions() in tasks
        line = F.col(POSITION)["line"]
        own = records.where(~F.col(CONTEXT))
        counted = own.agg(F.count("*"), F.count_distinct(POSITION), F.count_if(line != F.col("id"))).first()
        records_of = sum(part.records for part in parts)
        assert counted is not None
        assert tuple(counted) == (records_of, records_of, 0)

    with changed_settings(spark, small):
        check(files, tasks=range(5, 100))
        check(files[1:2], tasks=range(5, 100))
        part = replace(files[1], from_line=20_000, to_line=50_001)
        check([files[0], part], tasks=range(5, 100))
        context = read_records(spark, spec, ParseOptions(form), [part]).where(CONTEXT).select("id").collect()
        assert context == [(20_000,)]
    check(files[1:2], tasks=range(1, 2))


def test_types_of_avro_are_read_as_what_they_stand_for(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the file has beside: types that Spark does not read are no matter unless they are declared."""
    kind = {"type": "enum", "name": "k.Kind", "symbols": ["big", "small"]}
    node = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    money = logical("fixed", "decimal", name="Money", size=9, precision=12, scale=2)
    times = {
        "type": "record",
        "name": "Inner",
        "fields": [{"name": "at", "type": logical("long", "timestamp-micros")}],
    }
    uuid = UUID("12345678-1234-5678-1234-567812345678")
    fields: list[Field] = [
        ("loop", node, {"next": {"next": None}}),
        ("twice", kind, "big"),
        ("op", "string", "c"),
        ("id", logical("string", "uuid"), uuid),
        ("kind", ["null", "k.Kind"], "small"),
        ("price", money, Decimal("-1.50")),
        ("day", logical("int", "date"), date(1582, 10, 1)),
        ("local", logical("long", "local-timestamp-millis"), NOON),
        ("nanos", logical("long", "local-timestamp-nanos"), 1_000_001_999),
        ("raw", {"type": "fixed", "name": "Raw", "size": 2}, b"\x00\xff"),
        ("tags", {"type": "array", "items": ["null", "string"]}, ["a", None]),
        ("amounts", {"type": "map", "values": "Money"}, {"x": Decimal("2.00")}),
        ("inner", times, {"at": AT}),
        ("flag", "boolean", True),
        ("half", "float", 0.5),
    ]  # fmt: skip
    write_avro(tmp_path / "a.avro", fields, codec="zstandard")
    files = parts_of(tmp_path / "a.avro", "avro")
    columns = (
        "id string, kind string, price decimal(12,2), day date, local timestamp_ntz, nanos timestamp_ntz, raw binary, "
        "tags array<string>, amounts map<string,decimal(12,2)>, inner struct<at:timestamp>, flag boolean, half double"
    )

    (row,) = read(spark, table(columns), "avro", files)

    assert row[REASON] is None, row[DETAIL]
    assert [row[name] for name in StructType.fromDDL(columns).names] == [
        str(uuid), "small", Decimal("-1.50"), date(1582, 10, 1), NOON,
        datetime(1970, 1, 1, 0, 0, 1, 1), bytearray(b"\x00\xff"), ["a", None],  # noqa: DTZ001 - a local time
        {"x": Decimal("2.00")}, Row(at=NOON), True, 0.5,
    ]  # fmt: skip
    with pytest.raises(SourceBroken, match=r"a\.avro: Spark cannot read its schema .*recursive"):
        read(spark, table("id string, loop struct<next:string>"), "avro", files)


def test_types_of_orc_are_read_as_what_they_stand_for(spark: SparkSession, tmp_path: Path) -> None:
    """Of a fixed number of letters without the blanks that fill them up; Spark's own times without a zone, too."""
    columns = "id:varchar(4),op:string,code:char(5),price:decimal(12,2),tags:array<date>"
    write_by_java(spark, f"{tmp_path}/a.orc", f"struct<{columns}>", ["xy ", "c", "ab"])
    spark.sql(
        "SELECT 'xy ' id, 'c' op, timestamp_ntz'2013-01-01 12:00:00.123' local, 1.5BD price,"
        " X'00ff' raw, map('x', 1.5BD) amounts, named_struct('a', 1Y) inner, 0.5F half, true flag"
    ).coalesce(1).write.orc(f"{tmp_path}/written")  # fmt: skip
    (written,) = (tmp_path / "written").glob("*.orc")
    written.rename(tmp_path / "b.orc")
    a, b = parts_of(f"{tmp_path}/*.orc", "orc")

    (row,) = read(spark, table("id string, code string, price decimal(12,2), tags array<date>"), "orc", [a])
    assert (row[REASON], row["id"], row["code"], row["price"], row["tags"]) == (None, "xy ", "ab", None, None)
    spec = table(
        "id string, local timestamp_ntz, raw binary, amounts map<string,decimal(2,1)>, inner struct<a:tinyint>, "
        "half double, flag boolean"
    )  # fmt: skip
    (row,) = read(spark, spec, "orc", [b])
    assert row[REASON] is None, row[DETAIL]
    assert [row[name] for name in spec.columns.names] == [
        "xy ", NOON, bytearray(b"\x00\xff"), {"x": Decimal("1.5")}, Row(a=1), 0.5, True
    ]  # fmt: skip
    write_by_java(
        spark, f"{tmp_path}/c.orc", "struct<id:string,op:string,both:uniontype<int,string>>", ["x", "c"]
    )
    with pytest.raises(
        SourceBroken, match=r"c\.orc: column both is of type .*union.*, even if it is not declared"
    ):
        read(spark, table("id string"), "orc", parts_of(tmp_path / "c.orc", "orc"))


def write_by_java(spark: SparkSession, path: str, schema: str, texts: Sequence[str]) -> None:
    """A file of one row, whose first columns are these texts and whose others are null: Python writes no CHAR."""
    java: Any = spark.sparkContext._jvm
    kind = java.org.apache.orc.TypeDescription.fromString(schema)
    options = java.org.apache.orc.OrcFile.writerOptions(java.org.apache.hadoop.conf.Configuration())
    writer = java.org.apache.orc.OrcFile.createWriter(
        java.org.apache.hadoop.fs.Path(path), options.setSchema(kind)
    )
    batch = kind.createRowBatch()
    for n, column in enumerate(get_field(batch, "cols")):
        set_field(column, "noNulls", n < len(texts))
        get_field(column, "isNull")[0] = n >= len(texts)
        if n < len(texts):
            column.setVal(0, texts[n].encode())
    set_field(batch, "size", 1)
    writer.addRowBatch(batch)
    writer.close()


@pytest.mark.bad_input(17)
@pytest.mark.parametrize("form", ["avro", "orc"])
def test_file_that_spark_cannot_read_by_names_is_broken(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """The message names the columns; one without any declared column is read, and says nothing."""
    text, whole = ("string", "int") if form == "avro" else (pa.string(), pa.int32())
    WRITE[form](tmp_path / f"a.{form}", [("id", whole, 1), ("Id", whole, 2), ("op", text, "c")])
    WRITE[form](tmp_path / f"b.{form}", [("other", whole, 1)], [("other", whole, 2)])
    WRITE[form](
        tmp_path / f"c.{form}", [("id", whole, 1), ("X", whole, 1), ("x", whole, 2), ("op", text, "c")]
    )
    WRITE[form](tmp_path / f"d.{form}", [("_col0", whole, 1), ("_col1", text, "c")])
    a, b, c, d = parts_of(tmp_path, form)

    with pytest.raises(SourceBroken, match="cannot tell the columns"):
        read(spark, table("id bigint"), form, [a])
    assert [(row[REASON], row[RAW]) for row in read(spark, table("id bigint"), form, [b])] == [
        ("unknown_op", "{}")
    ] * 2
    assert [row["id"] for row in read(spark, table("id bigint"), form, [c])] == [1]
    if form == "orc":
        with pytest.raises(SourceBroken, match="columns are called _col0 and so on"):
            read(spark, table("_col0 bigint"), form, [d])


def test_session_that_cannot_read_a_file_right_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """One of somebody else's: whose JVM is of another zone, or lacks the JAR of Avro."""
    write_orc(
        tmp_path / "a.orc",
        [("id", pa.int32(), 1), ("at", pa.timestamp("ns"), NOON), ("op", pa.string(), "c")],
    )
    # of a schema that was read before Spark is not asked again
    write_avro(tmp_path / "a.avro", [("id", "int", 1), ("only_here", "int", 1), ("op", "string", "c")])
    in_orc, in_avro = (parts_of(tmp_path / f"a.{form}", form) for form in ("orc", "avro"))
    zones: Any = spark.sparkContext._jvm.java.util.TimeZone  # type: ignore[union-attr] # there is a session
    before = zones.getDefault()

    zones.setDefault(zones.getTimeZone("Europe/Berlin"))
    try:
        with pytest.raises(SourceUnreadable, match="found Europe/Berlin, expected UTC"):
            read(spark, table("id int, at timestamp_ntz"), "orc", in_orc)
        assert [row["id"] for row in read(spark, table("id int"), "orc", in_orc)] == [1]
    finally:
        zones.setDefault(before)
    missing = TypeError("'JavaPackage' object is not callable")
    with (
        patch("lakejoin.storage.sources.avro.avro_files.from_avro", side_effect=missing),
        pytest.raises(SourceUnreadable, match="cannot read Avro; stop it"),
    ):
        read(spark, table("id int, only_here int"), "avro", in_avro)
