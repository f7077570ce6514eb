"""Lists the tables and stages that a pipeline has."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.storage.lake.layout import (
    QUARANTINE,
    changelog_of,
    changes_of,
    history_of,
    joined_of,
    left_rows_of,
    records_of,
    response_log_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
    versions_of,
)


@dataclass(frozen=True)
class JoinInLake:
    """What a kind of join has in a lake."""

    tables: tuple[Callable[[str], str], ...]
    """Its tables, by the functions that name them."""
    stages: tuple[str, ...]
    """The stages of a batch that commit to tables of data, as transaction identifiers call them."""
    tables_of_part: tuple[Callable[[str], str], ...]
    """The tables of its join with each right side, likewise."""
    stages_of_part: tuple[str, ...]
    by_key: bool
    """Whether the rows of the result are kept by key; else it is a log, to which batches only add."""
    bases: Mapping[Callable[[str], str], Callable[[str, str], str]]
    """Those of a part's tables that a log is folded into, with that log, by the names of the part and its left side."""
    changeable: tuple[str, ...]
    """Settings that may change from one batch to the next, and not within one."""


_OF_TABLES = JoinInLake(
    tables=(joined_of, changelog_of, history_of),
    stages=("changelog", "joined", "history"),
    tables_of_part=(subscription_log_of, subscription_store_of, left_rows_of, response_log_of),
    stages_of_part=("subscription_log", "response_log"),
    by_key=True,
    bases={
        subscription_store_of: lambda part, _: subscription_log_of(part),
        left_rows_of: lambda _, left: changes_of(left),
    },
    changeable=("changelog", "history"),
)
_OF_STREAM = JoinInLake(
    tables=(joined_of,), stages=("late", "joined"), tables_of_part=(), stages_of_part=(), by_key=False, bases={},
    changeable=("late",),
)  # fmt: skip
_OF_GROUPS = replace(
    _OF_TABLES,
    tables_of_part=(subscription_log_of, subscription_store_of),
    stages_of_part=("subscription_log",),
    bases={subscription_store_of: lambda part, _: subscription_log_of(part)},
)
JOINS_IN_LAKE: Mapping[type[AnyJoin], JoinInLake] = {
    Join: _OF_TABLES, Star: _OF_TABLES, StreamJoin: _OF_STREAM, Group: _OF_GROUPS
}  # fmt: skip


def state_tables(pipeline: Pipeline) -> list[str]:
    """Every table of a lake that a batch reads or writes, by its name below the lake."""
    of_tables = [table for name in pipeline.tables for table in (changes_of(name), rows_of(name))]
    histories = [versions_of(name) for name, table in pipeline.tables.items() if table.versioned]
    of_joins, of_streams = (
        [table for join in joins.values() for table in _tables(join)]
        for joins in (pipeline.kept_by_key, pipeline.joins_of_streams)
    )
    return [QUARANTINE, *of_tables, *histories, *of_joins, *map(records_of, pipeline.streams), *of_streams]


def tables_of_join(pipeline: Pipeline, name: str) -> list[str]:
    """Every table of a join, by its name below the lake; the result last."""
    return sorted(_tables(pipeline.joins[name]), key=joined_of(name).__eq__)


def _tables(join: AnyJoin) -> list[str]:
    kind = JOINS_IN_LAKE[type(join)]
    of_parts = [table(part) for part in join.part_names for table in kind.tables_of_part]
    return [*of_parts, *[table(join.name) for table in kind.tables]]


def tables_by_key(pipeline: Pipeline) -> dict[str, str]:
    """The tables in which batches replace rows, each with the name of its result."""
    return {
        table(name): name
        for name, join in pipeline.joins.items()
        if JOINS_IN_LAKE[type(join)].by_key
        for table in (joined_of, history_of)
    }


def log_of(pipeline: Pipeline, name: str) -> str:
    """The log of a table's or stream's source records, by its name below the lake."""
    return changes_of(name) if name in pipeline.tables else records_of(name)


def stages_of(pipeline: Pipeline) -> list[str]:
    """Every stage of a batch that commits to a table of data, as its transaction identifiers call it."""
    joins = pipeline.kept_by_key | pipeline.joins_of_streams
    return [
        *[f"{kind}/{name}" for name in pipeline.tables for kind in ("changes", "quarantine")],
        *[f"{kind}/{name}" for name in pipeline.streams for kind in ("records", "quarantine")],
        *[stage for join in joins.values() for stage in _stages(join)],
    ]


def _stages(join: AnyJoin) -> list[str]:
    kind = JOINS_IN_LAKE[type(join)]
    of_parts = [f"{stage}/{part}" for part in join.part_names for stage in kind.stages_of_part]
    return [*of_parts, *[f"{stage}/{join.name}" for stage in kind.stages]]


def bases_of(pipeline: Pipeline) -> dict[str, str]:
    """Every table that a log is folded into, with its log, by their names below the lake."""
    rows = {rows_of(name): changes_of(name) for name in pipeline.tables}
    histories = {
        versions_of(name): changes_of(name) for name, table in pipeline.tables.items() if table.versioned
    }
    stores = {
        base(part): log(part, join.left_side)
        for join in pipeline.joins.values()
        for part in join.part_names
        for base, log in JOINS_IN_LAKE[type(join)].bases.items()
    }
    return rows | histories | stores
