"""Which runs a row repeats, and which it takes from the results that are kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench import row
from bench.row import Places
from bench.targets.recipes import RECIPES

RECIPE = RECIPES["small"]


@pytest.mark.parametrize(
    ("commit", "recipe", "measured"),
    [
        ("abcd1234", RECIPE, True),
        ("0000ffff", RECIPE, False),
        ("abcd1234-dirty", RECIPE, False),
        ("abcd1234", replace(RECIPE, batches=9), False),
    ],
    ids=["the same", "another commit", "a changed work tree", "another recipe"],
)
def test_result_serves_again_for_the_same_commit_and_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str, recipe: row.Recipe, measured: bool
) -> None:
    """Of a work tree that was changed nobody knows what was measured."""
    for made in ("abcd1234", "abcd1234-dirty"):
        text = json.dumps({"recipe": RECIPE.text})
        (tmp_path / f"2026-01-01T000000-{made}-small.json").write_text(text)
    monkeypatch.setattr(row, "commit", lambda: commit)

    found = Places(tmp_path, tmp_path).measured("small", recipe)

    assert (found is not None) is measured


def test_runs_with_the_same_tables_share_first_load_and_batches(tmp_path: Path) -> None:
    """The number of batches makes no other workload; other changes do, but the same lake."""
    places = Places(tmp_path, tmp_path)

    assert places.workload(RECIPE) == places.workload(RECIPES["fifty-batches"])
    assert places.workload(RECIPE) != places.workload(RECIPES["single-changes"])
    assert places.lake(RECIPE) == places.lake(RECIPES["single-changes"])
    assert places.lake(RECIPES["middle"]) != places.lake(RECIPES["hot-customer"])
