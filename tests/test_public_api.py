"""`import lakejoin` is quick and has the names of the API; what reading says where there is nothing to read."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lakejoin
from lakejoin.orchestration.config import ConfigurationError, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.reading import Results, read
from lakejoin.stores import PipelineStores, open_stores

TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: "orders/*.jsonl"}, columns: {id: bigint}, key: [id]}
"""
HEAVY = {"dagster", "deltalake", "great_expectations", "pandas", "pyarrow", "pydantic", "pyspark"}


def write(folder: Path) -> Path:
    """Write the file of a pipeline without any input."""
    path = folder / "lakejoin.yaml"
    path.write_text(TEXT)
    return path


def _modules_after(program: str) -> set[str]:
    """The packages that a program has imported at its end, in a process of its own."""
    code = f"{program}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_package_imports_nothing_before_it_is_asked() -> None:
    """A name of the API brings what it needs; Dagster and Great Expectations are not for reading."""
    assert not HEAVY & _modules_after("import lakejoin")
    assert {"pyspark", "deltalake"} == HEAVY & _modules_after("import lakejoin; lakejoin.read") & {
        "dagster",
        "deltalake",
        "great_expectations",
        "pyspark",
    }


def test_names_of_the_api_are_there() -> None:
    """Those that are listed, and no others."""
    assert lakejoin.read is read
    assert all(hasattr(lakejoin, name) for name in lakejoin.__all__)
    with pytest.raises(AttributeError, match="module 'lakejoin' has no attribute 'raed'"):
        _ = lakejoin.raed  # type: ignore[attr-defined]


def test_there_has_to_be_a_file_and_a_finished_batch(tmp_path: Path) -> None:
    """A path and a pipeline are the same."""
    path = tmp_path / "lakejoin.yaml"
    with pytest.raises(ConfigurationError, match="no such file"):
        lakejoin.read(path)
    path.write_text(TEXT)
    for pipeline in (path, str(path), load(path)):
        with pytest.raises(WrongUsage, match="the lake has no finished batch yet; `lakejoin run` makes one"):
            lakejoin.read(pipeline)


def test_missing_polars_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setattr(Results, "arrow", lambda *_, **__: pa.table({"id": [1]}))
    results = object.__new__(Results)
    with pytest.raises(WrongUsage, match=r"polars is not installed, .*; `pip install 'lakejoin\[polars\]'`"):
        results.polars("sold")


def test_nothing_pending_needs_no_spark(tmp_path: Path) -> None:
    """A run that finds nothing returns at once, and makes no lake."""
    path = write(tmp_path)
    (tmp_path / "orders").mkdir()
    assert lakejoin.run(path) == []
    assert not (tmp_path / "lake").exists()


@pytest.mark.spark
def test_a_run_from_python_says_what_its_batches_did(tmp_path: Path, spark: SparkSession) -> None:
    """In the application of a session that is given; what it wrote is read as results and as stores."""
    path = write(tmp_path)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.jsonl").write_text('{"op": "c", "id": 1}\n{"op": "c", "id": 2}\nbroken\n')

    (batch,) = lakejoin.run(path, spark)

    assert (batch.number, batch.kind, batch.dates, batch.joins) == (1, "batch", (), {})
    assert (batch.tables["orders"]["applied"], batch.tables["orders"]["quarantined"]) == (2, 1)
    assert sorted(lakejoin.read(path).arrow("orders").column("id").to_pylist()) == [1, 2]
    assert [row.key for row in open_stores(path).rows("orders").all()] == [1, 2]
    assert lakejoin.run(path, spark) == []


@pytest.mark.parametrize(
    ("opened", "message"),
    [
        (lambda stores: stores.rows("order"), "table 'order'"),
        (lambda stores: stores.versions("orders"), "versioned table 'orders'"),
        (lambda stores: stores.joined("sold"), "join of tables 'sold'"),
        (lambda stores: stores.subscriptions("sold"), "join 'sold'"),
        (lambda stores: stores.buffer("sold"), "join with a grace period 'sold'"),
    ],
)
def test_stores_of_what_is_not_there_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[PipelineStores], object], message: str
) -> None:
    """With what was asked for; a lake without a batch has none at all."""
    path = write(tmp_path)
    with pytest.raises(WrongUsage, match="no finished batch yet"):
        open_stores(path)
    monkeypatch.setattr("lakejoin.stores.published_snapshot", lambda *_: None)
    with pytest.raises(WrongUsage, match=message):
        opened(open_stores(path))
