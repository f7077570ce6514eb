"""The pages about kinds of sources work as they stand: files, programs, commands and what these print."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from orchestration.cli import app, options
from orchestration.config import load
from storage.lake.layout import Lake, joined_of

pytestmark = pytest.mark.spark

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("delta-sources.md", "snapshots.md")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Language and text of each block of a page."""
    yield from _BLOCK.findall((DOCS / page).read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_page_can_be_followed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """What it writes is written, what it runs is run, and each command prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(options, "open_session", lambda pipeline: spark)
    printed, shown = "", 0
    for language, text in blocks(page):
        match language:
            case "yaml":
                name = text.removeprefix("# ").split("\n", 1)[0]
                Path(name).write_text(text)
            case "python":
                exec(text, {})
            case "sh":
                printed = "".join(_run(line) for line in text.splitlines())
            case "text":
                shown += 1
                assert printed.replace("\r\n", "\n").replace(str(tmp_path), "…") == text
    assert shown >= 2
    _expect_feed(tmp_path)


def _run(command: str) -> str:
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, f"{command}: {result.output}"
    return "" if " run " in command or " reconcile " in command else result.stdout


def _expect_feed(folder: Path) -> None:
    """A joined table keeps a feed without that one is written beside it."""
    lake = Lake(load(folder / "shop.yaml").lake)
    joined = Path(lake.path(joined_of("orders_with_customers")))
    assert not (joined / "_change_data").exists()
    snapshot = lake.snapshot(joined_of("orders_with_customers"))
    assert snapshot is not None
    assert snapshot.delta.metadata().configuration["delta.enableChangeDataFeed"] == "true"
