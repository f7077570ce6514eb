"""One batch from its plan to its publication: `plan → changes → subscriptions → responses → joined`.

Everything here is a function of the plan, so a batch that was cut off anywhere is simply run again: what is
committed already is skipped by Delta, what is missing comes out the same.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from orchestration.batch_context import Batch, Progress, state_tables
from orchestration.config import Pipeline
from orchestration.config.expressions import referenced_columns
from orchestration.gate import JOIN_COUNTS, judge
from orchestration.join_batch import JoinBatch, Left, changelog_rows, join_batch
from orchestration.log_recovery import check_own_commits
from orchestration.open_records import only_open
from orchestration.pending import check_read
from orchestration.replace_batch import Files, replace_batch
from orchestration.sides import left_bootstrap, left_join, left_table, right_table
from orchestration.spark_failures import explained
from orchestration.stream_batch import StreamBatch, read_stream
from orchestration.stream_join_batch import StreamJoinBatch
from orchestration.stream_stages import (
    commit_late,
    commit_stream,
    commit_stream_join,
    join_streams,
    without_late,
)
from orchestration.table_batch import TableBatch, table_batch, untouched
from storage.commits import preload
from storage.frames import SMALL, framing
from storage.joined import apply_emissions, create_joined, joined_schema
from storage.journal import Journal
from storage.lake import (
    QUARANTINE,
    Lake,
    changelog_of,
    changes_of,
    joined_of,
    response_log_of,
    subscription_log_of,
)
from storage.plan import Plan, Published
from storage.sources import read_records
from transforms.schemas import (
    DELETED,
    POSITION,
    POSITION_TYPE,
    JoinSpec,
    TableSpec,
    key_struct,
    named,
)


def run_batch(  # noqa: PLR0913 - what a batch works with, and two ways to look at it
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, plan: Plan,
    *, accept: Sequence[str] = (), progress: Progress = lambda _: None,
) -> Published:  # fmt: skip
    """Work off a planned batch and publish it.

    `accept` names rules of the gate that may be violated. Raises `GateFailed` before any joined table is touched, and
    `BatchFailed` for what failed in Spark and is not a mistake of ours.
    """
    tables: dict[str, TableBatch] = {}
    joins: dict[str, JoinBatch] = {}
    counts: dict[str, dict[str, int]] = {}
    with explained(pipeline, plan), framing(spark, lake.scratch(), plan.records) as frames:
        batch = Batch(pipeline, spark, lake, journal, plan, accept, progress, frames)
        with ThreadPoolExecutor(max_workers=8, thread_name_prefix="stage") as pool:
            logs: list[Future[None]] = []
            started = {name: pool.submit(_read_table, batch, name) for name in pipeline.tables}
            reading = {name: pool.submit(read_stream, batch, name) for name in pipeline.streams}
            _load_joined(batch, pool)
            for name, future in started.items():
                tables[name] = future.result()
                logs += _commit_table(batch, pool, tables[name])
            for name in [name for name in plan.joins if name in pipeline.foreign_key_joins]:
                joins[name], counts[name] = _run_join(batch, pipeline.join_spec(name), tables, joins, counts)
                logs += _commit_logs(batch, pool, joins[name], counts[name])
            streams = {name: stream.result() for name, stream in reading.items()}
            stream_joins = join_streams(batch, streams, tables)
            streams = without_late(streams, stream_joins.values())
            for stream in streams.values():
                logs += commit_stream(batch, pool, stream)
            logs += [commit_late(batch, pool, join) for join in stream_joins.values()]
            for name, joined in joins.items():
                _commit_joined(batch, joined, counts[name], ready=partial(_made, logs))
            _made(logs)
        for join in stream_joins.values():
            commit_stream_join(batch, join)
        return _publish(batch, tables, streams, counts, stream_joins)


def _read_table(batch: Batch, name: str) -> TableBatch:
    table = batch.pipeline.tables[name]
    files = batch.plan.files_of(name)
    if not files:
        return untouched(table.spec, batch.state)
    options = table.source.parse_options
    with batch.stage(f"read/{name}"):
        records = read_records(batch.spark, table.spec.as_read, options, [file.range for file in files])
        if batch.plan.kind == "retry":
            records = only_open(records, name, batch)
        # many rows are rather read again from a file of columns than kept
        columnar = options.format == "parquet"
        kept = batch.frames.keep_if_small(records) if columnar else batch.frames.keep(records)
        needed = partial(_left_columns, batch, table.spec)
        if batch.plan.kind == "replace":
            taken = Files([file.name for file in files], batch.journal.replaced_files(name, batch.plan.batch))
            read = replace_batch(table.spec, kept, taken, batch.state, batch.frames, needed=needed)
        else:
            stated = None if options.flat else table.on_truncate
            read = table_batch(table.spec, kept, batch.state, batch.frames, on_truncate=stated, needed=needed)
        check_read(table, files, None if batch.plan.kind == "retry" else read.counts["records"])
    return read


def _left_columns(batch: Batch, table: TableSpec) -> list[str]:
    """Columns of a table that the foreign keys of its joins read."""
    specs = [batch.pipeline.spec_of_join(name) for name in batch.plan.joins]
    return [c for spec in specs if spec.left == table.name for c in referenced_columns(spec.foreign_key)]


def _commit_table(batch: Batch, pool: ThreadPoolExecutor, table: TableBatch) -> list[Future[None]]:
    name, counts = table.table.name, table.counts
    bad = counts["quarantined"]
    kept = counts["records"] + counts["changed"] - bad
    return [
        pool.submit(batch.append, f"changes/{name}", changes_of(name), table.changes, kept),
        pool.submit(batch.append, f"quarantine/{name}", QUARANTINE, table.quarantined, bad),
    ]


def _run_join(
    batch: Batch, join: JoinSpec, tables: dict[str, TableBatch], joins: dict[str, JoinBatch],
    counts: dict[str, dict[str, int]],
) -> tuple[JoinBatch, dict[str, int]]:  # fmt: skip
    left = _left(batch, join, tables, joins, counts)
    right = right_table(tables[join.right], batch.state, batch.frames)
    if max(left.changed, right.changed) > SMALL:
        batch.frames.grow()
    result = join_batch(join, left, right, batch.state, batch.frames)
    if not left.changed and not right.changed:
        return result, dict.fromkeys(JOIN_COUNTS, 0)
    with batch.stage(f"join/{join.name}"):
        return result, judge(result, batch.accept, batch.frames)


def _left(
    batch: Batch, join: JoinSpec, tables: dict[str, TableBatch], joins: dict[str, JoinBatch],
    counts: dict[str, dict[str, int]],
) -> Left:  # fmt: skip
    if join.left in joins:
        bootstrapped = join.name in batch.plan.bootstrap and join.left not in batch.plan.bootstrap
        if not bootstrapped:
            return left_join(join, joins[join.left], counts[join.left], batch.state, batch.frames)
        source = batch.pipeline.join_spec(join.left)
        rows = batch.state.joined(join.left, joined_schema(source))
        rows = rows.withColumns({DELETED: F.lit(False), POSITION: F.lit(None).cast(POSITION_TYPE)})
        return _bootstrap(batch, join, rows)
    if join.name in batch.plan.bootstrap:
        rows = batch.state.all_rows(batch.pipeline.tables[join.left].spec)
        return _bootstrap(batch, join, rows)
    return left_table(join, tables[join.left], batch.state, batch.frames)


def _bootstrap(batch: Batch, join: JoinSpec, rows: DataFrame) -> Left:
    count = rows.count()
    if count > SMALL:
        batch.frames.grow()
    return left_bootstrap(join, rows, count, batch.frames)


def _commit_logs(
    batch: Batch, pool: ThreadPoolExecutor, join: JoinBatch, counts: dict[str, int]
) -> list[Future[None]]:
    name = join.join.name
    logs = [
        (f"subscription_log/{name}", subscription_log_of(name), join.log, counts["subscriptions"]),
        (f"response_log/{name}", response_log_of(name), join.responses, counts["answers"]),
    ]
    if join.join.changelog:
        before = batch.state.joined(name, joined_schema(join.join))
        known = before.select(
            key_struct(join.join.joined_key).alias("primary_key"), named("_lj_hash").alias("hash")
        )
        rows = changelog_rows(join, known)
        logs.append((f"changelog/{name}", changelog_of(name), rows, counts["emissions"]))
    return [pool.submit(batch.append, *log, makes=name in batch.plan.bootstrap) for log in logs]


def _load_joined(batch: Batch, pool: ThreadPoolExecutor) -> None:
    """Let Delta look at the joined tables while the sources are read, for it takes a while and needs no answer."""
    for name in batch.plan.joins:
        if name in batch.pipeline.foreign_key_joins and joined_of(name) in batch.plan.versions:
            pool.submit(preload, batch.spark, batch.lake.path(joined_of(name)))


def _made(commits: list[Future[None]]) -> None:
    """Wait for commits that are being made; what one of them failed of is raised."""
    for commit in commits:
        commit.result()


def _commit_joined(batch: Batch, join: JoinBatch, counts: dict[str, int], ready: Callable[[], None]) -> None:
    name = join.join.name
    exists = joined_of(name) in batch.plan.versions
    if counts["emissions"] == 0 and exists:
        return
    stage = f"joined/{name}"
    with batch.stage(stage):
        transaction = batch.journal.transaction(
            stage, batch.plan.batch, accepted=list(batch.accept), counts=counts
        )
        path = batch.lake.path(joined_of(name))
        emissions = batch.numbered(join.emissions)
        if exists:
            apply_emissions(emissions, counts, path, join.join, transaction, ready)
        else:
            ready()
            create_joined(emissions, path, join.join, transaction)
    batch.committed.append(stage)


def _publish(
    batch: Batch, tables: dict[str, TableBatch], streams: dict[str, StreamBatch],
    counts: dict[str, dict[str, int]], stream_joins: dict[str, StreamJoinBatch],
) -> Published:  # fmt: skip
    previous = batch.journal.last
    commits = dict(previous.commits) if previous else {}
    commits |= dict.fromkeys(batch.committed, batch.plan.batch)
    rows = dict(previous.rows) if previous else {}
    for name, table in tables.items():
        rows[name] = rows.get(name, 0) + table.counts["inserted"] - table.counts["removed"]
    moved = {f"tables/{name}": table.clock for name, table in tables.items()}
    moved |= {f"joins/{name}": join.clock for name, join in stream_joins.items()}
    clocks = dict(batch.plan.clocks) | {name: clock for name, clock in moved.items() if clock is not None}
    versions = batch.lake.versions(state_tables(batch.pipeline))
    check_own_commits(batch.lake, batch.journal, versions, batch.commits_by_table())
    published = Published(
        batch=batch.plan.batch,
        kind=batch.plan.kind,
        planned_at=batch.plan.planned_at,
        dates=batch.plan.dates,
        versions=versions,
        commits=commits,
        tables={name: read.counts for name, read in (tables | streams).items()},
        joins=counts | {name: join.counts for name, join in stream_joins.items()},
        rows=rows,
        seconds=dict(batch.seconds),
        accepted=tuple(batch.accept),
        clocks=clocks,
    )
    batch.journal.write_published(published)
    return published
