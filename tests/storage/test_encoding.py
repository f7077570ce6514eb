"""Tables of state in Parquet's second encodings: every type is read as it was written, by whoever reads them."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from storage.commits import append
from storage.data_files import LOG_PROPERTIES, read_table
from storage.joined import OF_STREAMS, PROPERTIES
from storage.transaction import Transaction
from transforms.schemas import BATCH, TIME

pytestmark = pytest.mark.spark

FIRST = Transaction("lake/stage", 1, {})


def frame(spark: SparkSession) -> DataFrame:
    """Rows with columns of every type that a table may have, with nulls among them."""
    number, missing = F.col("id"), F.col("id") % 7 == 0
    values = {
        "tiny": number.cast("string").substr(1, 2).cast("tinyint"),
        "small": (number % 1000).cast("smallint"),
        "whole": (number * 7919).cast("int"),
        "large": number * 1_000_003,
        "short_decimal": (number / 7).cast("decimal(9, 3)"),
        "long_decimal": (number / 7).cast("decimal(18, 3)"),
        "wide_decimal": (number / 7).cast("decimal(38, 10)"),
        "single": (number / 3).cast("float"),
        "double": number / 3,
        "open": number % 2 == 0,
        "text": F.concat(F.lit("a text á "), number.cast("string")),
        "bytes": F.encode(number.cast("string"), "utf-8"),
        "day": F.date_add(F.lit("2026-01-01").cast("date"), number.cast("int")),
        "local": F.timestamp_micros(number * 1_000_001).cast("timestamp_ntz"),
        "many": F.sequence(F.lit(0), number % 4),
        "by_name": F.create_map(number.cast("string"), number),
        "nested": F.struct(number.alias("n"), F.struct(number.cast("string").alias("t")).alias("s")),
    }
    columns = [F.when(~missing, value).alias(name) for name, value in values.items()]
    known = [F.lit(1).cast("bigint").alias(BATCH), F.timestamp_micros(number * 1_000_003).alias(TIME)]
    return spark.range(0, 30_000, 1, 2).select(*known, "id", *columns)


def encodings(table: Path) -> set[str]:
    """How the columns of a table's files are encoded."""
    groups = [pq.ParquetFile(file).metadata.row_group(0) for file in table.glob("*.parquet")]
    return {code for group in groups for n in range(group.num_columns) for code in group.column(n).encodings}


def digest(rows: DataFrame) -> Any:
    """What all rows come to, and how many there are."""
    return (
        rows.select(F.to_json(F.struct(*rows.columns)).alias("row"))
        .agg(F.count("*"), F.bit_xor(F.xxhash64("row")))
        .first()
    )


def test_spark_reads_what_it_wrote(tmp_path: Path, spark: SparkSession) -> None:
    """By name and through Delta, column by column and row by row."""
    rows, table = frame(spark), str(tmp_path / "log")
    append(rows, table, FIRST, LOG_PROPERTIES)
    assert {"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"} <= encodings(tmp_path / "log")
    expected = digest(rows)
    schema = spark.read.format("delta").load(table).schema
    assert digest(read_table(spark, table, 0, schema)) == expected
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    try:
        assert digest(spark.read.format("delta").load(table)) == expected
    finally:
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")


def test_delta_rs_reads_what_spark_wrote(tmp_path: Path, spark: SparkSession) -> None:
    """The same rows as in the first encodings."""
    append(frame(spark), str(tmp_path / "log"), FIRST, LOG_PROPERTIES)
    append(frame(spark), str(tmp_path / "joined"), FIRST, OF_STREAMS)  # it cannot read deletion vectors
    log, joined = (DeltaTable(tmp_path / name).to_pyarrow_table().sort_by("id") for name in ("log", "joined"))
    assert log.equals(joined)


def test_wider_types_are_read_of_narrower_values(tmp_path: Path, spark: SparkSession) -> None:
    """As where a column of a source became wider and no file was written again."""
    rows, table = frame(spark).drop("local"), str(tmp_path / "log")  # without Delta's feature for such times
    append(rows, table, FIRST, LOG_PROPERTIES)
    wider = {
        "tiny": "int",
        "small": "bigint",
        "whole": "bigint",
        "single": "double",
        "long_decimal": "decimal(28, 5)",
    }
    schema = rows.select(*[F.col(name).cast(kind) for name, kind in wider.items()]).schema
    found = read_table(spark, table, 0, schema)
    assert digest(found) == digest(rows.select(*[F.col(name).cast(kind) for name, kind in wider.items()]))


@pytest.mark.parametrize("properties", [PROPERTIES, OF_STREAMS], ids=["tables", "streams"])
def test_joined_tables_are_for_every_reader(
    properties: dict[str, str], tmp_path: Path, spark: SparkSession
) -> None:
    """Those that do not know the second encodings read the first."""
    append(frame(spark), str(tmp_path / "joined"), FIRST, properties)
    assert not any(code.startswith("DELTA") for code in encodings(tmp_path / "joined"))
