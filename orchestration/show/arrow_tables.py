"""Tells which tables of a lake can be read as Arrow without a JVM, by the names that they are shown by."""

from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.layout import (
    QUARANTINE,
    changelog_of,
    changes_of,
    history_of,
    joined_of,
    records_of,
    shown_name,
)
from lakejoin.storage.state.arrow_rows import ArrowRows, current_rows, stored, table_versions
from lakejoin.transforms.foreign_key_join.emissions import changelog_schema, joined_schema
from lakejoin.transforms.foreign_key_join.history import history_schema
from lakejoin.transforms.model.schemas import QUARANTINE_SCHEMA, VERDICT, changes_schema
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import stream_joined_schema


def arrow_tables(pipeline: Pipeline) -> dict[str, ArrowRows]:
    """Return them, results first: joins and groups, with what is kept of them; then tables and streams."""
    found: dict[str, ArrowRows] = {}
    for name in pipeline.joins:
        found |= _of_result(pipeline, name)
    for name, table in pipeline.tables.items():
        spec = table.spec
        found[name] = current_rows(spec)
        found[f"{name}.changes"] = stored(changes_of(name), changes_schema(spec.columns, spec.sequence))
        if table.versioned:
            found[f"{name}.versions"] = table_versions(spec)
    for name, stream in pipeline.streams.items():
        schema = stream_schema(stream.spec)
        found[name] = stored(records_of(name), schema, f"{VERDICT} = 'applied'")
        found[f"{name}.records"] = stored(records_of(name), schema)
    return {**found, QUARANTINE: stored(QUARANTINE, QUARANTINE_SCHEMA)}


def _of_result(pipeline: Pipeline, name: str) -> dict[str, ArrowRows]:
    if name in pipeline.joins_of_streams:
        return {name: stored(joined_of(name), stream_joined_schema(pipeline.stream_join_spec(name)))}
    result = pipeline.keyed_spec(name)
    found = {name: stored(joined_of(name), joined_schema(result))}
    if result.changelog:
        table = changelog_of(name)
        found[shown_name(table)] = stored(table, changelog_schema(result))
    if result.history is not None:
        table = history_of(name)
        found[shown_name(table)] = stored(table, history_schema(result))
    return found
