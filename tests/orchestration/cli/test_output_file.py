"""A file that a command writes is complete, or what it was before."""

from pathlib import Path

import pytest

from lakejoin.orchestration.cli.output_file import output_file
from lakejoin.orchestration.errors import WrongUsage


def test_file_is_replaced_when_all_is_written(tmp_path: Path) -> None:
    """Until then readers see what was there, and afterwards no draft."""
    path = tmp_path / "x.json"
    path.write_text("old")
    with output_file("--into", path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_file_stays_when_something_fails(tmp_path: Path) -> None:
    """Nothing is left beside it."""
    path = tmp_path / "x.json"
    path.write_text("old")
    with pytest.raises(KeyError), output_file("--into", path):
        raise KeyError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_place_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    """Before anything is computed."""
    with (
        pytest.raises(
            WrongUsage, match=r"^--into .*/none/x.json: cannot be written \(No such file or directory\)"
        ),
        output_file("--into", tmp_path / "none" / "x.json"),
    ):
        pytest.fail("computed")
