"""Rows of typed columns, as Parquet and CSV files hold them: what a row does, and why one is quarantined."""

import pytest
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, StringType, StructType

from lakejoin.transforms.model.schemas import CONTEXT, DETAIL, OP, POSITION, POSITION_TYPE, RAW, REASON
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.flat_rows import take_rows_apart
from lakejoin.transforms.parsing.options import ParseOptions, records_schema
from lakejoin.transforms.parsing.validation import finish_records

pytestmark = pytest.mark.spark

_COLUMNS = StructType().add("id", "long").add("name", "string").add("price", "double")
_TABLE = TableSpec("orders", _COLUMNS, ("id",), POSITION_TYPE)
_TYPES: dict[str, DataType] = {"op": StringType(), "id": IntegerType(), "name": StringType()}


def parse(
    spark: SparkSession, rows: str, names: tuple[str, ...] = ("op", "id", "name"), *, flawless: bool = False,
    table: TableSpec = _TABLE, **more: Column,
) -> list[Row]:  # fmt: skip
    """Records of rows written in SQL, of which the source has these columns; no price."""
    place = (F.lit(None).cast("date"), F.lit("x"), F.col("line").cast("bigint"))
    position = F.struct(*[part.alias(name) for part, name in zip(place, POSITION_TYPE.names, strict=True)])
    numbered = spark.sql(f"SELECT * FROM VALUES {rows} AS t(line, op, id, name)").withColumns(
        {POSITION: position, CONTEXT: F.lit(False), **more}
    )
    columns = {name: (F.col(name), _TYPES[name]) for name in names}
    raw = F.to_json(F.struct("op", "id", "name"))
    options = ParseOptions("parquet", flawless=flawless)
    records = finish_records(take_rows_apart(numbered, table, options, columns, raw), table)
    assert records.schema.simpleString() == records_schema(table).simpleString()
    return records.orderBy(POSITION).collect()


def test_row_is_read_by_its_columns_types(spark: SparkSession) -> None:
    """Widened to the declared type, null where the source has no such column; of a deleted row the key stays."""
    upsert, delete, bad = parse(spark, "(1, 'u', 7, 'a'), (2, 'd', 8, 'b'), (3, 'c', null, 'c')")

    assert [*upsert][:3] == [7, "a", None]
    assert (upsert[OP], upsert[REASON], upsert[RAW]) == ("upsert", None, None)
    assert (delete[OP], *[*delete][:3]) == ("delete", 8, None, None)
    assert (bad[OP], bad[REASON], bad[RAW]) == (None, "null_key", '{"op":"c","name":"c"}')


def test_key_of_two_columns_is_null_where_one_of_them_is(spark: SparkSession) -> None:
    """Of an upsert and of a delete, whichever column it is; the detail names the column, or both."""
    rows = "(1, 'u', 7, null), (2, 'u', null, 'a'), (3, 'd', 8, null), (4, 'd', null, null), (5, 'u', 9, 'b')"

    found = parse(spark, rows, table=TableSpec("orders", _COLUMNS, ("id", "name"), POSITION_TYPE))

    assert [(row[OP], row[REASON], row[DETAIL]) for row in found] == [
        (None, "null_key", "name is null"),
        (None, "null_key", "id is null"),
        (None, "null_key", "name is null"),
        (None, "null_key", "id is null, name is null"),
        ("upsert", None, None),
    ]


def test_rows_known_to_be_good_are_read_the_same_without_a_judgement(spark: SparkSession) -> None:
    """None of them is ever asked why it should not be accepted."""
    rows = "(1, 'u', 7, 'a'), (2, 'd', 8, 'b'), (3, 'c', 9, null), (4, 'r', 10, '')"

    assert parse(spark, rows, flawless=True) == parse(spark, rows)
    assert [row[REASON] for row in parse(spark, "(1, 'x', null, 'a')", flawless=True)] == [None]


@pytest.mark.bad_input(1)
def test_invalid_text_is_quarantined_before_anything_else(spark: SparkSession) -> None:
    """Whatever else was found about the row; null is no invalid text."""
    invalid = "cast(X'61FF' as string)"

    rows = parse(
        spark,
        f"(1, 'u', 7, {invalid}), (2, 'u', 8, null), (3, 'u', 9, 'c')",
        **{
            REASON: F.when(F.col("line") != 2, F.lit("parse_error")),
            DETAIL: F.when(F.col("line") != 2, F.lit("found before")),
        },
    )

    assert [(row[REASON], row[DETAIL]) for row in rows] == [
        ("invalid_utf8", "invalid bytes are shown as U+FFFD"),
        (None, None),
        ("parse_error", "found before"),
    ]


@pytest.mark.bad_input(5)
def test_rows_without_op_are_quarantined(spark: SparkSession) -> None:
    """A file that lacks the column holds no row that could be taken for an upsert."""
    (row,) = parse(spark, "(1, 'u', 7, 'a')", ("id", "name"))

    assert (row[REASON], row[OP]) == ("unknown_op", None)
    assert row[DETAIL] == "no column `op`, or null in it; expected c, r, u or d"
