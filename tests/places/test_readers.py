"""Results as query engines beside Spark read them: Trino's connector and DuckDB's extension for Delta Lake."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakejoin
from lakejoin.reading import Results
from places.trino_server import Trino, trino_server
from reading_shop import make_shop_lake

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "reading.md"
RESULTS = ("sold", "sold_by_day", "sold_plain", "seen", "totals")
_NEWEST = [["ada", "22.00"], ["eve", "30.50"]]
"""What the examples of the page ask for."""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the pipeline, worked off."""
    folder = tmp_path_factory.mktemp("shop")
    make_shop_lake(folder, spark)
    return folder


@pytest.fixture(scope="module")
def results(shop: Path) -> Results:
    """Return its results."""
    return lakejoin.read(shop / "lakejoin.yaml")


@pytest.fixture(scope="module")
def trino(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trino]:
    """Return a server that has the results in its schema `shop`."""
    with trino_server(tmp_path_factory.mktemp("trino"), shop) as server:
        server.ask("CREATE SCHEMA lake.shop WITH (location = 'local:///schemas/shop')")
        for name in RESULTS:
            server.ask(_example("Trino", 0).replace("s3://bucket", "local://").replace("sold", name))
        yield server


def _example(engine: str, number: int) -> str:
    """A block of the page that this engine runs."""
    return re.findall(
        rf"^```sql title=\"{engine}\"\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )[number]


def _plain(table: pa.Table) -> list[str]:
    """The columns that hold one value each, but for times, which Trino reads to the millisecond."""
    return [f.name for f in table.schema if not (pa.types.is_nested(f.type) or pa.types.is_timestamp(f.type))]


def _told(rows: list[list[Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str) for row in rows)


@pytest.mark.parametrize("name", RESULTS)
def test_trino_has_the_rows_that_we_have(trino: Trino, results: Results, name: str) -> None:
    """After deletes, in partitions, without deletion vectors."""
    table = results.arrow(name)
    names = _plain(table)
    found = trino.ask(f"SELECT {', '.join(names)} FROM lake.shop.{name}")
    assert _told(found) == _told([[row[column] for column in names] for row in table.to_pylist()])
    assert found


def test_trino_reads_a_version(trino: Trino) -> None:
    """As the page has it."""
    assert trino.ask(_example("Trino", 1)) == _NEWEST


@pytest.fixture(scope="module")
def delta_in_duckdb() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a connection with the extension, which DuckDB fetches where it is not installed."""
    with duckdb.connect() as connection:
        try:
            connection.execute("INSTALL delta")
            connection.execute("LOAD delta")
        except duckdb.Error as error:
            pytest.skip(f"DuckDB has no extension for Delta Lake: {str(error).splitlines()[0]}")
        yield connection


@pytest.mark.parametrize("name", RESULTS)
def test_duckdb_has_the_rows_that_we_have(
    delta_in_duckdb: duckdb.DuckDBPyConnection, results: Results, name: str
) -> None:
    """After deletes, in partitions, without deletion vectors."""
    table = results.arrow(name)
    names = ", ".join(f'"{column}"' for column in _plain(table))
    found = delta_in_duckdb.execute(
        f"SELECT {names} FROM delta_scan('{results.table(name).path}')"
    ).fetchall()
    expected = table.select(_plain(table)).to_pylist()
    assert _told([list(row) for row in found]) == _told([list(row.values()) for row in expected])
    assert found


def test_duckdb_reads_a_version(delta_in_duckdb: duckdb.DuckDBPyConnection, shop: Path) -> None:
    """As the page has it."""
    rows = delta_in_duckdb.execute(_example("DuckDB", 0).replace("/data/shop", str(shop))).fetchall()
    assert [[customer, str(amount)] for customer, amount in rows] == _NEWEST
