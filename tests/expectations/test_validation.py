"""Validation runs the rules through Great Expectations and writes Data Docs."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakejoin.expectations import validation
from lakejoin.expectations.data_docs import DataDocs
from lakejoin.expectations.results import RuleResult
from lakejoin.expectations.rules import rules_for
from lakejoin.expectations.validation import Asset, judge_assets, validate_assets

pytestmark = pytest.mark.spark

Frames = dict[str, DataFrame]


def validated(frames: Frames, **where: Any) -> list[RuleResult]:
    """The results of one inner join."""
    asset = Asset("flights_with_planes", "inner", frames)
    return validate_assets([asset], **where).results[asset.name]


@pytest.fixture
def stale(sound: Any, row: Any, frames: Callable[[Any], Frames]) -> Frames:
    """Return frames of an inner join with one joined row made of an older left row."""
    state = sound("inner")
    state["joined"][0] = row("joined", 1, 91, "A", 21, 1)
    return frames(state)


def test_violated_rule_comes_back_with_its_rows(stale: Frames) -> None:
    """Each rule has a result, in order; the violated one fails with count and rows, the others succeed."""
    results = validated(stale)

    assert [(result.rule, result.statement) for result in results] == [
        (rule.name, rule.statement) for rule in rules_for("inner")
    ]
    (failed,) = [result for result in results if not result.success]
    assert (failed.rule, failed.unexpected_count, failed.error) == ("left_row_current", 1, None)
    assert [json.loads(line)["primary_key"] for line in failed.sample] == [{"flight_id": 1}]


def test_sound_assets_succeed_in_one_go(sound: Any, frames: Callable[[Any], Frames]) -> None:
    """Several joins and tables are validated by one call, each by its own rules."""
    found = validate_assets(
        [
            Asset("flights_with_planes", "left", frames(sound("left")), small=True),
            Asset("planes", "table", frames(sound("table")), small=True),
        ]
    ).results
    assert {name: [result.rule for result in results] for name, results in found.items()} == {
        "flights_with_planes": [rule.name for rule in rules_for("left")],
        "planes": [rule.name for rule in rules_for("table")],
    }
    assert all(result.success and not result.error for results in found.values() for result in results)


@pytest.mark.parametrize("small", [False, True])
def test_results_are_the_same_without_great_expectations(
    stale: Frames, sound: Any, frames: Callable[[Any], Frames], *, small: bool
) -> None:
    """Of assets with a violation and without, large ones and small ones together."""
    assets = [
        Asset("stale", "inner", stale, small=small),
        Asset("planes", "table", frames(sound("table")), small=True),
        Asset("left", "left", frames(sound("left")), small=True),
    ]
    assert judge_assets(assets) == validate_assets(assets).results


def test_data_docs_show_the_violation(stale: Frames, tmp_path: Path) -> None:
    """The index names the rule and links a page that shows the rule's SQL and the offending row."""
    docs = DataDocs(tmp_path / "_data_docs")
    validated(stale, docs=docs, run="batches 1/3 to 2/3")

    index = docs.index.read_text(encoding="utf-8")
    assert "left_row_current" in index
    assert "batches 1_3 to 2_3" in index
    (href,) = re.findall('href="([^"]+)"', index)
    page = (docs.folder / href.replace("%20", " ")).read_text(encoding="utf-8")
    assert "A joined row is made of the current left row, not of an older one." in page
    assert "WHERE joined &gt; 0 AND lives AND joined_left_hash IS DISTINCT FROM left_hash" in page
    assert "failed: 1 offending" in page
    assert "flight_id" in page


@pytest.mark.bad_input(31)
def test_data_docs_show_markup_in_a_key_as_text(sound: Any, row: Any, frames: Any, tmp_path: Path) -> None:
    """Whoever writes the data does not write the pages."""
    state, docs = sound("inner"), DataDocs(tmp_path / "_data_docs")
    state["joined"][0] = row("joined", 1, 91, "<script>alert(1)</script>$x{{1}}", 21, 1)

    validated(frames(state), docs=docs)

    pages = [path.read_text("utf-8") for path in docs.folder.rglob("*.html")]
    shown = [page for page in pages if "alert(1)" in page]
    assert len(shown) == 2
    assert [page for page in shown if "<script>alert" in page] == []


def test_data_docs_keep_the_last_runs(stale: Frames, sound: Any, frames: Any, tmp_path: Path) -> None:
    """Of each asset only the newest runs stay, on disk as in the index; other assets lose nothing."""
    docs = DataDocs(tmp_path / "_data_docs", keep=2)
    validate_assets([Asset("planes", "table", frames(sound("table")))], docs=docs, run="first")
    for run in ("first", "second", "third"):
        validated(stale, docs=docs, run=run)

    def runs(folder: str, pattern: str) -> set[tuple[str, ...]]:
        files = (docs.folder / folder).rglob(pattern)
        return {path.relative_to(docs.folder / folder).parts[:2] for path in files}

    kept = {("planes", "first"), ("flights_with_planes", "second"), ("flights_with_planes", "third")}
    assert runs("validations", "*.html") == kept
    assert runs("store/results", "*.json") == kept
    index = docs.index.read_text(encoding="utf-8")
    assert index.index("third") < index.index("second") < index.index('id="planes"')
    assert index.count("first</a>") == 1


@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ("store/results/**/*.json", r"the result flights_with_planes/first/.* below store/ cannot be read"),
        ("store/suites/*.json", "the suite flights_with_planes below store/ cannot be read"),
        ("", "NotADirectoryError|FileExistsError"),
    ],
    ids=["torn result", "torn suite", "a file in the place of the folder"],
)
def test_verdicts_stand_where_data_docs_cannot_be_written(
    broken: str, what: str, stale: Frames, tmp_path: Path
) -> None:
    """A warning says where and why; the site stays as it was, and is made anew once it was deleted."""
    docs = DataDocs(tmp_path / "_data_docs")
    asset = Asset("flights_with_planes", "inner", stale)
    if broken:
        validated(stale, docs=docs, run="first")
        (torn,) = docs.folder.glob(broken)
        torn.write_text(torn.read_text("utf-8")[:40], "utf-8")
        before = docs.index.read_bytes()
    else:
        docs.folder.write_text("no folder")

    found = validate_assets([asset], docs=docs, run="second")

    assert [result.rule for result in found.results[asset.name] if not result.success] == ["left_row_current"]
    assert found.unpublished is not None
    assert re.search(
        rf"{docs.folder} were not written: .*({what})(.|\n)* delete it; .* anew", found.unpublished
    )
    if broken:
        assert docs.index.read_bytes() == before
        shutil.rmtree(docs.folder)
    else:
        docs.folder.unlink()
    assert validate_assets([asset], docs=docs, run="third").unpublished is None
    assert "third" in docs.index.read_text("utf-8")


def test_index_comes_whole_and_links_what_is_declared(
    stale: Frames, sound: Any, frames: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is renamed in its place; a table that was removed stays below `store/`, and is back where it is declared."""
    folder, planes = tmp_path / "_data_docs", Asset("planes", "table", frames(sound("table")))
    validate_assets([planes], docs=DataDocs(folder), run="first")
    beside: list[str] = []
    rename = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda path, target: (beside.append(path.name), rename(path, target))[1]
    )

    def linked(*assets: str) -> list[str]:
        docs = DataDocs(folder, assets=assets)
        validated(stale, docs=docs)
        return re.findall('<h3 id="([^"]+)"', docs.index.read_text("utf-8"))

    assert linked("flights_with_planes") == ["flights_with_planes"]
    assert linked("flights_with_planes", "planes") == ["flights_with_planes", "planes"]
    assert beside == [f".index.html.{os.getpid()}"] * 2
    assert sorted(path.name for path in folder.glob("*index*")) == ["index.html"]


def test_rule_that_raises_is_a_failure(stale: Frames, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a rule has no result Great Expectations notes an exception, and the rule fails with that."""
    checked = [rule for rule in rules_for("inner") if rule.name != "nothing_pending"]
    monkeypatch.setattr(validation, "rules_for", lambda _: checked)
    results = {result.rule: result for result in validated(stale)}
    assert not results["nothing_pending"].success
    assert results["nothing_pending"].error
    assert results["left_row_exists"].success


def test_validation_costs_one_query(spark: SparkSession, sound: Any, frames: Any) -> None:
    """Great Expectations reads results that are at hand: its expectations start no job of their own."""
    asset = Asset("planes", "table", frames(sound("table")), small=True)
    spark.sparkContext.setJobGroup("validation", "validation")
    validate_assets([asset])
    spark.sparkContext.setJobGroup("", "")
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("validation")) == 1
