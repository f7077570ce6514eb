"""What Dagster shows of a pipeline: an asset for each declared table and for each step of each join.

`left table → subscription log → response log ← right table`, `response log → joined`; a join over a join
starts from the first one's joined table. Keys are `pipeline/table`, `pipeline/join` for the joined table, and
`pipeline/join/step` for what leads to it.
"""

from dataclasses import dataclass
from typing import Literal

from dagster import AssetKey

from orchestration.config import Pipeline
from storage.lake import (
    changelog_of,
    changes_of,
    joined_of,
    records_of,
    response_log_of,
    subscription_log_of,
)

Step = Literal[
    "table", "versions", "stream", "subscription_log", "response_log", "buffer", "joined", "changelog"
]


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


def table_key(pipeline: Pipeline, name: str) -> AssetKey:
    """Key of a declared table's asset."""
    return AssetKey([pipeline.name, name])


def step_key(pipeline: Pipeline, join: str, step: str) -> AssetKey:
    """Key of the asset of one step of a join; the joined table bears the join's own name, as tables do theirs."""
    return AssetKey([pipeline.name, join] if step == "joined" else [pipeline.name, join, step])
