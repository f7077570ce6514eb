"""Comparing a table with the csv that a database exported."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakejoin.orchestration.demo.csv_comparison import NotComparable, compare, read_expected

pytestmark = pytest.mark.spark

SCHEMA = "id BIGINT, note STRING, price DECIMAL(12,2), at TIMESTAMP, seats INT, extra STRING"
EXPECTED = (
    "id,note,price,at,seats\n"
    '1,"two\nlines, ""quoted"" \\ here",1234567.80,2013-01-01 10:15:00,\\N\n'
    '2,"",-0.05,2013-01-01 14:26:00+00,149\n'
    "3,\\N,\\N,\\N,0\n"
)


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    """Return a table with just the expected rows, and a column that the export does not have."""
    return spark.sql(
        """SELECT * FROM VALUES
        (1L, 'two\\nlines, "quoted" \\\\ here', 1234567.80BD, TIMESTAMP'2013-01-01 10:15:00', NULL, 'x'),
        (2L, '', -0.05BD, TIMESTAMP'2013-01-01 14:26:00', 149, 'x'),
        (3L, NULL, NULL, NULL, 0, NULL) AS t(id, note, price, at, seats, extra)"""
    )


def expected(spark: SparkSession, path: Path, text: str = EXPECTED) -> DataFrame:
    """Return an export of this text."""
    (path / "expected.csv").write_text(text, newline="")
    return read_expected(spark, str(path / "expected.csv"))


def test_equal_rows_have_no_difference(spark: SparkSession, table: DataFrame, tmp_path: Path) -> None:
    """Line breaks, quotes, backslashes, null, empty strings and zone offsets are read as they are meant."""
    found = compare("t", table, expected(spark, tmp_path), ["id"])

    assert (found.equal, found.rows, found.found, found.columns, found.examples) == (True, 3, 3, 5, ())


@pytest.mark.parametrize(
    ("old", "new", "example"),
    [
        ("149", "150", "id 2: seats is '149', expected '150'"),
        ("149", "many", "id 2: seats is '149', expected 'many'"),
        ("149", r"\N", "id 2: seats is '149', expected null"),
        ('2,""', r"2,\N", "id 2: note is '', expected null"),
        (r"3,\N", "3,", "id 3: note is null, expected ''"),
        (r"3,\N", '3,""', "id 3: note is null, expected ''"),
        ("-0.05", "-0.04", "id 2: price is '-0.05', expected '-0.04'"),
        (
            "14:26:00+00",
            "14:26:00.000001+00",
            "id 2: at is '2013-01-01 14:26:00', expected '2013-01-01 14:26:00.000001+00'",
        ),
        ("two\nlines", "two lines", "id 1: note is 'two\\nlines, "),
        ("3,\\N,\\N,\\N,0\n", "", "id 3: not expected, but there"),
        ("0\n", "0\n4,x,\\N,\\N,0\n", "id 4: expected, but missing"),
        ("0\n", "0\n3,\\N,\\N,\\N,0\n", "id 3: expected, but missing"),
    ],
)
def test_one_difference_is_named(
    spark: SparkSession, table: DataFrame, tmp_path: Path, old: str, new: str, example: str
) -> None:
    """A single other cell, missing or extra row is found, with its key, column and both values."""
    assert EXPECTED.count(old) >= 1
    text = (
        EXPECTED.replace(old, new)
        if "\n" not in old
        else EXPECTED[::-1].replace(old[::-1], new[::-1], 1)[::-1]
    )

    found = compare("t", table, expected(spark, tmp_path, text), ["id"])

    assert found.differences == 1
    assert found.examples[0].startswith(example)


def test_repeated_row_is_a_difference(spark: SparkSession, table: DataFrame, tmp_path: Path) -> None:
    """A row that the table has twice is not expected twice."""
    found = compare("t", table.unionByName(table.where("id = 2")), expected(spark, tmp_path), ["id"])

    assert (found.found, found.differences, found.examples) == (4, 1, ("id 2: not expected, but there",))


def test_column_that_the_table_lacks_is_an_error(
    spark: SparkSession, table: DataFrame, tmp_path: Path
) -> None:
    """What cannot be compared is not passed over."""
    with pytest.raises(NotComparable, match="seats"):
        compare("t", table.drop("seats"), expected(spark, tmp_path), ["id"])
