"""The foreign-key joins of a batch: run upon their two sides, and committed, logs first and the joined table last."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration.batch_context import Batch
from orchestration.gate import JOIN_COUNTS, judge
from orchestration.join_batch import JoinBatch, Left, changelog_rows, join_batch
from orchestration.sides import left_bootstrap, left_join, left_table, right_table
from orchestration.table_batch import TableBatch
from storage.commits import preload
from storage.frames import SMALL
from storage.joined import apply_emissions, create_joined, joined_schema
from storage.lake import changelog_of, joined_of, response_log_of, subscription_log_of
from transforms.schemas import DELETED, POSITION, POSITION_TYPE, key_struct, named
from transforms.specs import JoinSpec


def run_join(
    batch: Batch, join: JoinSpec, tables: dict[str, TableBatch], joins: dict[str, JoinBatch],
    counts: dict[str, dict[str, int]],
) -> tuple[JoinBatch, dict[str, int]]:  # fmt: skip
    """Run a join upon its two sides, and let its gate judge: the join and its counts. Raises `GateFailed`."""
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


def commit_logs(
    batch: Batch, pool: ThreadPoolExecutor, join: JoinBatch, counts: dict[str, int]
) -> list[Future[None]]:
    """Commit a join's messages and answers, and its changelog if it keeps one."""
    name = join.spec.name
    logs = [
        (f"subscription_log/{name}", subscription_log_of(name), join.log, counts["subscriptions"]),
        (f"response_log/{name}", response_log_of(name), join.responses, counts["answers"]),
    ]
    if join.spec.changelog:
        before = batch.state.joined(name, joined_schema(join.spec))
        known = before.select(
            key_struct(join.spec.joined_key).alias("primary_key"), named("_lj_hash").alias("hash")
        )
        rows = changelog_rows(join, known)
        logs.append((f"changelog/{name}", changelog_of(name), rows, counts["emissions"]))
    return [pool.submit(batch.append, *log, makes=_begins(batch, name, log[0])) for log in logs]


def _begins(batch: Batch, name: str, stage: str) -> bool:
    """Whether a log of a join begins with the batch: its join does, or did while it was not kept."""
    last = batch.journal.last.commits.get(stage) if batch.journal.last else None
    return name in batch.plan.bootstrap or (last is not None and last < batch.plan.begun.get(name, 0))


def preload_joined(batch: Batch, pool: ThreadPoolExecutor) -> None:
    """Let Delta look at the joined tables while the sources are read, for it takes a while and needs no answer."""
    for name in batch.plan.joins:
        if name in batch.pipeline.foreign_key_joins and joined_of(name) in batch.plan.versions:
            pool.submit(preload, batch.spark, batch.lake.path(joined_of(name)))


def commit_joined(batch: Batch, join: JoinBatch, counts: dict[str, int], ready: Callable[[], None]) -> None:
    """Change the joined table in one commit, once `ready` returns: then all logs of the batch are committed."""
    name = join.spec.name
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
            apply_emissions(emissions, counts, path, join.spec, transaction, ready)
        else:
            ready()
            create_joined(emissions, path, join.spec, transaction)
    batch.committed.append(stage)
