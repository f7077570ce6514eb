"""Gives up a batch that cannot be finished any more, because what it was planned to read is gone."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.batch.join_stages import JOIN_STAGES
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.active_joins import joins_to_rebuild, still_wanted
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.inventory import state_tables, tables_of_join
from lakejoin.orchestration.lake_state.log_checks import settle_logs
from lakejoin.orchestration.lake_state.preflight import (
    check_progress,
    giving_up,
    giving_up_begun,
    snapshots_of,
    stages_done,
)
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.delta_table.commits import remove_batch
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of, joined_of
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Plan, Published
from lakejoin.storage.state.damage import set_aside
from lakejoin.storage.state.result_histories import take_back


def abandon(
    pipeline: Pipeline, session: Callable[[], SparkSession], *, progress: Progress = lambda _: None
) -> Iterator[Published]:
    """Give up the batch under way, as if its input had never been seen; yields it, and a batch that mends joins.

    What the batch wrote into logs is removed. A joined table that it changed already begins anew from the rows as they
    were before. Files of the batch that are still there wait for the next run. Raises `WrongUsage` where no batch is
    under way.
    """
    lake = Lake(pipeline.lake)
    with writing(lake), explained(pipeline, "repair"):
        settle_logs(pipeline, lake)
        journal = Journal(lake)
        plan = journal.unfinished
        if plan is None:
            raise WrongUsage(
                f"{lake.root}: no batch is under way; a finished one is corrected by its records' later changes, or, "
                "for a file that was exported again, by `lakejoin run FILE --replace`"
            )
        if plan.kind == "migrate":
            raise WrongUsage(
                f"{lake.root}: batch {plan.batch}, which is under way, takes in columns and reads no input that could "
                f"be gone: `lakejoin migrate {pipeline.path}` ends it"
            )
        check_shapes(pipeline, journal)
        still_wanted(pipeline, plan)
        check_progress(pipeline, lake, journal)
        spark = session()
        published, anew = give_up(pipeline, spark, lake, journal, plan, progress=progress)
        yield published
    if anew:
        yield from run_batches(pipeline, spark, rebuild=anew, batches=1, progress=progress)


def give_up(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, plan: Plan, *, progress: Progress
) -> tuple[Published, tuple[str, ...]]:
    """Take back what the batch under way wrote; return it as it is published, and the joins that must begin anew.

    The lake is held, and was checked.
    """
    done = stages_done(pipeline, journal, plan, snapshots_of(pipeline, lake, journal))
    touched = [
        name for name in pipeline.rebuildable if not {f"joined/{name}", f"history/{name}"}.isdisjoint(done)
    ]
    begun = [name for name in plan.bootstrap if name in pipeline.rebuildable]
    anew = joins_to_rebuild(pipeline, {*touched, *begun})
    lasting = pipeline.joins.keys() - pipeline.rebuildable.keys()
    others_begun = [joined_of(name) for name in plan.bootstrap if name in lasting]
    for table in filter(lake.has, others_begun):
        set_aside(spark, lake, table, datetime.now(UTC))
    others = {journal.table_of(stage) for stage in done} - {*map(joined_of, anew), *others_begun}
    histories = set(map(history_of, pipeline.joins))
    for table in sorted(others):
        progress(f"remove/{table}")
        given_up = journal.transaction(giving_up(table), plan.batch)
        if table in histories:
            of_begun = journal.transaction(giving_up_begun(table), plan.batch)
            take_back(spark, lake.path(table), given_up, of_begun)
        else:
            remove_batch(spark, lake.path(table), given_up)
    published = _given_up(pipeline, lake, journal, plan, done, anew)
    journal.write_published(published)
    return published, anew


def _given_up(
    pipeline: Pipeline, lake: Lake, journal: Journal, plan: Plan, done: list[str], anew: tuple[str, ...]
) -> Published:
    none = Published(plan.batch, "abandoned", plan.planned_at, (), {}, {}, {}, {}, {}, {})
    last = journal.last or replace(none, joins=_counts(pipeline, plan))
    # what waits in a stream's join waits on
    nothing = {
        name: {count: value if count == "waiting" else 0 for count, value in counts.items()}
        for name, counts in last.joins.items()
        if name not in anew
    }
    # readers see those joins as they were until they have begun anew
    going = {table for name in anew for table in tables_of_join(pipeline, name)}
    versions = lake.versions([table for table in state_tables(pipeline) if table not in going])
    return replace(
        none,
        versions=versions | {table: last.versions[table] for table in going & last.versions.keys()},
        commits={**last.commits, **dict.fromkeys(done, plan.batch)},
        joins=nothing,
        rows=last.rows,
        clocks=last.clocks,
    )


def _counts(pipeline: Pipeline, plan: Plan) -> dict[str, dict[str, int]]:
    """Counts of the joins of a lake's first batch, which did nothing to them."""
    return {
        name: dict.fromkeys(JOIN_STAGES[type(pipeline.joins[name])].counts, 0)
        for name in plan.joins
        if name in pipeline.joins
    }
