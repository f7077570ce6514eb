"""Columns that were added to tables and streams: the lake gets them, and the state goes on as it is.

A value's hash leaves null columns out, so no row changes, no answer becomes stale and nothing is computed anew. Rows
have null in the new columns until their next change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from orchestration.batch import run_batch
from orchestration.batch_context import Progress, log_of
from orchestration.config import Input, Pipeline
from orchestration.drafts import Drafts
from orchestration.errors import WrongUsage
from orchestration.pending import Group
from orchestration.recovery import changed_shapes, check_progress, check_shapes
from storage.errors import ConfigurationChanged
from storage.lake import Lake, changelog_of, changes_of, joined_of, records_of, rows_of, versions_of
from storage.lock import writing
from storage.plan import Journal, Published
from storage.schema_changes import add_columns, columns_of


@dataclass(frozen=True)
class Added:
    """Columns that a table of the lake got."""

    table: str
    columns: list[str]


def migrate(
    pipeline: Pipeline, session: Callable[[], SparkSession], *, progress: Progress = lambda _: None
) -> Iterator[Added | Published]:
    """Add the columns that are new in the configuration; yields what each table got, and the batch that records it.

    Nothing where no table has new columns. Can be cut off and repeated. Raises `ConfigurationChanged` for any other
    change, `WrongUsage` while a batch is under way.
    """
    lake = Lake(pipeline.lake)
    with writing(lake):
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
        for table, columns in _wanted(pipeline, {name for _, name in grown}):
            if lake.has(table) and (names := add_columns(spark, lake.path(table), columns)):
                yield Added(table, names)
        plan = replace(Drafts(pipeline, lake, journal).batch(Group((), ())), kind="migrate")
        journal.write_plan(plan)
        yield run_batch(pipeline, spark, lake, journal, plan, progress=progress)


def _grown(pipeline: Pipeline, journal: Journal) -> list[tuple[str, str]]:
    """Tables and streams, each with what it is, whose columns are not those that the lake was built with."""
    changed = [name.split("/") for name in changed_shapes(pipeline, journal)]
    return [(kind, name) for kind, name, setting in changed if setting == "columns"]


def _refuse_others(pipeline: Pipeline, spark: SparkSession, lake: Lake, read: Input) -> None:
    """Refuse columns that are gone or have another type: the rows that there are do not fit them."""
    log = log_of(pipeline, read.name)
    if not lake.has(log):
        return
    stored = columns_of(spark, lake.path(log))
    declared = {field.name: field.dataType.simpleString() for field in read.spec.columns}
    kind = "tables" if read.name in pipeline.tables else "streams"
    gone = [name for name in stored if name not in declared and not name.startswith("_lj_")]
    others = [
        f"{name} is {declared[name]}, was {stored[name]}"
        for name in declared
        if stored.get(name, declared[name]) != declared[name]
    ]
    wrong = [*[f"{name} is no longer declared" for name in gone], *others]
    if wrong:
        problem = pipeline.problem(
            (kind, read.name, "columns"),
            f"only new columns can be added to a lake; found: {'; '.join(wrong)}. Undo that, or load the sources into "
            "a new lake",
        )
        raise ConfigurationChanged(str(problem))


def _wanted(pipeline: Pipeline, names: set[str]) -> Iterator[tuple[str, StructType]]:
    """Every table of the lake that holds columns of these tables and streams, with the columns that it should have."""
    for name in names:
        columns = pipeline.inputs[name].spec.columns
        tables = [changes_of(name), rows_of(name), versions_of(name), records_of(name)]
        yield from ((table, columns) for table in tables)
    for join in pipeline.joins:
        columns = pipeline.spec_of_join(join).columns
        yield from ((table, columns) for table in (joined_of(join), changelog_of(join)))
