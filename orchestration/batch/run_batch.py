"""Runs one batch from its plan to its publication: reads the tables, then joins, then commits the joined tables.

Everything here is a function of the plan. So a batch that was interrupted is simply run again: commits that were made
are found in the tables' logs and skipped, and those that are missing come out the same.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from functools import partial

from pyspark.sql import SparkSession

from lakejoin.orchestration.batch.context import Batch, JoinResults, Progress
from lakejoin.orchestration.batch.join_stages import JOIN_STAGES
from lakejoin.orchestration.batch.tables.stage import commit_table, read_table
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.declared_tables import keep_as_declared
from lakejoin.orchestration.lake_state.inventory import state_tables
from lakejoin.orchestration.lake_state.log_checks import check_own_commits
from lakejoin.orchestration.planning.input_records import THREADS, InputRecords, reading
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan, Published


def run_batch(  # noqa: PLR0913 - what a batch works with, and two ways to look at it
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, plan: Plan,
    *, accept: Sequence[str] = (), progress: Progress = lambda _: None, read: InputRecords | None = None,
) -> Published:  # fmt: skip
    """Work off a planned batch and publish it.

    `accept` names rules of the gate that may be violated. `read`: what was read of its input already. Raises
    `GateFailed` before any joined table is touched, and `BatchFailed` for what failed in Spark and is not a mistake of
    ours.
    """
    tables: dict[str, TableBatch] = {}
    with (
        explained(pipeline, plan),
        nullcontext(read) if read else reading(pipeline, spark, plan) as records,
        closing(Batch(pipeline, spark, lake, journal, plan, accept, progress, records)) as batch,
    ):
        # A task waits for others' ends in two places: a log's commit for its join's gate, a history's for all logs.
        # These were submitted before it. Tasks begin in that order, so no number of threads can stall.
        with ThreadPoolExecutor(THREADS, thread_name_prefix="stage") as pool:
            logs: list[Future[None]] = []
            stages = [
                stage(batch, pool) for stage in dict.fromkeys(kind.stage for kind in JOIN_STAGES.values())
            ]
            started = {name: pool.submit(read_table, batch, name) for name in pipeline.tables}
            for stage in reversed(stages):  # the last kinds have sources to read, which takes longest
                stage.begin()
            for name, future in started.items():
                tables[name] = future.result()
                logs += commit_table(batch, pool, tables[name])
            for stage in stages:
                logs += stage.join(tables)
            for stage in stages:
                stage.commit_joined(partial(_made, logs))
            _made(logs)
        keep_as_declared(pipeline, spark, lake, batch.stage)
        return _publish(batch, tables, [stage.results() for stage in stages])


def _made(commits: list[Future[None]]) -> None:
    """Wait for commits that are being made, and raise the error of one that failed."""
    for commit in commits:
        commit.result()


def _publish(batch: Batch, tables: dict[str, TableBatch], joins: Sequence[JoinResults]) -> Published:
    previous = batch.journal.last
    commits = dict(previous.commits) if previous else {}
    commits |= dict.fromkeys(batch.committed, batch.plan.batch)
    rows = dict(previous.rows) if previous else {}
    for name, table in tables.items():
        rows[name] = rows.get(name, 0) + table.counts["inserted"] - table.counts["removed"]
    moved = {f"tables/{name}": table.clock for name, table in tables.items()}
    moved |= {f"joins/{name}": clock for kind in joins for name, clock in kind.clocks.items()}
    moved |= {f"histories/{name}": time for kind in joins for name, time in kind.settled.items()}
    # a history that goes by event time no more is settled no more
    stays = {name: clock for name, clock in batch.plan.clocks.items() if not name.startswith("histories/")}
    clocks = stays | {name: clock for name, clock in moved.items() if clock is not None}
    read: dict[str, Mapping[str, int]] = {name: table.counts for name, table in tables.items()}
    read |= {name: counts for kind in joins for name, counts in kind.inputs.items()}
    versions = batch.lake.versions(state_tables(batch.pipeline))
    check_own_commits(batch.lake, batch.journal, versions, batch.commits_by_table())
    published = Published(
        batch=batch.plan.batch,
        kind=batch.plan.kind,
        planned_at=batch.plan.planned_at,
        dates=batch.plan.dates,
        versions=versions,
        commits=commits,
        tables=read,
        joins={name: counts for kind in joins for name, counts in kind.counts.items()},
        rows=rows,
        seconds=dict(batch.seconds),
        accepted=tuple(batch.accept),
        clocks=clocks,
        files=batch.files.by_table,
    )
    batch.journal.write_published(published)
    return published
