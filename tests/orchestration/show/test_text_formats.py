"""Rows as csv and JSON lines, in every type that a column may have."""

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.show.text_formats import Format, lines, texts

pytestmark = pytest.mark.spark

SCHEMA = (
    "id BIGINT, name STRING, price DECIMAL(12,2), tiny DECIMAL(38,18), at TIMESTAMP, day DATE, ratio DOUBLE, "
    "yes BOOLEAN, raw BINARY, tags ARRAY<DECIMAL(4,1)>, sizes MAP<STRING, INT>, "
    "place STRUCT<x: INT, `y z`: STRING>"
)
ROW = (
    2**40,
    'line one\r\nsays "two", \\ three',
    Decimal("1234567.80"),
    Decimal("0.000000000000000001"),
    datetime(2013, 1, 1, 10, 15, tzinfo=UTC),
    date(2013, 1, 2),
    0.1,
    True,
    bytearray(b"\x00\xff"),
    [Decimal("1.5"), None],
    {"a": 1},
    (7, "seven"),
)


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """Return one row of values and one of nulls."""
    nulls = (None,) * len(ROW)
    return spark.createDataFrame([ROW, nulls], SCHEMA).coalesce(1)


def text(rows: DataFrame, form: Format, *keys: str) -> str:
    """Return all lines as one text."""
    return "".join(lines(rows, form, keys))


def test_csv_reads_back_as_it_was_written(rows: DataFrame) -> None:
    """A csv reader gets the header, each value by its type, and text with all its special characters."""
    header, values, nulls = csv.reader(io.StringIO(text(rows, "csv"), newline=""))

    assert header == rows.columns
    assert values == [
        "1099511627776",
        'line one\r\nsays "two", \\ three',
        "1234567.80",
        "0.000000000000000001",
        "2013-01-01T10:15:00.000000Z",
        "2013-01-02",
        "0.1",
        "true",
        "AP8=",
        '["1.5",null]',
        '{"a":1}',
        '{"x":7,"y z":"seven"}',
    ]
    assert nulls == [r"\N"] * len(header)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("", '""'),
        (r"\N", r'"\N"'),
        (None, r"\N"),
        (" plain ", " plain "),
        ("a,b", '"a,b"'),
        ('say "x"', '"say ""x"""'),
        ("two\nlines", '"two\nlines"'),
        ("carriage\rreturn", '"carriage\rreturn"'),
        ("back\\slash", "back\\slash"),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_csv_field_is_quoted_only_where_it_must_be(
    spark: SparkSession, value: str | None, field: str
) -> None:
    r"""Null and the text `\N` differ, as do null and the empty string; lines end in CR LF."""
    rows = spark.createDataFrame([(value, 1)], "a STRING, b INT")

    assert text(rows, "csv") == f"a,b\r\n{field},1\r\n"


def test_csv_header_is_quoted_like_a_field(spark: SparkSession) -> None:
    """A column's name may hold whatever a field may."""
    rows = spark.range(1).select(F.lit(1).alias('a,"b"'))

    assert text(rows, "csv") == '"a,""b"""\r\n1\r\n'


def test_csv_of_no_rows_is_its_header(spark: SparkSession) -> None:
    """An empty table still says which columns it has."""
    assert text(spark.createDataFrame([], "a INT, b STRING"), "csv") == "a,b\r\n"


def test_jsonl_has_a_value_of_its_kind_for_each_column(rows: DataFrame) -> None:
    """Numbers and booleans stay what they are, decimals and times are text, null is null."""
    values, nulls = (json.loads(line) for line in text(rows, "jsonl").splitlines())

    assert list(values.values()) == [
        2**40,
        'line one\r\nsays "two", \\ three',
        "1234567.80",
        "0.000000000000000001",
        "2013-01-01T10:15:00.000000Z",
        "2013-01-02",
        0.1,
        True,
        "AP8=",
        ["1.5", None],
        {"a": 1},
        {"x": 7, "y z": "seven"},
    ]
    assert list(values) == rows.columns
    assert set(nulls.values()) == {None}


def test_jsonl_is_one_line_a_row(rows: DataFrame) -> None:
    """Line breaks within text are escaped."""
    assert text(rows, "jsonl").count("\n") == 2


@pytest.mark.parametrize(
    ("key", "in_csv", "in_json"),
    [
        ("struct(5L AS id)", "5", 5),
        ("struct('N1' AS tailnum)", "N1", "N1"),
        ("struct('a,b' AS x, 7 AS y, 1.50BD AS z)", '["a,b",7,"1.50"]', ["a,b", 7, "1.50"]),
        ("CAST(NULL AS STRUCT<id: INT>)", r"\N", None),
        ("CAST(NULL AS STRUCT<x: INT, y: INT>)", r"\N", None),
    ],
)
def test_key_of_one_column_is_bare_and_a_composite_one_an_array(
    spark: SparkSession, key: str, in_csv: str, in_json: object
) -> None:
    """Keys that travel as structs are shown as their users know them."""
    rows = spark.range(1).selectExpr(f"{key} AS primary_key")

    [[_], [field]] = csv.reader(io.StringIO(text(rows, "csv", "primary_key"), newline=""))
    assert field == in_csv
    assert json.loads(text(rows, "jsonl", "primary_key")) == {"primary_key": in_json}


def test_hashes_and_positions_are_short(spark: SparkSession) -> None:
    """A hash is 32 hexadecimal digits, a position file and line."""
    rows = spark.range(1).selectExpr(
        "struct(1S AS spec, 255L AS high, -1L AS low) AS _lj_hash",
        "struct(DATE'2013-01-01' AS date, 'f.jsonl' AS file, 12L AS line) AS _lj_position",
    )

    expected = ("00000000000000ff" + "f" * 16, "f.jsonl:12")
    assert tuple(texts(rows).first() or ()) == expected
    assert tuple(json.loads(text(rows, "jsonl")).values()) == expected


def test_declared_structs_like_hashes_and_positions_are_whole(spark: SparkSession) -> None:
    """What their users put in them is not left out, whatever the fields are called."""
    rows = spark.range(1).selectExpr(
        "struct(1S AS spec, 255L AS high, -1L AS low) AS hash",
        "struct(DATE'2013-01-01' AS date, 'f.jsonl' AS file, CAST(NULL AS BIGINT) AS line) AS position",
    )

    expected = ({"spec": 1, "high": 255, "low": -1}, {"date": "2013-01-01", "file": "f.jsonl", "line": None})
    assert tuple(map(json.loads, texts(rows).first() or ())) == expected
    assert tuple(json.loads(text(rows, "jsonl")).values()) == expected
