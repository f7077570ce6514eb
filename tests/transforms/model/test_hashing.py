"""The value hash: the same outside the JVM, and the same for what means the same.

Beside Spark's stands a Python function that follows the specification with the `xxhash` package: each argument
is hashed with the hash of those before it as its seed, the first with 42; nulls are passed over.
"""

import struct
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import pytest
import xxhash
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from lakejoin.transforms.model.hashing import HASH_SPECIFICATION, value_hash
from lakejoin.transforms.model.schemas import HASH_TYPE

pytestmark = pytest.mark.spark

NOON = datetime(2013, 1, 1, 12, 0, 0, 1)  # noqa: DTZ001 - as Spark's row holds it, in UTC
MOMENT = datetime(2013, 1, 1, 12, 0, 0, 123456)  # noqa: DTZ001 - as Spark hands them over
NOON_MICROS = 1_357_041_600_000_001


def whole(number: int) -> bytes:
    """A 64-bit integer, as integers, dates, timestamps and booleans are hashed."""
    return struct.pack("<q", number)


def real(number: float) -> bytes:
    """A double, as all floating-point numbers are hashed."""
    return struct.pack("<d", number)


def python_hash(columns: Sequence[tuple[str, bytes]]) -> tuple[int, int, int]:
    """The hash by tags and canonical values of the columns that are not null, in the order of their names."""
    halves = []
    for salt in ("lakejoin/1/high", "lakejoin/1/low"):
        hashed = xxhash.xxh64_intdigest(salt.encode(), seed=42)
        for tag, value in columns:
            hashed = xxhash.xxh64_intdigest(value, seed=xxhash.xxh64_intdigest(tag.encode(), seed=hashed))
        halves.append(hashed - (1 << 64) if hashed >= 1 << 63 else hashed)
    return (1, halves[0], halves[1])


def evaluate(spark: SparkSession, columns: str, rows: Sequence[Any], *hashes: Column) -> list[Row]:
    """Hashes over rows of columns that are declared in SQL; without any, the hash of all columns."""
    schema = StructType.fromDDL(columns)
    return spark.createDataFrame(rows, schema).select(*(hashes or [value_hash(schema)])).collect()


VECTORS: list[tuple[str, Any, str, bytes]] = [
    ("tinyint", -1, "integer", whole(-1)),
    ("smallint", 7, "integer", whole(7)),
    ("int", 2**31 - 1, "integer", whole(2**31 - 1)),
    ("bigint", -(2**63), "integer", whole(-(2**63))),
    ("float", 0.1, "double", real(struct.unpack("<f", struct.pack("<f", 0.1))[0])),
    ("double", 0.1, "double", real(0.1)),
    ("double", -0.0, "double:negative", real(0.0)),
    ("double", float("nan"), "double", struct.pack("<Q", 0x7FF8000000000000)),
    ("double", float("-inf"), "double", real(float("-inf"))),
    ("boolean", True, "boolean", whole(1)),
    ("boolean", False, "boolean", whole(0)),
    ("string", "", "string", b""),
    ("string", "Ä\n\0😀" * 20, "string", ("Ä\n\0😀" * 20).encode()),
    ("binary", bytearray(b"\x00\xff"), "binary", b"\x00\xff"),
    ("date", date(1969, 12, 31), "date", whole(-1)),
    ("timestamp", NOON, "timestamp", whole(NOON_MICROS)),
    ("timestamp", datetime(1969, 12, 31, 23, 59, 59, 999999), "timestamp", whole(-1)),  # noqa: DTZ001
    ("timestamp_ntz", NOON, "timestamp_ntz", whole(NOON_MICROS)),
    ("decimal(12,2)", Decimal("1.50"), "decimal(2)", b"\x00\x96"),
    ("decimal(38,0)", Decimal(-1), "decimal(0)", b"\xff"),
    ("decimal(38,38)", Decimal("0.5"), "decimal(38)", (5 * 10**37).to_bytes(16, "big")),
    ("array<int>", [1, None], "json", b'{"value":[1,null]}'),
    ("array<string>", [], "json", b'{"value":[]}'),
    ("array<timestamp>", [MOMENT], "json", b'{"value":["2013-01-01T12:00:00.123456Z"]}'),
    ("array<timestamp_ntz>", [MOMENT], "json", b'{"value":["2013-01-01T12:00:00.123456"]}'),
    ("struct<b:string,a:int>", ("x", None), "json", b'{"value":{"a":null,"b":"x"}}'),
    (
        "map<string,array<struct<z:int,y:date>>>",
        {"b": [(1, date(2013, 1, 1))], "a": None},
        "json",
        b'{"value":[{"key":"a","value":null},{"key":"b","value":[{"y":"2013-01-01","z":1}]}]}',
    ),
]


@pytest.mark.bad_input(26)
def test_hash_is_the_one_that_python_computes(spark: SparkSession) -> None:
    """Of every type: a tag of name and family, then the value in the one form of its family."""
    columns = [f"c{number} {dtype}" for number, (dtype, *_) in enumerate(VECTORS)]
    each = [value_hash(StructType.fromDDL(column)) for column in columns]

    (found,) = evaluate(spark, ", ".join(columns), [tuple(value for _, value, *_ in VECTORS)], *each)

    for number, (vector, got) in enumerate(zip(VECTORS, found, strict=True)):
        assert tuple(got) == python_hash([(f"c{number}:{vector[2]}", vector[3])]), vector


def test_hash_stays_what_it_was(spark: SparkSession) -> None:
    """Hashes are stored: a change of these numbers needs a new specification."""
    columns = "id bigint, name string, price decimal(12,2), seen timestamp, tags array<string>"
    rows = [(1, "Ä", Decimal("12.50"), NOON, ["a", None]), (None, None, None, None, None)]

    found = evaluate(spark, columns, rows)

    assert [tuple(row[0]) for row in found] == [
        (1, 5493104236122585047, -8404694847359828792),
        (1, -4339585183250129857, -4983724173469397099),
    ]


def test_hash_has_its_type_and_the_number_of_its_specification(spark: SparkSession) -> None:
    """Hashes of two specifications are never equal, and the column fits every table that holds it."""
    hashed = spark.range(1).select(value_hash(StructType.fromDDL("id bigint")).alias("hash"))

    assert hashed.schema["hash"].dataType == HASH_TYPE
    assert [row["hash"]["spec"] for row in hashed.collect()] == [HASH_SPECIFICATION]


def test_columns_are_hashed_in_the_order_of_their_names(spark: SparkSession) -> None:
    """The declared order carries no meaning; the tag of each column goes before its value."""
    first, second = StructType.fromDDL("b string, a int"), StructType.fromDDL("a int, b string")

    (row,) = evaluate(spark, "a int, b string", [(1, "x")], value_hash(first), value_hash(second))

    assert tuple(row[0]) == tuple(row[1]) == python_hash([("a:integer", whole(1)), ("b:string", b"x")])


def test_null_is_neither_empty_nor_another_column_s(spark: SparkSession) -> None:
    """Which of the columns is null, and whether a value is null or empty, tells rows apart."""
    rows: list[Any] = [
        ("a", None, None), (None, "a", None), ("a", "", None), ("", "a", None), (None, None, None),
        ("", None, None), (None, "", None), ("", "", None), (None, None, []), (None, None, [None]),
        (None, None, [""]), ("a", "a", None),
    ]  # fmt: skip

    found = evaluate(spark, "x string, y string, z array<string>", rows)

    assert len({row[0] for row in found}) == len(rows)


@pytest.mark.bad_input(13)
def test_column_that_is_added_changes_no_hash_of_rows_without_it(spark: SparkSession) -> None:
    """Null in a new column of any type is as if the column were not there: KAFKA-15303."""
    old = "id bigint, name string"
    added = "a int, m string, z struct<x:int>, amount decimal(10,2), day date, seen timestamp, flag boolean"
    rows: list[Any] = [(1, "x", *[None] * 7), (1, None, *[None] * 7), (None, None, *[None] * 7)]

    found = evaluate(
        spark,
        f"{old}, {added}",
        rows,
        value_hash(StructType.fromDDL(old)),
        value_hash(StructType.fromDDL(f"{old}, {added}")),
    )

    assert [row[0] for row in found] == [row[1] for row in found]


@pytest.mark.bad_input(16)
def test_column_that_is_widened_changes_no_hash(spark: SparkSession) -> None:
    """Integers are one family, so are float and double, and decimals of one scale."""
    narrow = "a tinyint, b smallint, c int, d float, e decimal(5,2), f int"
    wide = "a bigint, b int, c bigint, d double, e decimal(30,2), f int"
    rows: list[Any] = [
        (-1, 300, -70000, 0.1, Decimal("1.10"), 5), (None, 0, None, float("nan"), None, None),
        (127, -1, 0, -0.0, Decimal("-999.99"), -5),
    ]  # fmt: skip
    before = spark.createDataFrame(rows, StructType.fromDDL(narrow))
    widened = StructType.fromDDL(wide)

    found = (
        before.withColumn("hash", value_hash(StructType.fromDDL(narrow)))
        .withColumns({field.name: F.col(field.name).cast(field.dataType) for field in widened})
        .select("hash", value_hash(widened))
        .collect()
    )

    assert [row[0] for row in found] == [row[1] for row in found]


@pytest.mark.bad_input(27)
def test_same_value_of_another_family_is_another_hash(spark: SparkSession) -> None:
    """1, 1.0, 1.00, '1' and true differ, and so does the same value in a column of another name."""
    dtypes = ["int", "double", "decimal(9,1)", "decimal(9,2)", "string", "boolean", "binary"]
    values = (1, 1.0, Decimal(1), Decimal(1), "1", True, bytearray(b"1"))
    cells = [F.lit(value).cast(dtype) for value, dtype in zip(values, dtypes, strict=True)]
    frames = [
        spark.range(1).select(cell.alias(name)).select(value_hash(StructType.fromDDL(f"{name} {dtype}")))
        for cell, dtype in zip(cells, dtypes, strict=True)
        for name in ("c", "d")
    ]

    found = reduce(DataFrame.unionByName, [frame.toDF("hash") for frame in frames]).collect()

    assert len({row["hash"] for row in found}) == 2 * len(dtypes)


@pytest.mark.bad_input(29)
def test_time_is_hashed_as_an_instant(spark: SparkSession) -> None:
    """A microsecond counts, however the instant was written; without a zone it is another family."""
    texts = ["2013-01-01 12:00:00Z", "2013-01-01 14:00:00+02:00", "2013-01-01 12:00:00.000001Z"]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")

    found = (
        rows.select(F.col("text").cast("timestamp").alias("at"))
        .withColumn("local", F.col("at").cast("timestamp_ntz"))
        .select(
            value_hash(StructType.fromDDL("at timestamp")),
            value_hash(StructType.fromDDL("local timestamp_ntz")),
        )
        .collect()
    )

    instants, locals_ = [row[0] for row in found], [row[1] for row in found]
    assert instants[0] == instants[1] != instants[2]
    assert locals_[0] == locals_[1] != locals_[2]
    assert not set(instants) & set(locals_)


@pytest.mark.bad_input(28)
def test_order_within_a_nested_value_counts_only_where_it_means_something(spark: SparkSession) -> None:
    """Struct fields by name, map entries by key; an array is what its order makes it."""
    maps = F.expr("transform(array(1, 2), i -> if(i = 1, map('a', 1, 'b', 2), map('b', 2, 'a', 1)))")
    structs = F.expr("array(named_struct('x', 1, 'y', 2), named_struct('x', 2, 'y', 1))")
    frame = spark.range(2).select(
        F.get(maps, F.col("id").cast("int")).alias("m"), F.get(structs, F.col("id").cast("int")).alias("s")
    )
    swapped = frame.withColumn("s", F.expr("named_struct('y', s.y, 'x', s.x)"))
    kept, moved = (StructType.fromDDL(f"s struct<{fields}>") for fields in ("x:int,y:int", "y:int,x:int"))
    arrays = spark.createDataFrame([([1, 2],), ([2, 1],)], "a array<int>")

    found = frame.select(value_hash(StructType.fromDDL("m map<string,int>")), value_hash(kept)).collect()
    again = swapped.select(value_hash(moved)).collect()
    ordered = arrays.select(value_hash(StructType.fromDDL("a array<int>"))).collect()

    assert found[0][0] == found[1][0]
    assert [row[1] for row in found] == [row[0] for row in again]
    assert found[0][1] != found[1][1]
    assert ordered[0] != ordered[1]


@pytest.mark.bad_input(31)
def test_name_of_a_column_may_hold_anything(spark: SparkSession) -> None:
    """Dots and backticks are part of the name, not a path or a quotation."""
    schema = StructType([StructField("a.b", LongType()), StructField("`c`", LongType())])
    frame = spark.createDataFrame([(1, 2)], schema)

    found = frame.select(value_hash(schema)).collect()

    assert tuple(found[0][0]) == python_hash([("`c`:integer", whole(2)), ("a.b:integer", whole(1))])
