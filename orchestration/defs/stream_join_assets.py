"""Describes the steps of the join of a stream for Dagster: `stream → buffer → joined ← history or table`."""

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.column_lineage import origins
from lakejoin.orchestration.defs.time_asset_specs import NOTES, Columns
from lakejoin.storage.lake.layout import joined_of, records_of
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import stream_joined_schema


def steps(pipeline: Pipeline, name: str) -> list[tuple[str, str, str]]:
    """Return the steps of a join: its name, the step, and the table below the lake that stands for it."""
    join = pipeline.joins_of_streams[name]
    buffer = [(name, "buffer", records_of(join.stream))] if join.waits else []
    return [*buffer, (name, "joined", joined_of(name))]


def upstream(pipeline: Pipeline, name: str, step: str) -> list[tuple[str, str]]:
    """What a step reads, as names and steps."""
    join = pipeline.joins_of_streams[name]
    if step == "buffer":
        return [(join.stream, "stream")]
    source = (name, "buffer") if join.waits else (join.stream, "stream")
    versioned = pipeline.tables[join.table].versioned is not None
    return [source, (join.table, "versions" if versioned else "table")]


def description(pipeline: Pipeline, name: str, step: str) -> str:
    """A step in a sentence or two."""
    join = pipeline.joins_of_streams[name]
    if step == "buffer":
        return (
            f"Records of `{join.stream}` that wait until stream time has passed theirs by {join.grace}: a range of the "
            "stream's records, and no table of its own."
        )
    versioned = pipeline.tables[join.table].versioned
    when = "as it was at the record's time" if versioned else "as it was in its batch"
    return (
        f"`{join.stream}` {join.how} join `{join.table}`, {when}: a row for each record, never changed again."
    )


def columns(pipeline: Pipeline, name: str, step: str) -> Columns:
    """Columns of a step."""
    if step == "buffer":
        stream = pipeline.joins_of_streams[name].stream
        return stream_schema(pipeline.streams[stream].spec), NOTES, ()
    spec = pipeline.stream_join_spec(name)
    return stream_joined_schema(spec), {**NOTES, **origins(spec)}, ()
