"""Repairs a lake: finds what is damaged, and computes tables anew from the logs that the lake keeps of its input.

A table's folded bases come from its changes, and every table of a join from the rows of its two sides. The changes
themselves, the records of a stream and the plan cannot be made from anything that the lake has.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.run_batch import run_batch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import unknown
from lakejoin.orchestration.lake_state.active_joins import joins_to_rebuild, new_joins
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.fold_progress import finished_state, folded_ahead
from lakejoin.orchestration.lake_state.inventory import bases_of, state_tables, tables_of_join
from lakejoin.orchestration.lake_state.log_checks import settle_logs
from lakejoin.orchestration.lake_state.preflight import check_progress, snapshots_of, wrong_stages
from lakejoin.orchestration.lake_state.sql_checks import check_expressions
from lakejoin.orchestration.maintenance.folds import fold
from lakejoin.orchestration.planning.plan_builder import PlanBuilder, under_way
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.errors import LakeInconsistent, remedy
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changes_of, is_base, rows_of, versions_of
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Plan, Published
from lakejoin.storage.state.damage import damages, set_aside


@dataclass(frozen=True)
class Damage:
    """Something wrong with a table of a lake."""

    table: str
    """Its name below the lake."""
    what: str
    name: str | None
    """The table or join that `repair` has to be told to mend it; None where nothing in the lake can."""


@dataclass(frozen=True)
class Moved:
    """A table that was put out of the way."""

    table: str
    to: str

    def __str__(self) -> str:
        """The move, for people."""
        return f"moved {self.table} to {self.to}"


def examine(pipeline: Pipeline) -> list[Damage]:
    """Look at every table of a lake, without reading rows and without a JVM. Raises where the plan is damaged."""
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    mendable = {base: base.split("/")[1] for base in bases_of(pipeline)}
    mendable |= {table: name for name in pipeline.rebuildable for table in tables_of_join(pipeline, name)}
    found: list[Damage] = []
    for table in filter(lake.has, state_tables(pipeline)):
        found += [Damage(table, what, mendable.get(table)) for what in damages(lake.path(table))]
    unreadable = {damage.table for damage in found}
    snapshots = snapshots_of(pipeline, lake, journal, beside=unreadable)
    for base, through in folded_ahead(journal, snapshots):
        what = (
            f"folded up to batch {through}, expected {len(journal.published)} at most: restored or replaced"
        )
        found.append(Damage(base, what, mendable[base]))
    for stage, done, expected in wrong_stages(pipeline, journal, snapshots):
        if journal.table_of(stage) in unreadable:
            continue
        what = f"done up to batch {done}, expected {expected}: restored, replaced or removed"
        found.append(Damage(journal.table_of(stage), what, mendable.get(journal.table_of(stage))))
    return found


def repair(
    pipeline: Pipeline,
    session: Callable[[], SparkSession],
    names: Collection[str],
    *,
    progress: Progress = lambda _: None,
) -> Iterator[Moved | Published]:
    """Compute the named tables and joins anew, and the joins over these; yields what is moved and each batch.

    A batch under way is finished first, without the joins. No new input is read. Raises `WrongUsage` for an unknown
    name, and `LakejoinError`s as a run does.
    """
    tables = [name for name in names if name in pipeline.tables]
    known = [*pipeline.tables, *pipeline.joins]
    for name in names:
        if name not in known:
            raise unknown("table or join", name, known)
    rebuilt = joins_to_rebuild(pipeline, [name for name in names if name not in tables])
    lake = Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "repair"):
        journal = Journal(lake)
        check_shapes(pipeline, journal, rebuilt)
        bases = [base for name in tables for base in (rows_of(name), versions_of(name))]
        going = [*filter(lake.has, bases), *_unusable(pipeline, lake, journal, rebuilt)]
        settle_logs(pipeline, lake, beside=going)
        _check_changes(lake, tables)
        spark, now = session(), datetime.now(UTC)
        for table in going:
            yield Moved(table, set_aside(spark, lake, table, now))
        check_progress(pipeline, lake, journal, rebuilt)
        check_expressions(pipeline, spark)
        for plan in _plans(pipeline, lake, journal, rebuilt):
            yield run_batch(pipeline, spark, lake, journal, plan, progress=progress)
        for base in [table for table in going if table in bases]:
            progress(f"fold/{base}")
            state = finished_state(pipeline, lake, journal, now)
            fold(pipeline, spark, lake, journal, state, base)


def _check_changes(lake: Lake, tables: Collection[str]) -> None:
    """See that there is what bases are made anew from, before these, which may be sound, are moved."""
    for name in tables:
        log = changes_of(name)
        based = any(map(lake.has, (rows_of(name), versions_of(name))))
        wrong = next(damages(lake.path(log)), None) if lake.has(log) else "it is gone" if based else None
        if wrong is not None:
            raise LakeInconsistent(
                f"{lake.path(log)}: {wrong}; expected it whole, for what {name} has is made anew from it. Nothing was "
                f"moved. {remedy(log)}"
            )


def _unusable(pipeline: Pipeline, lake: Lake, journal: Journal, joins: Collection[str]) -> Iterator[str]:
    """Tables of joins that cannot be written over: damaged, or with commits of batches that are still to come."""
    for name in joins:
        for table in filter(lake.has, tables_of_join(pipeline, name)):
            if any(damages(lake.path(table))) or _is_ahead(lake, journal, table):
                yield table


def _is_ahead(lake: Lake, journal: Journal, table: str) -> bool:
    snapshot = lake.snapshot(table)
    if snapshot is None:
        return False
    if is_base(table):
        return any(folded_ahead(journal, {table: snapshot}))
    _, name, kind = table.split("/")
    committed = snapshot.transaction(journal.application(f"{kind}/{name}"))
    return committed is not None and committed > len(journal.plans)


def _plans(pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str]) -> Iterator[Plan]:
    yield from under_way(pipeline, lake, journal, rebuilt)
    joins = new_joins(pipeline, lake, journal, rebuilt)
    plan = PlanBuilder(pipeline, lake, journal).bootstrap(joins, "repair")
    journal.write_plan(plan)
    yield plan
