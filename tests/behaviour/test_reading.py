"""Results as `lakejoin.read` and other readers have them: Spark's rows, value by value; and their page."""

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

import lakejoin
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.reading import Results
from lakejoin.storage.errors import LakeInconsistent
from reading_shop import DAYS, make_shop_lake

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "reading.md"
_BLOCK = re.compile(r'^```(\w+)( title="Spark Connect")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_PLACE, _SERVER = "/data/shop", "sc://spark.example:15002"
"""Where the pipeline and the server of the page are."""
RESULTS = ("sold", "sold_by_day", "sold_plain", "seen", "totals")


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


def told(rows: Iterable[Any]) -> list[str]:
    """Rows as texts, in which -0.0 is another value than 0.0."""
    return sorted(map(repr, rows))


def by_spark(spark: SparkSession, results: Results, name: str, schema: pa.Schema) -> list[dict[str, Any]]:
    """The rows of a result as Spark reads its version by itself."""
    at = results.table(name)
    frame = spark.read.format("delta").option("versionAsOf", at.version).load(at.path)
    rows: list[dict[str, Any]] = frame.select(schema.names).toArrow().cast(schema).to_pylist()
    return rows


@pytest.mark.parametrize("name", RESULTS)
def test_every_reader_has_the_rows_that_spark_has(spark: SparkSession, results: Results, name: str) -> None:
    """After deletes, in partitions, without deletion vectors: decimals, times, nulls, nested values and -0.0."""
    table = results.arrow(name)
    rows = table.to_pylist()
    expected = told(by_spark(spark, results, name, table.schema))
    assert told(rows) == expected
    assert told(pa.Table.from_pandas(results.pandas(name), preserve_index=False).to_pylist()) == expected
    assert told(duckdb.from_arrow(table).to_arrow_table().cast(table.schema).to_pylist()) == expected
    frame = results.polars(name)
    assert told(map(_with_pairs, frame.to_dicts())) == expected
    at = results.table(name)
    query = QueryBuilder().register("rows", DeltaTable(at.path, version=at.version))
    read = pa.table(query.execute("SELECT * FROM rows")).select(table.schema.names)
    assert told(read.cast(table.schema).to_pylist()) == expected
    lazy = pl.scan_delta(at.path, version=at.version).select(table.schema.names).collect()
    assert told(map(_with_pairs, lazy.to_dicts())) == expected


def _with_pairs(row: dict[str, Any]) -> dict[str, Any]:
    """A row of Polars with maps as Arrow has them, and times in the zone that Arrow gives them."""
    pairs = {"tags": [tuple(pair.values()) for pair in row["tags"]]} if row.get("tags") is not None else {}
    return row | pairs


def test_lake_has_what_is_to_be_read(results: Results) -> None:
    """Else the tests here would compare less than they say: rows that are marked as deleted, partitions, -0.0."""
    marked, plain = (DeltaTable(results.table(name).path) for name in ("sold", "sold_plain"))
    assert pa.table(marked.deletion_vectors()).num_rows
    assert "deletionVectors" not in (plain.protocol().reader_features or ())
    assert DeltaTable(results.table("sold_by_day").path).metadata().partition_columns == ["day"]
    values = results.arrow("sold").to_pylist()
    assert {"-0.0", "None"} <= {repr(row["weight"]) for row in values}
    assert results.arrow("seen").num_rows
    state = Path(results.table("sold").path).parents[2] / "tables"
    assert (state / "orders" / "rows").is_dir()
    assert (state / "customers" / "versions").is_dir()


@pytest.mark.parametrize("batch", range(1, DAYS + 1))
def test_everything_is_read_as_spark_reads_it(spark: SparkSession, results: Results, batch: int) -> None:
    """As each batch left it: also rows and versions of tables, of which a part is folded and a part is not."""
    cut = results.at(batch)
    assert cut.batch == batch
    for name in cut.names:
        table = cut.arrow(name, internal=True)
        frame = cut.spark(name, spark, internal=True).select(table.schema.names)
        assert told(table.to_pylist()) == told(frame.toArrow().cast(table.schema).to_pylist()), name
        assert cut.arrow(name).schema.names == cut.spark(name, spark).columns


def test_condition_and_columns_choose(results: Results) -> None:
    """Names with capitals stand as they are; the condition may use columns that are not wanted."""
    table = results.arrow("sold", ["amount", "id"], where="Paid AND _lj_batch > 1")
    assert table.schema.names == ["amount", "id"]
    rows = results.arrow("sold", internal=True).to_pylist()
    expected = [{"amount": r["amount"], "id": r["id"]} for r in rows if r["Paid"] and r["_lj_batch"] > 1]
    assert told(table.to_pylist()) == told(expected)
    assert expected
    pieces = results.record_batches("sold", ["amount", "id"], where="Paid AND _lj_batch > 1")
    assert told(pieces.read_all().to_pylist()) == told(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "sodl"}, "no result 'sodl'; did you mean 'sold'?; known: sold, "),
        ({"name": "sold.response_log"}, r"sold.response_log can be read by Spark only: .spark("),
        ({"name": "sold", "columns": ["amuont"]}, "no column of sold 'amuont'; did you mean 'amount'?"),
        ({"name": "sold", "where": "amuont > 1"}, "sold: 'amuont > 1' is no condition: "),
        ({"name": "sold", "where": "id > ("}, "sold: 'id > (' is no condition: "),
        ({"name": "sold", "where": "1 / (id - id) > 0"}, "cannot be computed: Divide by zero"),
    ],
)
def test_what_cannot_be_read_is_told(results: Results, arguments: dict[str, Any], message: str) -> None:
    """With the nearest name, the columns there are, or another way."""
    with pytest.raises(WrongUsage, match=re.escape(message)):
        results.arrow(**arguments)


def test_what_is_no_table_of_its_own_has_no_version(results: Results) -> None:
    """Nor has a batch that there is not."""
    with pytest.raises(WrongUsage, match="orders is no table of its own: its rows are computed"):
        results.table("orders")
    with pytest.raises(WrongUsage, match="batch 4 is not published; finished batches: 1 to 3"):
        results.at(4)


def test_removed_files_are_told(shop: Path, tmp_path: Path) -> None:
    """Of an older batch that it is too old; of the last one that the table is damaged."""
    shutil.copytree(shop, tmp_path / "shop")
    results = lakejoin.read(tmp_path / "shop" / "lakejoin.yaml")
    first, last = (cut.table("sold") for cut in (results.at(1), results))
    old, new = ({*DeltaTable(at.path, version=at.version).file_uris()} for at in (first, last))
    gone = old - new or old
    Path(next(iter(new - old))).unlink()
    with pytest.raises(LakeInconsistent, match="joins/sold/joined: is damaged, or a part of it is gone"):
        results.arrow("sold")
    Path(next(iter(gone))).unlink()
    with pytest.raises(WrongUsage, match="batch 1 is too old for sold: files of"):
        results.at(1).arrow("sold")


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[str]:
    """Return the address of a Spark Connect server, which the JVM of the tests becomes meanwhile."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    service, none = (
        spark._jvm.org.apache.spark.sql.connect.service.SparkConnectService,
        spark._jvm.scala.Option.empty(),
    )
    context = spark.sparkContext._jsc.sc()
    context.conf().set("spark.connect.grpc.binding.port", str(port))
    service.start(context)
    yield f"sc://localhost:{port}"
    service.stop(none, none)


def blocks() -> list[tuple[str, str, str]]:
    """Language, kind and text of each block of the page."""
    return _BLOCK.findall(PAGE.read_text("utf-8"))


def test_page_can_be_pasted(spark: SparkSession, server: str, shop: Path, tmp_path: Path) -> None:
    """Each example runs, in the order of the page, and prints what stands below it."""
    names: dict[str, Any] = {"spark": spark}
    printed, compared = "", 0
    folder = tmp_path / "shop"
    shutil.copytree(shop, folder)
    for language, kind, block in blocks():
        text = block.replace(_PLACE, str(folder)).replace(_SERVER, server)
        match language:
            case "text":
                assert printed == text
                compared += 1
            case "python" if kind:
                done = subprocess.run(
                    [sys.executable, "-c", text], capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, done.stderr
                printed = done.stdout
            case "python":
                with redirect_stdout(StringIO()) as out:
                    exec(text, names)
                printed = out.getvalue()
            case "sql":
                printed = "".join("|".join(map(str, row)) + "\n" for row in spark.sql(text).collect())
            case _:
                pytest.fail(f"a block that nobody runs: {language}")
    assert compared == sum(language != "text" for language, _, _ in blocks())
