"""Joins that begin anew from the rows of their tables, though the lake has them already."""

from collections.abc import Collection

from orchestration.config import Pipeline
from orchestration.errors import WrongUsage, unknown
from storage.lake.layout import (
    Lake,
    changelog_of,
    joined_of,
    response_log_of,
    subscription_log_of,
    subscription_store_of,
)


def joins_to_rebuild(pipeline: Pipeline, names: Collection[str]) -> tuple[str, ...]:
    """Return these joins and every join over one of them, left sides first.

    Raises `WrongUsage` for a name that is no join of two tables.
    """
    for name in names:
        if name in pipeline.stream_joins:
            raise WrongUsage(
                f"{name} joins a stream, and what it met when its records came is no longer known: the history of its "
                "table reaches back no further than its retention. Give the join another name: it then begins with "
                "the records of the stream as they can be joined today."
            )
        if name not in pipeline.foreign_key_joins:
            raise unknown("join", name, pipeline.foreign_key_joins)
    found: set[str] = set()
    for name, join in pipeline.foreign_key_joins.items():  # left sides come first
        if name in names or join.left in found:
            found.add(name)
    return tuple(name for name in pipeline.foreign_key_joins if name in found)


def tables_of_join(name: str) -> list[str]:
    """Every table of a foreign-key join, by its name below the lake; the result last."""
    kinds = (subscription_log_of, subscription_store_of, response_log_of, changelog_of, joined_of)
    return [kind(name) for kind in kinds]


def join_remains(lake: Lake, name: str) -> bool:
    """Whether the lake has tables of a join, kept or not."""
    return bool(lake.versions(tables_of_join(name)))


def rebuild_command(pipeline: Pipeline, names: Collection[str]) -> str:
    """The command that computes joins of tables anew; of a join and one over it, it names the first."""
    anew = joins_to_rebuild(pipeline, names)
    first = [name for name in anew if pipeline.foreign_key_joins[name].left not in anew]
    return f"`lakejoin run {pipeline.path}{''.join(f' --rebuild {name}' for name in first)}`"
