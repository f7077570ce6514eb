"""Lists the tables and stages that a pipeline has."""

from orchestration.config import Pipeline
from storage.lake.layout import (
    QUARANTINE,
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


def state_tables(pipeline: Pipeline) -> list[str]:
    """Every table of a lake that a batch reads or writes, by its name below the lake."""
    of_tables = [table for name in pipeline.tables for table in (changes_of(name), rows_of(name))]
    of_joins = [
        kind(name)
        for name in pipeline.foreign_key_joins
        for kind in (subscription_log_of, subscription_store_of, response_log_of, joined_of, changelog_of)
    ]
    histories = [versions_of(name) for name, table in pipeline.tables.items() if table.versioned]
    of_streams = [*map(records_of, pipeline.streams), *map(joined_of, pipeline.stream_joins)]
    return [QUARANTINE, *of_tables, *histories, *of_joins, *of_streams]


def log_of(pipeline: Pipeline, name: str) -> str:
    """The log of a table's or stream's source records, by its name below the lake."""
    return changes_of(name) if name in pipeline.tables else records_of(name)


def stages_of(pipeline: Pipeline) -> list[str]:
    """Every stage of a batch that commits to a table of data, as its transaction identifiers call it."""
    of_joins = ("subscription_log", "response_log", "changelog", "joined")
    return [
        *[f"{kind}/{name}" for name in pipeline.tables for kind in ("changes", "quarantine")],
        *[f"{kind}/{name}" for name in pipeline.streams for kind in ("records", "quarantine")],
        *[f"{kind}/{name}" for name in pipeline.foreign_key_joins for kind in of_joins],
        *[f"{kind}/{name}" for name in pipeline.stream_joins for kind in ("late", "joined")],
    ]


def bases_of(pipeline: Pipeline) -> dict[str, str]:
    """Every table that a log is folded into, with its log, by their names below the lake."""
    rows = {rows_of(name): changes_of(name) for name in pipeline.tables}
    histories = {
        versions_of(name): changes_of(name) for name, table in pipeline.tables.items() if table.versioned
    }
    stores = {subscription_store_of(name): subscription_log_of(name) for name in pipeline.foreign_key_joins}
    return rows | histories | stores
