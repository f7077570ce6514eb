"""Tables of state in Parquet's second encodings: every type is read as it was written, by whoever reads them."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from faults.shop import make_shop, run
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.maintenance.folds import fold
from lakejoin.storage.delta_log.live_files import live_files
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import append, overwrite
from lakejoin.storage.delta_table.compaction import COMPRESSION, compact, small_files
from lakejoin.storage.delta_table.direct_scan import ENCODING, LOG_PROPERTIES, read_table
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, rows_of
from lakejoin.storage.state.joined_table import OF_STREAMS, PROPERTIES
from lakejoin.transforms.model.schemas import BATCH, TIME

pytestmark = pytest.mark.spark

FIRST, SECOND = (Transaction("lake/stage", batch, {}) for batch in (1, 2))


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


def columns(table: Path) -> list[Any]:
    """What the footers of a table's files say of each column."""
    groups = [pq.read_metadata(file).row_group(0) for file in table.glob("*.parquet")]
    return [group.column(number) for group in groups for number in range(group.num_columns)]


def encodings(table: Path) -> set[str]:
    """How the columns of a table's files are encoded."""
    return {code for column in columns(table) for code in column.encodings}


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
    expected = rows.select(*[F.col(name).cast(kind) for name, kind in wider.items()])
    assert digest(read_table(spark, table, 0, expected.schema)) == digest(expected)


def test_joined_table_of_a_stream_is_for_every_reader(tmp_path: Path, spark: SparkSession) -> None:
    """Those that know neither deletion vectors nor these encodings."""
    append(frame(spark), str(tmp_path / "joined"), FIRST, OF_STREAMS)
    assert not any(code.startswith("DELTA") for code in encodings(tmp_path / "joined"))


@pytest.mark.parametrize("begin", [append, overwrite])
def test_joined_table_is_for_readers_of_deletion_vectors(
    begin: Callable[..., None], tmp_path: Path, spark: SparkSession
) -> None:
    """Whoever makes it, it has the encodings, and another reader that knows them both finds its rows."""
    rows = frame(spark).drop("local")
    begin(rows, str(tmp_path / "joined"), FIRST, PROPERTIES)
    assert "DELTA_BINARY_PACKED" in encodings(tmp_path / "joined")
    query = QueryBuilder().register("joined", DeltaTable(tmp_path / "joined"))
    found = query.execute("SELECT sum(large) AS large, count(DISTINCT text) AS texts FROM joined").read_all()
    large, texts = rows.agg(F.sum("large"), F.count_distinct("text")).first() or (None, None)
    assert pa.table(found).to_pylist() == [{"large": large, "texts": texts}]


def test_owner_of_a_table_may_choose_other_encodings(tmp_path: Path, spark: SparkSession) -> None:
    """What its properties say counts for all that is written from then on."""
    path = tmp_path / "joined"
    append(frame(spark), str(path), FIRST, PROPERTIES)
    for file in path.glob("*.parquet"):
        file.unlink()  # what is looked at below is new
    ((name, _),) = ENCODING.items()
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{name}' = 'PARQUET_1_0')").collect()
    append(frame(spark), str(path), SECOND, PROPERTIES)
    assert not any(code.startswith("DELTA") for code in encodings(path))


def test_folded_bases_have_these_encodings_and_zstd(tmp_path: Path, spark: SparkSession) -> None:
    """Nobody but a batch reads them, and each batch reads them whole."""
    pipeline = make_shop(tmp_path, ["2024-01-01"])
    run(pipeline, spark)
    lake, base = Lake(pipeline.lake), rows_of("orders")
    journal = Journal(lake)
    fold(pipeline, spark, lake, journal, finished_state(pipeline, lake, journal, datetime.now(UTC)), base)
    found = Path(lake.path(base))
    assert "DELTA_BINARY_PACKED" in encodings(found)
    assert {column.compression for column in columns(found)} == {"ZSTD"}


def test_compaction_compresses_by_more_than_the_usual_level(tmp_path: Path, spark: SparkSession) -> None:
    """The level is one of Parquet's settings, which Delta's writer passes on; Spark itself has none for it."""
    words = F.concat_ws(" ", *[F.xxhash64("id", F.lit(n)) % 1000 for n in range(20)])
    rows = spark.range(0, 20_000, 1, 1).select(F.lit(1).cast("bigint").alias(BATCH), words.alias("words"))
    sizes = []
    for name, settings in (("usual", {"spark.sql.parquet.compression.codec": "zstd"}), ("ours", COMPRESSION)):
        path = str(tmp_path / name)
        append(rows, path, FIRST, LOG_PROPERTIES)
        with patch("lakejoin.storage.delta_table.compaction.COMPRESSION", settings):
            compact(spark, path, small_files(path), [F.col(BATCH)], SECOND)
        (file,) = live_files(path)
        sizes.append(file.size)
    assert sizes[1] < 0.99 * sizes[0]
