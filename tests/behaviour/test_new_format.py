"""A format of change data is one module and one line in `FORMATS`: nothing else in the code knows it."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType
from typer.testing import CliRunner

from faults.shop import make_pipeline, write_lines
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.config import load
from lakejoin.orchestration.config.problems import ConfigurationError
from lakejoin.orchestration.planning.input_checks import SchemaChanged
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.formats.source_format import Ranges
from lakejoin.storage.sources.formats.text_format import TextFormat
from lakejoin.storage.sources.text.column_preview import beginning
from lakejoin.storage.sources.text.text_lines import read_lines
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.flat_rows import take_rows_apart
from lakejoin.transforms.parsing.options import ParseOptions, Parts
from lakejoin.transforms.parsing.row_ops import RowOp
from lakejoin.transforms.parsing.schema_drift import ENTRIES

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: pairs, path: "orders/{date}.txt"}
    columns: {id: bigint, customer: bigint}
    key: [id]
  customers:
    source: {format: pairs, path: "customers.txt"}
    columns: {id: bigint, city: string}
    key: [id]
joins:
  located: {left: orders, right: customers, foreign_key: [customer], how: left}
"""


class Pairs(TextFormat):
    """Lines of `name=value`, apart by spaces; a value has no space."""

    not_for: Mapping[tuple[str, ...], str] = MappingProxyType(
        {("timezone",): "is for text with times; a pair has none. Remove it"}
    )

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the first lines."""
        return list(dict.fromkeys(pair.partition("=")[0] for pair in beginning(file).split()))

    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Read each line as a row."""
        columns = {name: (_pairs()[name], StringType()) for name in (*table.columns.names, "op")}
        return [take_rows_apart(read_lines(spark, ranges), table, options, columns, F.col(RAW))]

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read all pairs of each line."""
        lines = read_lines(spark, ranges).where(~F.col(CONTEXT))
        entries = F.map_entries(_pairs()).cast("array<struct<name:string,text:string>>")
        return lines.select(POSITION, entries.alias(ENTRIES))


def _pairs() -> Column:
    return F.str_to_map(F.col(RAW), F.lit(" "), F.lit("="))


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a pipeline whose change data are pairs, with the first of them."""
    monkeypatch.setitem(FORMATS, "pairs", Pairs())
    write_lines(tmp_path / "orders" / "2024-01-01.txt", ["op=c id=1 customer=7", "op=c id=2 customer=8"])
    write_lines(tmp_path / "customers.txt", ["op=c id=7 city=Rome phone=1"])
    return make_pipeline(tmp_path, TEXT).path


def printed(*arguments: str | Path) -> str:
    """Return what a command prints."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.spark
def test_new_format_is_joined_and_told_of_like_any_other(spark: SparkSession, shop: Path) -> None:
    """Files are found, measured, read in parts and shown; what is wrong in one is quarantined."""
    assert "table orders: 1 of 1 files wait, from 2024-01-01.txt on" in printed("status", shop)
    list(run_batches(load(shop), spark))
    write_lines(
        shop.parent / "orders/2024-01-01.txt", ["op=c id=1 customer=7", "op=c id=2 customer=8", "op=c id=x"]
    )
    write_lines(shop.parent / "orders/2024-01-02.txt", ["op=u id=2 customer=7"])

    days = list(run_batches(load(shop), spark))

    assert [batch.tables["orders"]["records"] for batch in days] == [1, 1]
    assert days[0].tables["orders"]["quarantined"] == 1
    rows = printed("show", shop, "located", "--format", "csv").split()
    assert rows == ["id,customer,right_id,right_city", "1,7,7,Rome", "2,7,7,Rome"]
    status = printed("status", shop)
    assert "table customers: source columns that are not declared, and so ignored: phone" in status
    assert "nothing is pending" in status


def test_new_format_says_what_may_be_declared(shop: Path) -> None:
    """What it refuses is refused when the file is read, and so is a format that nobody knows."""
    text = shop.read_text().replace('customers.txt"}', 'customers.txt", timezone: UTC}')
    shop.write_text(text.replace('pairs, path: "orders', 'pears, path: "orders'))

    with pytest.raises(ConfigurationError) as refused:
        load(shop)

    assert "timezone: is for text with times; a pair has none. Remove it" in str(refused.value)
    known = "debezium, jsonl, csv, parquet, avro, orc, delta, kafka, jdbc, pairs"
    assert f"expected one of {known}; found 'pears'; did you mean 'pairs'?" in str(refused.value)


@pytest.mark.spark
def test_new_format_is_held_against_the_declared_columns(spark: SparkSession, shop: Path) -> None:
    """With `on_schema_change: fail`, as any other."""
    declared = 'customers.txt", on_schema_change: fail, strict: true}'
    shop.write_text(shop.read_text().replace('customers.txt"}', declared))

    with pytest.raises(
        SchemaChanged, match=r"customers.txt:1: phone: expected no such column \(strict\), found one"
    ):
        list(run_batches(load(shop), spark))
