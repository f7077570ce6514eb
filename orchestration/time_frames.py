"""The frames that the rules read of histories and of streams' joins."""

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.keys import Kind
from expectations.validation import Asset
from orchestration.check_frames import Scope
from orchestration.config import Pipeline
from storage.journal import Journal
from storage.lake import QUARANTINE, joined_of, records_of, versions_of
from storage.logs import read_log
from transforms.resolution import LEFT_HASH
from transforms.rows import restrict
from transforms.schemas import BATCH, DELETED, HASH, POSITION, QUARANTINE_SCHEMA, VERDICT, key_struct, named
from transforms.specs import StreamJoinSpec, TableSpec
from transforms.stream_table_join import ACCEPTED, stream_joined_schema, waiting
from transforms.streams import stream_schema
from transforms.versions import VALID_FROM, VALID_TO, intervals, versions_schema

HISTORY = "{}.versions"
BATCHES = "{}.batches"
"""How the history of a table, and the batches of a join, are called among the assets that are checked."""

_COUNTED = pa.schema(
    [
        ("primary_key", pa.struct([("batch", pa.int64())])),
        ("clock", pa.timestamp("us", "UTC")),
        ("clock_before", pa.timestamp("us", "UTC")),
        *[(name, pa.int64()) for name in ("received", "sorted", "waited", "left_waiting")],
    ]
)


def time_assets(pipeline: Pipeline, scope: Scope, journal: Journal) -> list[Asset]:
    """Return what is checked of versioned tables and of streams' joins."""
    found = [_history(table.spec, scope) for table in pipeline.tables.values() if table.versioned]
    for name in [name for name in pipeline.stream_joins if name in journal.kept]:
        join = pipeline.stream_join_spec(name)
        found += [_stream_join(join, pipeline.streams[join.left].spec, scope), _batches(join, scope, journal)]
    return found


def _history(table: TableSpec, scope: Scope) -> Asset:
    state = scope.state
    stored = read_log(state, versions_of(table.name), versions_schema(table))
    every, rows = state.versions(table, None, small=False), state.all_rows(table)
    if scope.since is not None:
        changed = every.where(named(BATCH) > scope.since).select(*map(named, table.key)).distinct()
        stored, every, rows = (
            restrict(f, changed, table.key, small=scope.small) for f in (stored, every, rows)
        )
    last = intervals(every, table).where(F.col(VALID_TO).isNull())
    key = key_struct(table.key).alias("primary_key")

    def live(frame: DataFrame) -> DataFrame:
        return frame.where(~named(DELETED)).select(key, named(HASH).alias("hash"))

    frames = {"versions": stored.select(key, VALID_FROM, VALID_TO), "latest": live(last), "rows": live(rows)}
    return Asset(HISTORY.format(table.name), "history", frames, small=scope.in_one_task)


def _stream_join(join: StreamJoinSpec, stream: TableSpec, scope: Scope) -> Asset:
    state, position = scope.state, F.col(POSITION).alias("primary_key")
    log = read_log(state, records_of(join.left), stream_schema(stream)).where(F.col(VERDICT).isin(*ACCEPTED))
    joined = read_log(state, joined_of(join.name), stream_joined_schema(join))
    wait = _waiting(join, stream, scope)
    late = _late(join, scope)
    if scope.since is not None:
        recent = [frame.where(named(BATCH) > scope.since).select(POSITION) for frame in (log, joined)]
        wanted = recent[0].unionByName(recent[1]).distinct()
        log, joined, wait, late = (
            restrict(frame, wanted, (POSITION,), small=scope.small) for frame in (log, joined, wait, late)
        )
    frames = {
        "records": log.select(position, named(HASH).alias("hash")),
        "joined": joined.select(position, named(LEFT_HASH).alias("left_hash"), named(BATCH).alias("batch")),
        "waiting": wait.select(position),
        "late": late.select(position),
    }
    kind: Kind = "stream_left" if join.how == "left" else "stream"
    return Asset(join.name, kind, frames, small=scope.in_one_task)


def _waiting(join: StreamJoinSpec, stream: TableSpec, scope: Scope) -> DataFrame:
    plan = scope.state.plan
    log = scope.state.stream_records(stream, after=plan.released(join.name))
    if join.grace is None:
        return log.limit(0)
    return waiting(log, join, plan.clocks.get(f"joins/{join.name}"))


def _late(join: StreamJoinSpec, scope: Scope) -> DataFrame:
    rows = read_log(scope.state, QUARANTINE, QUARANTINE_SCHEMA)
    ours = rows.where((F.col("reason") == "late") & F.col("detail").startswith(f"{join.name}:"))
    return ours.where(F.col("table") == join.left).select(
        F.struct("date", "file", "line").alias(POSITION), BATCH
    )


def _batches(join: StreamJoinSpec, scope: Scope, journal: Journal) -> Asset:
    """A row for each batch of the join: few, and known without reading the lake."""
    rows, name, waited, clock = [], join.name, 0, None
    for batch in journal.published:
        counts, now = batch.joins.get(name), batch.clocks.get(f"joins/{name}")
        if counts is None:
            continue
        ways = sum(counts[way] for way in ("at_once", "buffered", "late", "ignored"))
        rows.append(
            {
                "primary_key": {"batch": batch.batch}, "clock": now, "clock_before": clock,
                "received": counts["received"], "sorted": ways, "waited": waited + counts["buffered"],
                "left_waiting": counts["released"] + counts["waiting"],
            }
        )  # fmt: skip
        waited, clock = counts["waiting"], now
    frame = scope.state.spark.createDataFrame(pa.Table.from_pylist(rows, _COUNTED))
    return Asset(BATCHES.format(name), "batches", {"batches": frame}, small=True)
