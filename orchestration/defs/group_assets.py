"""Describes the steps of groups for Dagster: `subscription log → joined, changelog, history`."""

from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.column_lineage import origins
from lakejoin.orchestration.defs.foreign_key_assets import FLAGS, NOTES
from lakejoin.orchestration.defs.time_asset_specs import Columns
from lakejoin.storage.lake.layout import changelog_of, history_of, joined_of, subscription_log_of
from lakejoin.transforms.foreign_key_join.emissions import joined_schema
from lakejoin.transforms.foreign_key_join.history import history_schema
from lakejoin.transforms.foreign_key_join.subscriptions import subscription_schema
from lakejoin.transforms.model.group_spec import TOTALS


def steps(pipeline: Pipeline, name: str) -> list[tuple[str, str, str]]:
    """Return the steps of groups: their name, the step, and the table below the lake that stands for it."""
    spec = pipeline.group_spec(name)
    log = [(name, "subscription_log", subscription_log_of(name))] * (not spec.adjusts)
    return [
        *log,
        (name, "joined", joined_of(name)),
        *[(name, "changelog", changelog_of(name))] * spec.changelog,
        *[(name, "history", history_of(name))] * (spec.history is not None),
    ]


def upstream(pipeline: Pipeline, name: str, step: str) -> list[tuple[str, str]]:
    """What a step reads, as names and steps."""
    source = pipeline.groups[name].of
    rows = (source, "joined" if source in pipeline.joins else "table")
    match step:
        case "subscription_log":
            return [rows]
        case "changelog" | "history":
            return [(name, "joined")]
        case _:
            return [rows] if pipeline.group_spec(name).adjusts else [(name, "subscription_log"), rows]


def description(pipeline: Pipeline, name: str, step: str) -> str:
    """A step in a sentence or two."""
    group = pipeline.groups[name]
    by = ", ".join(f"`{column}`" for column in pipeline.group_spec(name).joined_key)
    match step:
        case "subscription_log":
            return f"In which group the rows of `{group.of}` are, by {by}: subscribe, or unsubscribe."
        case "joined":
            having = f", those with {group.having}" if group.having else ""
            return f"A row for each group of `{group.of}` by {by}{having}: one commit for each batch."
        case "history":
            return f"Every row that `{name}` ever had, since when, and until when."
        case _:
            return f"Every emission of `{name}` in order."


def columns(pipeline: Pipeline, name: str, step: str) -> Columns:
    """Columns of a step."""
    spec = pipeline.group_spec(name)
    if step == "subscription_log":
        (part,) = spec.parts
        named = {
            "foreign_key": "Key of the group",
            "primary_key": "Key of the row",
            "hash": "Hash of what is read of the row",
        }
        return subscription_schema(part), {**NOTES, **named}, ()
    notes = {
        **NOTES,
        TOTALS: "What the group is adjusted by: rows, counts and sums",
        **origins(spec),
    }
    if step == "joined":
        return joined_schema(spec), notes, spec.joined_key
    if step == "history":
        return history_schema(spec), notes, ()
    return StructType([*joined_schema(spec), *FLAGS]), notes, ()
