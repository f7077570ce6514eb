"""Migrates a lake to columns that were added to tables and streams, or got a wider type; its state stays as it is.

A value's hash leaves null columns out and is the same for every width of a type, so no row changes, no answer becomes
stale and nothing is computed anew. Rows have null in the new columns until their next change.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.run_batch import run_batch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.active_joins import joins_to_rebuild, kept_joins, rebuild_command
from lakejoin.orchestration.lake_state.config_fingerprints import changed_shapes, check_shapes
from lakejoin.orchestration.lake_state.declared_schemas import misfits, tables_of_input, tables_of_join
from lakejoin.orchestration.lake_state.fold_progress import folded_through
from lakejoin.orchestration.lake_state.inventory import log_of
from lakejoin.orchestration.lake_state.preflight import check_progress
from lakejoin.orchestration.planning.plan_builder import PlanBuilder, under_way
from lakejoin.orchestration.runs.widened_expressions import joins_that_see_types
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.delta_log.snapshot import Snapshot
from lakejoin.storage.delta_table.schema_evolution import schema_of, take_columns
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changelog_of, history_of, is_base
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Plan, Published


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


@dataclass(frozen=True)
class LeftOut:
    """Joins that stay as they are, and are no longer kept up to date, until they are computed anew."""

    joins: list[str]
    command: str
    seen: tuple[str, ...] = ()
    """Those of them that may have other values by the wider types."""

    def __str__(self) -> str:
        """The joins and what to do, for people."""
        why = f" (by the wider types {', '.join(self.seen)} may have other values)" if self.seen else ""
        return f"{', '.join(self.joins)}: left as before{why}, to be computed anew: {self.command}"


def migrate(
    pipeline: Pipeline, session: Callable[[], SparkSession], *, progress: Progress = lambda _: None
) -> Iterator[Migrated | Published | LeftOut]:
    """Take in columns that are new or wider in the configuration; yields what each table got, then a batch.

    A join of tables that changed in another way, too, or whose foreign key has other values by the wider types, is left
    out, and named at the end. Without such columns nothing
    is done, except that an interrupted migration gets its batch. Can be interrupted and repeated. Raises
    `ConfigurationChanged` for any other change, `WrongUsage` while a batch is under way.
    """
    lake = Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "migration"):
        journal = Journal(lake)
        changed = changed_shapes(pipeline, journal)
        columns = [place for place in changed if place.endswith("/columns")]
        grown = [place.split("/")[1] for place in columns]
        others = {place.split("/")[1] for place in changed} & pipeline.rebuildable.keys()
        anew = joins_to_rebuild(pipeline, others) if grown else ()
        check_shapes(pipeline, journal, anew, migrated=columns)
        _check_inputs(pipeline, lake, grown)
        kept = [name for name in kept_joins(pipeline, journal) if name in pipeline.joins]
        if grown:
            anew = joins_to_rebuild(
                pipeline, others | _misfits(pipeline, lake, journal, set(kept) - set(anew))
            )
        check_progress(pipeline, lake, journal, anew)
        if not grown:
            yield from _ended(pipeline, session, lake, journal, progress)
            return
        if journal.unfinished is not None:
            raise WrongUsage(
                f"batch {journal.unfinished.batch} is under way, with the columns as they were: undo the change, "
                f"`lakejoin run {pipeline.path}`, then migrate"
            )
        spark = session()
        seen = joins_that_see_types(pipeline, spark, lake, journal, set(kept) - set(anew), grown)
        anew = joins_to_rebuild(pipeline, {*anew, *seen})
        tables = [found for name in grown for found in tables_of_input(pipeline, name)]
        tables += [found for name in kept if name not in anew for found in tables_of_join(pipeline, name)]
        for table, wanted in tables:
            if lake.has(table):
                yield from _migrated(spark, lake, journal, table, wanted)
        plan = PlanBuilder(pipeline, lake, journal).migrate(anew)
        journal.write_plan(plan)
        yield run_batch(pipeline, spark, lake, journal, plan, progress=progress)
        yield from (replace(left, seen=tuple(sorted(seen))) for left in _left_out(pipeline, kept, plan))


def _ended(
    pipeline: Pipeline, session: Callable[[], SparkSession], lake: Lake, journal: Journal, progress: Progress
) -> Iterator[Published | LeftOut]:
    """The batch of a migration that was interrupted after the tables had got their columns."""
    if journal.unfinished is not None and journal.unfinished.kind == "migrate":
        before = journal.kept
        for plan in under_way(pipeline, lake, journal):
            yield run_batch(pipeline, session(), lake, journal, plan, progress=progress)
            yield from _left_out(pipeline, before, plan)


def _left_out(pipeline: Pipeline, before: Collection[str], plan: Plan) -> Iterator[LeftOut]:
    """Joins that can be computed anew, were kept before a plan, and are not from it on."""
    if left := [name for name in pipeline.rebuildable if name in before and name not in plan.joins]:
        yield LeftOut(left, rebuild_command(pipeline, left))


def _migrated(
    spark: SparkSession, lake: Lake, journal: Journal, table: str, columns: StructType
) -> Iterator[Migrated]:
    # whatever reads a result shall read it afterwards, too
    anew = journal.transaction_apart("widen", table) if table.endswith(("/joined", "/history")) else None
    done = Migrated(table, *take_columns(spark, lake.path(table), columns, anew))
    if done.added or done.widened:
        yield done


def _check_inputs(pipeline: Pipeline, lake: Lake, names: list[str]) -> None:
    """Refuse columns that are gone or have a type that is not a wider one: the rows that there are do not fit them."""
    for name in names:
        log, declared = lake.snapshot(log_of(pipeline, name)), pipeline.inputs[name].spec.columns
        if log is not None and (wrong := misfits(schema_of(log.delta), declared, within=False)):
            problem = pipeline.problem(
                (pipeline.section_of(name), name, "columns"),
                "a lake takes new columns, and wider types, though not within structs, arrays and maps: whole numbers "
                "with more digits, double for float, a decimal with more digits before its point; found: "
                f"{'; '.join(wrong)}. Undo that, or load the sources into a new lake",
            )
            raise ConfigurationChanged(str(problem))


def _misfits(pipeline: Pipeline, lake: Lake, journal: Journal, joins: set[str]) -> set[str]:
    """The joins with columns of a table without any record, of which no log knows that they were other ones.

    Raises `ConfigurationChanged` for a join that cannot be computed anew.
    """
    found = dict[str, list[str]]()
    for name in joins:
        for table, columns in tables_of_join(pipeline, name):
            snapshot = lake.snapshot(table)
            if snapshot is None or _is_of_before(pipeline, journal, name, snapshot):
                continue
            if wrong := misfits(schema_of(snapshot.delta), columns, within=True):
                found[name] = wrong
    for name in found.keys() - pipeline.rebuildable.keys():
        problem = pipeline.problem(
            ("joins", name),
            f"{lake.path(f'joins/{name}')} was made with other columns: {'; '.join(found[name])}. Undo that, or give "
            "the join another name",
        )
        raise ConfigurationChanged(str(problem))
    return set(found)


def _is_of_before(pipeline: Pipeline, journal: Journal, join: str, table: Snapshot) -> bool:
    """Whether a table of a join is one that it does not use: what it keeps no more, a store of what it was."""
    if table.table == changelog_of(join):
        return not pipeline.spec_of_join(join).changelog
    if table.table == history_of(join):
        return pipeline.spec_of_join(join).history is None
    through = folded_through(journal, table) if is_base(table.table) else None
    return through is not None and through < journal.begun.get(join, 0)
