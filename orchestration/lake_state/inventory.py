"""Lists the tables and stages that a pipeline has."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from orchestration.config import AnyJoin, Join, Pipeline, StreamJoin
from storage.lake.layout import (
    QUARANTINE,
    changelog_of,
    changes_of,
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
    by_key: bool
    """Whether the rows of the result are kept by key; else it is a log, to which batches only add."""
    bases: Mapping[Callable[[str], str], Callable[[str, str], str]]
    """Those of the tables that a log is folded into, with that log, by the names of the join and its left side."""
    changeable: tuple[str, ...]
    """Settings that may change from one batch to the next, and not within one."""


JOINS_IN_LAKE: Mapping[type[AnyJoin], JoinInLake] = {
    Join: JoinInLake(
        tables=(
            subscription_log_of,
            subscription_store_of,
            left_rows_of,
            response_log_of,
            joined_of,
            changelog_of,
        ),
        stages=("subscription_log", "response_log", "changelog", "joined"),
        by_key=True,
        bases={
            subscription_store_of: lambda join, _: subscription_log_of(join),
            left_rows_of: lambda _, left: changes_of(left),
        },
        changeable=("changelog",),
    ),
    StreamJoin: JoinInLake(
        tables=(joined_of,), stages=("late", "joined"), by_key=False, bases={}, changeable=("late",)
    ),
}


def state_tables(pipeline: Pipeline) -> list[str]:
    """Every table of a lake that a batch reads or writes, by its name below the lake."""
    of_tables = [table for name in pipeline.tables for table in (changes_of(name), rows_of(name))]
    histories = [versions_of(name) for name, table in pipeline.tables.items() if table.versioned]
    of_joins, of_streams = (
        [table(name) for name, kind in _in_lake(joins) for table in kind.tables]
        for joins in (pipeline.joins_of_tables, pipeline.joins_of_streams)
    )
    return [QUARANTINE, *of_tables, *histories, *of_joins, *map(records_of, pipeline.streams), *of_streams]


def tables_of_join(pipeline: Pipeline, name: str) -> list[str]:
    """Every table of a join, by its name below the lake; the result last."""
    tables = [table(name) for table in JOINS_IN_LAKE[type(pipeline.joins[name])].tables]
    return sorted(tables, key=joined_of(name).__eq__)


def results_by_key(pipeline: Pipeline) -> list[str]:
    """The joins whose results are kept by key."""
    return [name for name, kind in _in_lake(pipeline.joins) if kind.by_key]


def log_of(pipeline: Pipeline, name: str) -> str:
    """The log of a table's or stream's source records, by its name below the lake."""
    return changes_of(name) if name in pipeline.tables else records_of(name)


def stages_of(pipeline: Pipeline) -> list[str]:
    """Every stage of a batch that commits to a table of data, as its transaction identifiers call it."""
    joins = pipeline.joins_of_tables | pipeline.joins_of_streams
    return [
        *[f"{kind}/{name}" for name in pipeline.tables for kind in ("changes", "quarantine")],
        *[f"{kind}/{name}" for name in pipeline.streams for kind in ("records", "quarantine")],
        *[f"{stage}/{name}" for name, kind in _in_lake(joins) for stage in kind.stages],
    ]


def bases_of(pipeline: Pipeline) -> dict[str, str]:
    """Every table that a log is folded into, with its log, by their names below the lake."""
    rows = {rows_of(name): changes_of(name) for name in pipeline.tables}
    histories = {
        versions_of(name): changes_of(name) for name, table in pipeline.tables.items() if table.versioned
    }
    stores = {
        base(name): log(name, pipeline.joins[name].left_side)
        for name, kind in _in_lake(pipeline.joins)
        for base, log in kind.bases.items()
    }
    return rows | histories | stores


def _in_lake(joins: Mapping[str, AnyJoin]) -> Iterator[tuple[str, JoinInLake]]:
    return ((name, JOINS_IN_LAKE[type(join)]) for name, join in joins.items())
