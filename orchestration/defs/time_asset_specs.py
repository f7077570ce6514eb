"""Describes histories, streams and their joins for Dagster: `stream → buffer → joined ← history or table`."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructType

from orchestration.config import Pipeline
from storage.lake.plan import Published
from transforms.changelog.versions import VALID_FROM, VALID_TO, versions_schema
from transforms.model.schemas import BATCH, POSITION, TIME, VERDICT
from transforms.stream_join.records import stream_schema
from transforms.stream_join.table_join import stream_joined_schema

_NOTES = {
    BATCH: "Number of the batch that wrote the row",
    POSITION: "Where the record stood: date, file and line",
    TIME: "Event time",
    VERDICT: "What became of the record",
    VALID_FROM: "When the version began to be valid, inclusive",
    VALID_TO: "When it ended, exclusive; null while it is valid",
}

Columns = tuple[StructType, Mapping[str, str], tuple[str, ...]]
"""A schema, what is to be said of its columns, and its key."""


def upstream_names(pipeline: Pipeline, join: str, step: str) -> list[tuple[str, str]]:
    """What a step of a stream's join reads, as names and steps."""
    found = pipeline.stream_joins[join]
    if step == "buffer":
        return [(found.stream, "stream")]
    source = (join, "buffer") if found.grace is not None else (found.stream, "stream")
    versioned = pipeline.tables[found.table].versioned is not None
    return [source, (found.table, "versions" if versioned else "table")]


def time_description(pipeline: Pipeline, name: str, step: str) -> str:
    """The asset in a sentence or two."""
    if step == "versions":
        table = pipeline.tables[name]
        kept = table.versioned.history_retention if table.versioned else None
        return f"Every value that a key of `{name}` had, and when ({table.event_time}), for as-of reads over {kept}."
    if step == "stream":
        stream = pipeline.streams[name]
        which = f" where {stream.where}" if stream.where else ""
        return f"Records of `{name}`{which}, each once, by {stream.event_time} ({stream.source.format})."
    join = pipeline.stream_joins[name]
    if step == "buffer":
        return (
            f"Records of `{join.stream}` that wait until stream time has passed theirs by {join.grace}: a range of the "
            "stream's records, and no table of its own."
        )
    when = (
        "as it was at the record's time"
        if pipeline.tables[join.table].versioned
        else "as it was in its batch"
    )
    return (
        f"`{join.stream}` {join.how} join `{join.table}`, {when}: a row for each record, never changed again."
    )


def time_schema(pipeline: Pipeline, name: str, step: str) -> Columns | None:
    """Columns of an asset; None for one that is no matter of time."""
    match step:
        case "versions":
            spec = pipeline.tables[name].spec
            return versions_schema(spec), _NOTES, ()
        case "stream":
            return stream_schema(pipeline.streams[name].spec), _NOTES, ()
        case "buffer":
            return stream_schema(pipeline.streams[pipeline.stream_joins[name].stream].spec), _NOTES, ()
        case "joined" if name in pipeline.stream_joins:
            return stream_joined_schema(pipeline.stream_join_spec(name)), _NOTES, ()
    return None


def clock_metadata(batch: Published, name: str, step: str) -> dict[str, Any]:
    """The clock that an asset goes by, after a batch."""
    kind = {"versions": "tables", "buffer": "joins", "joined": "joins"}.get(step, "")
    clock = batch.clocks.get(f"{kind}/{name}")
    return {} if clock is None else {"watermark": clock.isoformat()}
