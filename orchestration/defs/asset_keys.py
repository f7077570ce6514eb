"""Lists the assets of a pipeline: one for each declared table and for each step of each join.

`left table → subscription log → response log ← right table`, `response log → joined`; a join over a join starts from
the first one's joined table. Keys are `pipeline/table`, `pipeline/join` for the joined table, and `pipeline/join/step`
for what leads to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dagster import AssetKey

from orchestration.config import Pipeline
from storage.lake.layout import (
    changelog_of,
    changes_of,
    joined_of,
    records_of,
    response_log_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
    versions_of,
)

Step = Literal[
    "table", "versions", "stream", "subscription_log", "response_log", "buffer", "joined", "changelog"
]
_BASES: dict[Step, Callable[[str], str]] = {
    "table": rows_of,
    "versions": versions_of,
    "subscription_log": subscription_store_of,
}


@dataclass(frozen=True)
class LakeAsset:
    """An asset: a step of a declared table or join, and the Delta table below the lake that stands for it."""

    key: AssetKey
    step: Step
    name: str
    """Of the declared table or join."""
    table: str
    """Below the lake: a declared table is followed by the log of its changes."""


def lake_assets(pipeline: Pipeline) -> list[LakeAsset]:
    """The assets of a pipeline: its tables, then the steps of its joins in their order."""
    found = [
        LakeAsset(table_key(pipeline, name), "table", name, changes_of(name)) for name in pipeline.tables
    ]
    found += [
        LakeAsset(step_key(pipeline, name, "versions"), "versions", name, changes_of(name))
        for name, table in pipeline.tables.items()
        if table.versioned
    ]
    found += [
        LakeAsset(table_key(pipeline, name), "stream", name, records_of(name)) for name in pipeline.streams
    ]
    for name, stream_join in pipeline.stream_joins.items():
        if stream_join.grace is not None:
            key = step_key(pipeline, name, "buffer")
            found.append(LakeAsset(key, "buffer", name, records_of(stream_join.stream)))
        found.append(LakeAsset(step_key(pipeline, name, "joined"), "joined", name, joined_of(name)))
    for name, join in pipeline.foreign_key_joins.items():
        steps: list[tuple[Step, str]] = [
            ("subscription_log", subscription_log_of(name)),
            ("response_log", response_log_of(name)),
            ("joined", joined_of(name)),
        ]
        if join.changelog:
            steps.append(("changelog", changelog_of(name)))
        found += [LakeAsset(step_key(pipeline, name, step), step, name, table) for step, table in steps]
    return found


def assets_of_tables(pipeline: Pipeline) -> dict[str, LakeAsset]:
    """The asset that each table below the lake belongs to: of several that one stands for, the one that writes it.

    A folded base belongs to what its rows are of.
    """
    assets = lake_assets(pipeline)
    found = {asset.table: asset for asset in reversed(assets)}  # who writes a table comes before who reads it
    return found | {_BASES[asset.step](asset.name): asset for asset in assets if asset.step in _BASES}


def table_key(pipeline: Pipeline, name: str) -> AssetKey:
    """Key of a declared table's asset."""
    return AssetKey([pipeline.name, name])


def step_key(pipeline: Pipeline, join: str, step: str) -> AssetKey:
    """Key of the asset of one step of a join; the joined table bears the join's own name, as tables do theirs."""
    return AssetKey([pipeline.name, join] if step == "joined" else [pipeline.name, join, step])
