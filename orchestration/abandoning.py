"""Giving up a batch that can no longer be finished, because what it was planned to read is gone."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from orchestration.batch_context import Progress, stages_of, state_tables
from orchestration.config import Pipeline
from orchestration.errors import WrongUsage
from orchestration.log_recovery import settle_logs
from orchestration.rebuilding import joins_to_rebuild
from orchestration.recovery import check_progress, snapshots_of
from orchestration.run import run_batches
from orchestration.shapes import check_shapes
from storage.commits import remove_batch
from storage.damage import set_aside
from storage.journal import Journal
from storage.lake import Lake, joined_of
from storage.lock import writing
from storage.plan import Plan, Published


def abandon(
    pipeline: Pipeline, session: Callable[[], SparkSession], *, progress: Progress = lambda _: None
) -> Iterator[Published]:
    """Give up the batch under way, as if its input had never been seen; yields it, and a batch that mends joins.

    What the batch wrote into logs is removed. A joined table that it changed already begins anew from the rows as they
    were before. Files of the batch that are still there wait for the next run. Raises `WrongUsage` where no batch is
    under way.
    """
    lake = Lake(pipeline.lake)
    with writing(lake):
        settle_logs(pipeline, lake)
        journal = Journal(lake)
        plan = journal.unfinished
        if plan is None:
            raise WrongUsage(
                f"{lake.root}: no batch is under way; a finished one is corrected by its records' later changes, or, "
                "for a file that was exported again, by `lakejoin run FILE --replace`"
            )
        check_shapes(pipeline, journal)
        check_progress(pipeline, lake, journal)
        spark = session()
        done = _stages_done(pipeline, lake, journal, plan)
        touched = [name for name in pipeline.foreign_key_joins if f"joined/{name}" in done]
        begun = [name for name in plan.bootstrap if name in pipeline.foreign_key_joins]
        anew = joins_to_rebuild(pipeline, {*touched, *begun})
        begun_streams = [joined_of(name) for name in plan.bootstrap if name in pipeline.stream_joins]
        for table in filter(lake.has, begun_streams):
            set_aside(spark, lake, table, datetime.now(UTC))
        others = {journal.table_of(stage) for stage in done} - {*map(joined_of, anew), *begun_streams}
        for table in sorted(others):
            progress(f"remove/{table}")
            remove_batch(spark, lake.path(table), journal.transaction(f"abandoned/{table}", plan.batch))
        published = _given_up(pipeline, lake, journal, plan, done, anew)
        journal.write_published(published)
        yield published
    if anew:
        yield from run_batches(pipeline, spark, rebuild=anew, batches=1, progress=progress)


def _stages_done(pipeline: Pipeline, lake: Lake, journal: Journal, plan: Plan) -> list[str]:
    """The stages of a batch that committed something."""
    snapshots = snapshots_of(pipeline, lake, journal)
    tables = {stage: journal.table_of(stage) for stage in stages_of(pipeline)}
    return [
        stage
        for stage, table in tables.items()
        if table in snapshots and snapshots[table].transaction(journal.application(stage)) == plan.batch
    ]


def _given_up(
    pipeline: Pipeline, lake: Lake, journal: Journal, plan: Plan, done: list[str], anew: tuple[str, ...]
) -> Published:
    none = Published(plan.batch, "abandoned", plan.planned_at, (), {}, {}, {}, {}, {}, {})
    last = journal.last or none
    # what waits in a stream's join waits on
    nothing = {
        name: {count: value if count == "waiting" else 0 for count, value in counts.items()}
        for name, counts in last.joins.items()
        if name not in anew
    }
    return replace(
        none,
        versions=lake.versions(state_tables(pipeline)),
        commits={**last.commits, **dict.fromkeys(done, plan.batch)},
        joins=nothing,
        rows=last.rows,
        clocks=last.clocks,
    )
