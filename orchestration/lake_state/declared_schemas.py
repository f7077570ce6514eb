"""Compares the columns that the configuration declares with those of a lake's tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql.types import DataType, StructType

from lakejoin.orchestration.config import AnyJoin, Group, Join, Pipeline, Star, StreamJoin
from lakejoin.orchestration.config.problems import KeyPath
from lakejoin.orchestration.lake_state.active_joins import rebuild_command
from lakejoin.storage.delta_log.snapshot import Snapshot
from lakejoin.storage.delta_table.schema_evolution import schema_of
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.layout import (
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
from lakejoin.transforms.changelog.versions import versions_schema
from lakejoin.transforms.foreign_key_join.emissions import changelog_schema, joined_schema
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT, UNTIL, history_schema
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.foreign_key_join.subscriptions import subscription_schema
from lakejoin.transforms.model.join_sides import left_rows_schema
from lakejoin.transforms.model.result_spec import History, ResultSpec
from lakejoin.transforms.model.schemas import changes_schema, is_internal, rows_schema
from lakejoin.transforms.parsing.schema_drift import widens
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import stream_joined_schema


def tables_of_input(pipeline: Pipeline, name: str) -> Iterator[tuple[str, StructType]]:
    """Yield every table that a table's or stream's source records are kept in, with its columns; the log first."""
    spec = pipeline.inputs[name].spec
    if name in pipeline.streams:
        yield records_of(name), stream_schema(spec)
        return
    yield changes_of(name), changes_schema(spec.columns, spec.sequence)
    yield rows_of(name), rows_schema(spec.columns, spec.sequence)
    if spec.history_retention is not None:
        yield versions_of(name), versions_schema(spec)


def tables_of_join(pipeline: Pipeline, name: str) -> Iterator[tuple[str, StructType]]:
    """Yield every table of a join with its columns; of its logs those that hold values of its sides."""
    return _TABLES[type(pipeline.joins[name])](pipeline, name)


def _of_foreign_keys(pipeline: Pipeline, name: str) -> Iterator[tuple[str, StructType]]:
    join = pipeline.join_spec(name)
    for part in join.parts:
        yield subscription_log_of(part.name), subscription_schema(part)
        yield subscription_store_of(part.name), subscription_schema(part)
        if join.left in pipeline.tables:
            left = pipeline.tables[join.left].spec
            yield left_rows_of(part.name), left_rows_schema(part, rows_schema(left.columns, left.sequence))
        yield response_log_of(part.name), response_schema(part)
    yield from _result(join)


def _of_groups(pipeline: Pipeline, name: str) -> Iterator[tuple[str, StructType]]:
    group = pipeline.group_spec(name)
    for part in () if group.adjusts else group.parts:
        yield subscription_log_of(part.name), subscription_schema(part)
        yield subscription_store_of(part.name), subscription_schema(part)
    yield from _result(group)


def _result(join: ResultSpec) -> Iterator[tuple[str, StructType]]:
    yield changelog_of(join.name), changelog_schema(join)
    yield history_of(join.name), history_schema(join)
    yield joined_of(join.name), joined_schema(join)


def _of_stream_join(pipeline: Pipeline, name: str) -> Iterator[tuple[str, StructType]]:
    yield joined_of(name), stream_joined_schema(pipeline.stream_join_spec(name))


_TABLES: Mapping[type[AnyJoin], Callable[[Pipeline, str], Iterator[tuple[str, StructType]]]] = {
    Join: _of_foreign_keys,
    Star: _of_foreign_keys,
    StreamJoin: _of_stream_join,
    Group: _of_groups,
}


def misfits(stored: StructType, declared: StructType, *, within: bool) -> list[str]:
    """Say which columns of a table are gone, or have a type that is neither what it was nor a wider one.

    `within`: whether a type may be a wider one for what is in it, as that of a key is. In a declared column it may not:
    the hash of a value is made of its text, which another type writes otherwise.
    """
    gone = [name for name in stored.names if name not in declared.names and not is_internal(name)]
    types = [(f.name, stored[f.name].dataType, f.dataType) for f in declared if f.name in stored.names]
    return [
        *[f"{name} is no longer declared" for name in gone],
        *[
            f"{name} is {wanted.simpleString()}, was {found.simpleString()}"
            for name, found, wanted in types
            if not _fits(found, wanted, within=within)
        ],
    ]


def _fits(stored: DataType, declared: DataType, *, within: bool) -> bool:
    if within and isinstance(stored, StructType) and isinstance(declared, StructType):
        return stored.names == declared.names and not misfits(stored, declared, within=True)
    return stored.simpleString() == declared.simpleString() or widens(stored, declared)


def check_histories(pipeline: Pipeline, snapshots: Mapping[str, Snapshot]) -> None:
    """Refuse a history that is to mark its current versions and does not, or the other way round: it would begin anew.

    Likewise one that is to go by another time than it does. `snapshots`: tables of the lake. Raises
    `ConfigurationChanged`.
    """
    for name, join in pipeline.joins.items():
        wanted, stored = join.history_spec, snapshots.get(history_of(name))
        if wanted is None or stored is None:
            continue
        columns = schema_of(stored.delta).names
        if changed := _otherwise(wanted, columns):
            what, was = changed
            message = (
                f"{what} changed, and {pipeline.lake}/{history_of(name)} {was}; undo that, or compute the "
                f"result anew, and its history begins anew, too: {rebuild_command(pipeline, [name])}"
            )
            problem = pipeline.problem((pipeline.section_of(name), name, "history"), message)
            raise ConfigurationChanged(str(problem))


def _otherwise(wanted: History, columns: Sequence[str]) -> tuple[str, str] | None:
    """Which setting of a history its table was not made with, and how it was; None where it was made so."""
    if wanted.by_event_time != (UNTIL not in columns):
        return "as_of", f"goes by {'batches' if wanted.by_event_time else 'event time'}"
    if wanted.marks_current != (IS_CURRENT in columns):
        return IS_CURRENT, f"has {'no such column' if wanted.marks_current else 'that column'}"
    return None


def check_partitions(pipeline: Pipeline, snapshots: Mapping[str, Snapshot]) -> None:
    """Refuse a table of a result that has other partitions than declared: its files would all be written anew.

    `snapshots`: tables of the lake. Raises `ConfigurationChanged`.
    """
    for name, join in pipeline.joins.items():
        for table, declared in ((joined_of(name), join.declared), (history_of(name), join.declared_history)):
            snapshot = snapshots.get(table)
            found = tuple(snapshot.delta.metadata().partition_columns) if snapshot else declared.partition_by
            if found == declared.partition_by:
                continue
            way = (
                f"compute the result anew: {rebuild_command(pipeline, [name])}"
                if name in pipeline.rebuildable
                else "give the join another name"
            )
            was = f"is partitioned by {', '.join(found)}" if found else "has no partitions"
            message = f"changed, and {pipeline.lake}/{table} {was}; undo that, or {way}"
            place = (pipeline.section_of(name), name, *["history"] * (table == history_of(name)))
            problem = pipeline.problem((*place, "materialized", "partition_by"), message)
            raise ConfigurationChanged(str(problem))


def check_types(pipeline: Pipeline, snapshots: Mapping[str, Snapshot]) -> None:
    """Refuse declared types that are narrower than those of the tables, as an interrupted `migrate` leaves them.

    `snapshots`: tables of the lake. Raises `ConfigurationChanged` with every column.
    """
    declared: dict[str, tuple[KeyPath, StructType]] = {
        joined_of(name): ((pipeline.section_of(name), name), pipeline.spec_of_join(name).columns)
        for name in pipeline.joins
    }
    for name, read in pipeline.inputs.items():
        path = (pipeline.section_of(name), name, "columns")
        declared |= {table: (path, read.spec.columns) for table, _ in tables_of_input(pipeline, name)}
    found = {
        f"{name} has type {stored.simpleString()} in {pipeline.lake}/{table}, and not {wanted.simpleString()}": path
        for table, (path, columns) in declared.items()
        if table in snapshots
        for name, wanted, stored in _narrower(columns, schema_of(snapshots[table].delta))
    }
    if found:
        way = (
            "the lake was to get wider types, which was cut off, and they were undone since. Declare the wider ones, "
            f"then end it: `lakejoin migrate {pipeline.path}`"
        )
        told = [str(pipeline.problem(path, f"{what}: {way}")) for what, path in found.items()]
        raise ConfigurationChanged(*told)


def _narrower(declared: StructType, stored: StructType) -> Iterator[tuple[str, DataType, DataType]]:
    for field in declared:
        if field.name in stored.names and widens(field.dataType, stored[field.name].dataType):
            yield field.name, field.dataType, stored[field.name].dataType
