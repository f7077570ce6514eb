"""Where the demo finds its example, and where it may write."""

import shutil
from pathlib import Path

import pytest

from lakejoin.orchestration.demo import example
from lakejoin.orchestration.errors import WrongUsage


def test_source_tree_is_worked_in_itself() -> None:
    """The lake of the demo lies beside the example."""
    assert example.own_example() == example.EXAMPLE == Path(__file__).parents[3] / "examples" / "flights"


def test_installed_package_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the working directory; a demo that was run there goes on with its own."""
    package = tmp_path / "demo"
    (package / "flights" / "data" / "expected").mkdir(parents=True)
    shutil.copy(example.DEMO, package / "flights")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(example, "__file__", str(package / "example.py"))
    monkeypatch.setattr(example, "EXAMPLE", package / "flights")

    copy = example.own_example()
    (copy / "lake").mkdir()

    assert copy == Path("lakejoin-demo") == example.own_example()
    assert (copy / "lake").exists()
    opened = example.open_example(copy, None)
    assert opened.expected == tmp_path / "work" / "lakejoin-demo" / "data" / "expected"
    assert opened.pipeline.lake == str(tmp_path / "work" / "lakejoin-demo" / "lake")


def test_folder_without_answers_is_no_example(tmp_path: Path) -> None:
    """What an example has is told."""
    with pytest.raises(WrongUsage, match=r"no example; it has lakejoin\.yaml and data/expected"):
        example.open_example(tmp_path, None)
