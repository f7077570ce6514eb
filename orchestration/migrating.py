"""Columns that were added to tables and streams, or got a wider type: the lake gets them, and its state stays as it is.

A value's hash leaves null columns out and is the same for every width of a type, so no row changes, no answer becomes
stale and nothing is computed anew. Rows have null in the new columns until their next change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from orchestration.batch import run_batch
from orchestration.batch_context import Progress, log_of
from orchestration.config import Input, Pipeline
from orchestration.drafts import Drafts
from orchestration.errors import WrongUsage
from orchestration.pending import Group
from orchestration.rebuilding import rebuild_command
from orchestration.recovery import check_progress
from orchestration.shapes import changed_shapes, check_shapes
from orchestration.spark_failures import explained
from storage.errors import ConfigurationChanged
from storage.joined import joined_schema
from storage.journal import Journal
from storage.lake import (
    Lake,
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
from storage.lock import writing
from storage.plan import Published
from storage.schema_changes import add_columns, schema_of, widen_columns
from transforms.responses import response_schema
from transforms.schema_drift import widens
from transforms.schemas import changes_schema, rows_schema
from transforms.stream_table_join import stream_joined_schema
from transforms.streams import stream_schema
from transforms.subscriptions import subscription_schema
from transforms.versions import versions_schema


@dataclass(frozen=True)
class Migrated:
    """Columns that a table of the lake got."""

    table: str
    added: list[str]
    widened: list[str]
    """As `name type`."""

    def __str__(self) -> str:
        """The columns, for people."""
        done = {"added": self.added, "widened": self.widened}
        told = [f"{what} {', '.join(columns)}" for what, columns in done.items() if columns]
        return f"{self.table}: {'; '.join(told)}"


def migrate(
    pipeline: Pipeline, session: Callable[[], SparkSession], *, progress: Progress = lambda _: None
) -> Iterator[Migrated | Published]:
    """Take in columns that are new or wider in the configuration; yields what each table got, then a batch.

    Nothing where no table has such columns. Can be cut off and repeated. Raises `ConfigurationChanged` for any other
    change, `WrongUsage` while a batch is under way.
    """
    lake = Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "migration"):
        journal = Journal(lake)
        grown = _grown(pipeline, journal)
        check_shapes(pipeline, journal, migrated={f"{kind}/{name}/columns" for kind, name in grown})
        check_progress(pipeline, lake, journal)
        if not grown:
            return
        if journal.unfinished is not None:
            raise WrongUsage(
                f"batch {journal.unfinished.batch} is under way, with the columns as they were: undo the change, "
                "`lakejoin run`, then migrate"
            )
        spark = session()
        for _, name in grown:
            _refuse_others(pipeline, spark, lake, pipeline.inputs[name])
        wanted = [found for found in _wanted(pipeline, {name for _, name in grown}) if lake.has(found[0])]
        for table, columns in wanted:
            _refuse_table(pipeline, spark, lake, table, columns)
        for table, columns in wanted:
            done = _migrated(spark, lake, journal, table, columns)
            if done.added or done.widened:
                yield done
        plan = replace(Drafts(pipeline, lake, journal).batch(Group((), ())), kind="migrate")
        journal.write_plan(plan)
        yield run_batch(pipeline, spark, lake, journal, plan, progress=progress)


def _migrated(spark: SparkSession, lake: Lake, journal: Journal, table: str, columns: StructType) -> Migrated:
    path = lake.path(table)
    added = add_columns(spark, path, columns)
    # whatever reads a joined table shall read it afterwards, too
    anew = journal.transaction_apart("widen", table) if table.endswith("/joined") else None
    return Migrated(table, added, widen_columns(spark, path, columns, anew))


def _grown(pipeline: Pipeline, journal: Journal) -> list[tuple[str, str]]:
    """Tables and streams, each with what it is, whose columns are not those that the lake was built with."""
    changed = [name.split("/") for name in changed_shapes(pipeline, journal)]
    return [(kind, name) for kind, name, setting in changed if setting == "columns"]


def _refuse_others(pipeline: Pipeline, spark: SparkSession, lake: Lake, read: Input) -> None:
    """Refuse columns that are gone or have a type that is not a wider one: the rows that there are do not fit them."""
    log = log_of(pipeline, read.name)
    if not lake.has(log):
        return
    stored, declared = schema_of(spark, lake.path(log)), read.spec.columns
    kind = "tables" if read.name in pipeline.tables else "streams"
    gone = [name for name in stored.names if name not in declared.names and not name.startswith("_lj_")]
    wrong = [*[f"{name} is no longer declared" for name in gone], *_others(stored, declared)]
    if wrong:
        problem = pipeline.problem(
            (kind, read.name, "columns"),
            "a lake takes new columns, and wider types: whole numbers with more digits, double for float, a decimal "
            f"with more digits before its point; found: {'; '.join(wrong)}. Undo that, or load the sources into a new "
            "lake",
        )
        raise ConfigurationChanged(str(problem))


def _refuse_table(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, table: str, columns: StructType
) -> None:
    """Refuse what `_refuse_others` does where no log knows it: a join has columns of a table without any record."""
    if wrong := _others(schema_of(spark, lake.path(table)), columns):
        join = table.split("/")[1]
        back = (
            f"put it back, and {rebuild_command(pipeline, join)}"
            if join in pipeline.foreign_key_joins
            else "put it back by another name"
        )
        problem = pipeline.problem(
            ("joins", join),
            f"{lake.path(table)} was made with other columns: {'; '.join(wrong)}. Undo that, or take the join out of "
            f"the file, migrate, {back}",
        )
        raise ConfigurationChanged(str(problem))


def _others(stored: StructType, declared: StructType) -> list[str]:
    """The columns whose type is neither the stored one nor wider, in words."""
    return [
        f"{field.name} is {field.dataType.simpleString()}, was {stored[field.name].dataType.simpleString()}"
        for field in declared
        if field.name in stored.names and not _is_kept(stored[field.name].dataType, field.dataType)
    ]


def _is_kept(stored: DataType, declared: DataType) -> bool:
    if isinstance(stored, StructType) and isinstance(declared, StructType):
        return not _others(stored, declared)
    return stored == declared or widens(stored, declared)


def _wanted(pipeline: Pipeline, names: set[str]) -> Iterator[tuple[str, StructType]]:
    """Every table of the lake that holds values of these tables and streams, with the columns that it should have."""
    for name in names & set(pipeline.tables):
        table = pipeline.tables[name].spec
        yield changes_of(name), changes_schema(table.columns, table.sequence)
        yield rows_of(name), rows_schema(table.columns, table.sequence)
        if table.history_retention is not None:
            yield versions_of(name), versions_schema(table)
    for name in names & set(pipeline.streams):
        yield records_of(name), stream_schema(pipeline.streams[name].spec)
    for name in pipeline.stream_joins:
        yield joined_of(name), stream_joined_schema(pipeline.stream_join_spec(name))
    for name in pipeline.foreign_key_joins:
        join = pipeline.join_spec(name)
        yield subscription_log_of(name), subscription_schema(join)
        yield subscription_store_of(name), subscription_schema(join)
        yield response_log_of(name), response_schema(join)
        yield from ((table, joined_schema(join)) for table in (joined_of(name), changelog_of(name)))
