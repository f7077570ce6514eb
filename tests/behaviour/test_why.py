"""The questions of `docs/why.md`, asked of the week of flights: each command prints what the page shows."""

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.shop import run
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.config import load
from lakejoin.orchestration.demo.example import EXAMPLE

PAGE = Path(__file__).parents[2] / "docs" / "why.md"
QUESTIONS = re.findall(
    r"^## \d+\. (.*?)$.*?```console\n\$ (.*?)\n(.*?)\n```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
)
LEFT_OUT = "…"


def shows(page: list[str], printed: list[str]) -> bool:
    """Whether a page shows what was printed: in its order, with gaps only where the page says so."""
    at, gap = 0, False
    for line in page:
        if line == LEFT_OUT:
            gap = True
            continue
        while gap and at < len(printed) and printed[at] != line:
            at += 1
        if at == len(printed) or printed[at] != line:
            return False
        at, gap = at + 1, False
    return gap or at == len(printed)


def test_gaps_are_only_where_the_page_says() -> None:
    """Else the test below could not fail."""
    printed = ["one", "two", "three"]
    assert shows(["one", LEFT_OUT, "three"], printed)
    assert shows([LEFT_OUT, "two", LEFT_OUT], printed)
    for wrong in (["one", "three"], ["one", "two"], [LEFT_OUT, "four"], ["two", "three"], [LEFT_OUT, "two"]):
        assert not shows(wrong, printed)


def test_page_has_twenty_questions() -> None:
    """Each is found by the pattern that finds them."""
    assert len(QUESTIONS) == PAGE.read_text("utf-8").count("\n## ") >= 20


@pytest.fixture(scope="module")
def week(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the demo, its seven days worked off."""
    folder = tmp_path_factory.mktemp("why")
    (folder / "data").symlink_to(EXAMPLE / "data")
    (folder / "lakejoin.yaml").write_text((EXAMPLE / "lakejoin.yaml").read_text("utf-8"), "utf-8")
    assert run(load(folder / "lakejoin.yaml"), spark, batch_by="date") == 7
    return folder


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "command", "shown"), QUESTIONS, ids=[question for question, *_ in QUESTIONS]
)
def test_question_is_answered_as_the_page_says(
    week: Path, monkeypatch: pytest.MonkeyPatch, question: str, command: str, shown: str
) -> None:
    """Line by line."""
    monkeypatch.chdir(week)
    program, *arguments = shlex.split(command)
    assert program == "lakejoin"
    printed = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert printed.exit_code == 0
    assert shows(shown.split("\n"), printed.stdout.rstrip("\n").split("\n")), printed.stdout
