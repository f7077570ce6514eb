"""Describes histories and streams for Dagster, and the clocks that assets go by."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.plan import Published
from lakejoin.transforms.changelog.versions import versions_schema
from lakejoin.transforms.model.schemas import BATCH, POSITION, TIME, VALID_FROM, VALID_TO, VERDICT
from lakejoin.transforms.stream_join.records import stream_schema

NOTES = {
    BATCH: "Number of the batch that wrote the row",
    POSITION: "Where the record stood: date, file and line",
    TIME: "Event time",
    VERDICT: "What became of the record",
    VALID_FROM: "When the version began to be valid, inclusive",
    VALID_TO: "When it ended, exclusive; null while it is valid",
}
"""What is to be said of internal columns."""

Columns = tuple[StructType, Mapping[str, str], tuple[str, ...]]
"""A schema, what is to be said of its columns, and its key."""


def time_description(pipeline: Pipeline, name: str, step: str) -> str:
    """The asset in a sentence or two."""
    if step == "versions":
        table = pipeline.tables[name]
        kept = table.versioned.history_retention if table.versioned else None
        return f"Every value that a key of `{name}` had, and when ({table.event_time}), for as-of reads over {kept}."
    stream = pipeline.streams[name]
    which = f" where {stream.where}" if stream.where else ""
    return f"Records of `{name}`{which}, each once, by {stream.event_time} ({stream.source.format})."


def time_columns(pipeline: Pipeline, name: str, step: str) -> Columns:
    """Columns of the asset."""
    if step == "versions":
        return versions_schema(pipeline.tables[name].spec), NOTES, ()
    return stream_schema(pipeline.streams[name].spec), NOTES, ()


def clock_metadata(batch: Published, name: str, step: str) -> dict[str, Any]:
    """The clock that an asset goes by, after a batch; of a history by event time until when it is settled."""
    if step == "history":
        settled = batch.clocks.get(f"histories/{name}")
        return {} if settled is None else {"settled_until": settled.isoformat()}
    kind = {"versions": "tables", "buffer": "joins", "joined": "joins"}.get(step, "")
    clock = batch.clocks.get(f"{kind}/{name}")
    return {} if clock is None else {"watermark": clock.isoformat()}
