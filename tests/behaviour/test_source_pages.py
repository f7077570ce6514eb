"""The pages about kinds of sources work as they stand: files, programs, commands and what these print.

A page is followed if it has a YAML file whose first line is its name. Of its blocks `yaml` is a file, or a part: other
tables of the file before it, or other keys of its first table; `python` and `sh` are run; `text` is what the commands
before it have printed. A command may fail if its message is shown. Other blocks are read by people only.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import load, load_text
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.transforms.parsing.row_ops import PRESETS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
INDEX = DOCS / "sources.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([\w-]+\.yaml)\n")
_SECONDS = re.compile(r"^Seconds by stage\n(?:  .*\n)+", re.MULTILINE)
"""What a run prints last, and what is different in each; a page has a line of three dots in its place."""
FILE = "name: x\nlake: ./x\ntables:\n  t: {{source: {}, columns: {{id: int}}, key: [id]}}\n"
"""A pipeline around a source."""
QUICK = 3
"""How many commands that start Spark a page may have to be followed in every run of the tests."""


def blocks(page: str) -> list[tuple[str, str]]:
    """Language and text of each block of a page."""
    return _BLOCK.findall((DOCS / page).read_text("utf-8"))


def _followed() -> Iterator[str]:
    for path in sorted(DOCS.rglob("*.md")):
        page = path.relative_to(DOCS).as_posix()
        if any(language == "yaml" and _NAME.match(text) for language, text in blocks(page)):
            yield page


PAGES = [*_followed()]


def _long(page: str) -> bool:
    starts = re.findall(
        r"^lakejoin (?:run|show|quarantine|reconcile) ",
        "\n".join(text for _, text in blocks(page)),
        re.MULTILINE,
    )
    return len(starts) > QUICK


@dataclass
class Reader:
    """Somebody who does what a page says, in a folder of their own."""

    folder: Path
    pipeline: str = ""
    """The last file that was written."""
    printed: str = ""
    """What the commands of the last block printed, as a page shows it."""
    failed: str = ""
    """The command that failed, and is not yet shown to."""

    def follow(self, language: str, text: str) -> None:
        """Do what a block says, or compare with what it says."""
        if language == "text":
            assert self.printed == text
            self.failed = ""
            return
        assert not self.failed, f"{self.failed}: {self.printed}"
        match language:
            case "yaml" if name := _NAME.match(text):
                self.pipeline = text
                (self.folder / name[1]).write_text(text, "utf-8")
                load(self.folder / name[1])
            case "yaml":
                load_text(with_part(self.pipeline, text), self.folder / "part.yaml")
            case "python":
                exec(text, {})
            case "sh":
                self.printed = "".join(self._done(lines) for lines in commands(text))

    def _done(self, lines: str) -> str:
        assert not self.failed, f"{self.failed}: {self.printed}"
        if not lines.startswith("lakejoin "):
            subprocess.run(["bash", "-euc", lines], check=True)
            return ""
        result = CliRunner().invoke(app, shlex.split(lines)[1:])
        assert isinstance(result.exception, SystemExit | None), f"{lines}: {result.exception!r}"
        if result.exit_code != 0:
            self.failed = lines
        shown = (result.stdout + result.stderr).replace("\r\n", "\n").replace(str(self.folder), "…")
        return _SECONDS.sub("…\n", shown)


def commands(text: str) -> list[str]:
    """A block of a shell: each command of `lakejoin` for itself, and what stands between them."""
    return [part for part in re.split(r"^(lakejoin .*)\n", text, flags=re.MULTILINE) if part.strip()]


def with_part(pipeline: str, part: str) -> str:
    """A file in which a part stands: other tables, or other keys of the first table."""
    whole, said = yaml.safe_load(pipeline), yaml.safe_load(part)
    if "tables" in said:
        whole = {key: whole[key] for key in ("name", "lake")} | said
    else:
        whole["tables"][next(iter(whole["tables"]))] |= said
    return yaml.safe_dump(whole, sort_keys=False)


def _links(page: Path) -> set[Path]:
    return {
        (page.parent / link).resolve() for link in re.findall(r"\]\(([\w./-]+\.md)", page.read_text("utf-8"))
    }


def test_each_page_is_in_the_lists() -> None:
    """Who looks for their data finds the page from the README and from the list of sources."""
    pages = {DOCS / page for page in PAGES}
    assert len(pages) >= 13
    assert pages <= _links(INDEX)
    assert pages <= _links(ROOT / "README.md")


def test_each_preset_has_a_page() -> None:
    """With a source that names it."""
    tools = {page.stem: page.read_text("utf-8") for page in (DOCS / "tools").glob("*.md")}
    assert tools.keys() == PRESETS.keys()
    assert all(re.search(rf"\bop: {name}\b", text) for name, text in tools.items())


def test_options_of_csv_can_be_pasted() -> None:
    """Each of the table is what a source takes."""
    text = (DOCS / "files.md").read_text("utf-8")
    options = re.findall(r"\| `(\{.*\})` \|", text[text.index("\n## CSV") :])
    assert len(options) == 5
    for option in options:
        source = f"{{format: csv, path: x, csv: {option}}}"
        csv = load_text(FILE.format(source), "x.yaml").tables["t"].source.csv
        assert csv is not None
        assert set(yaml.safe_load(option)) <= csv.model_fields_set


def test_operations_can_be_pasted() -> None:
    """Each of the table is what a source takes."""
    text = (DOCS / "rows.md").read_text("utf-8")
    said = re.findall(r"\| `(\{.*?\})`", text[text.index("\n## What says what happened") :])
    assert len(said) == 4
    for option in said:
        op = (
            load_text(FILE.format(f"{{format: jsonl, path: x, op: {option}}}"), "x.yaml")
            .tables["t"]
            .source.op
        )
        assert op is not None
        assert set(yaml.safe_load(option)) == op.model_fields_set


@pytest.mark.spark
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if _long(page) else ()) for page in PAGES]
)
def test_page_can_be_followed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """What it writes is written, what it runs is run, and each command prints what stands below it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)
    reader = Reader(tmp_path)
    for language, text in blocks(page):
        reader.follow(language, text)
    assert not reader.failed, f"{reader.failed}: {reader.printed}"
    assert any(language == "text" for language, _ in blocks(page))
    if page == "delta-sources.md":
        _expect_feed(tmp_path)


def _expect_feed(folder: Path) -> None:
    """A joined table keeps a feed without that one is written beside it."""
    lake = Lake(load(folder / "shop.yaml").lake)
    joined = Path(lake.path(joined_of("orders_with_customers")))
    assert not (joined / "_change_data").exists()
    snapshot = lake.snapshot(joined_of("orders_with_customers"))
    assert snapshot is not None
    assert snapshot.delta.metadata().configuration["delta.enableChangeDataFeed"] == "true"
