"""`import lakejoin` is quick and has the names of the API; what reading says where there is nothing to read."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lakejoin
from lakejoin.orchestration.config import ConfigurationError, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.reading import Results, read

TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: "orders/*.jsonl"}, columns: {id: bigint}, key: [id]}
"""
HEAVY = {"dagster", "deltalake", "great_expectations", "pandas", "pyarrow", "pydantic", "pyspark"}


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
