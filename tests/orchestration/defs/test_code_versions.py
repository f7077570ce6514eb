"""Dagster says that code changed just where a join would have to begin anew."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.lake_state.config_fingerprints import readings_of, shapes_of, state_versions
from lakejoin.storage.lake.plan import Plan

_TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: orders.jsonl}, columns: {id: int, ref: int, other: int}, key: [id]}
  customers: {source: {format: jsonl, path: customers.jsonl}, columns: {id: int, name: string}, key: [id]}
joins:
  sold: {left: orders, right: customers, foreign_key: [ref], how: left}
"""


@dataclass(frozen=True)
class Planned:
    """What a plan says of the configuration that it was made with."""

    shapes: dict[str, str]


def versions(text: str, folder: Path) -> dict[str, str | None]:
    """Return the code version of each asset, by the last part of its key."""
    embedded = EmbeddedPipeline(pipeline(text, folder))
    definitions = pipeline_definitions(embedded, datetime(2024, 1, 1, tzinfo=UTC))
    return {spec.key.path[-1]: spec.code_version for spec in definitions.resolve_all_asset_specs()}


def pipeline(text: str, folder: Path) -> Pipeline:
    """Return the pipeline of a text."""
    return load_text(text, folder / "lakejoin.yaml")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("[ref]", "[other]", {"sold", "sold_subscription_log", "sold_response_log"}),
        ("how: left", "how: left, max_dangling: 0.5", set()),
        ("key: [id]}\njoins", "key: [id], tombstone_retention: 3 days}\njoins", set()),
        ("name: string", "name: string, city: string", {"customers"}),
    ],
)
def test_code_version_changes_where_state_would_be_made_anew(
    tmp_path: Path, old: str, new: str, changed: set[str]
) -> None:
    """What only says how a run goes on leaves it."""
    assert old in _TEXT
    before, after = versions(_TEXT, tmp_path), versions(_TEXT.replace(old, new), tmp_path)
    found = {name for name in before if before[name] != after[name]}
    assert found == changed
    assert all(before[name] for name in before if not name.endswith("_source"))


def test_a_batch_has_the_version_of_the_configuration_that_planned_it(tmp_path: Path) -> None:
    """That of its plan, which says more; one that does not say a setting of a later version was made with it."""
    now, then = pipeline(_TEXT, tmp_path), pipeline(_TEXT.replace("[ref]", "[other]"), tmp_path)
    same = cast("Plan", Planned(shapes_of(now) | readings_of(now)))
    fewer = cast("Plan", Planned({k: v for k, v in shapes_of(now).items() if not k.endswith("/select")}))
    other = cast("Plan", Planned(shapes_of(then)))
    assert (
        state_versions(now, same)["sold"] == state_versions(now, fewer)["sold"] == state_versions(now)["sold"]
    )
    assert state_versions(now, other)["sold"] == state_versions(then)["sold"] != state_versions(now)["sold"]
    assert state_versions(now, other)["orders"] == state_versions(now)["orders"]
