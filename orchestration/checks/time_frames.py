"""Reads the frames that the rules of histories and of streams' joins need."""

from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.keys import stream_kind
from lakejoin.expectations.validation import Asset
from lakejoin.orchestration.checks.join_frames import Scope
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.lake.layout import QUARANTINE, joined_of, records_of, versions_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.pinned_state import read_log
from lakejoin.transforms.changelog.versions import intervals, versions_schema
from lakejoin.transforms.model.event_time import moved_back
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    HASH,
    LEFT_HASH,
    POSITION,
    QUARANTINE_SCHEMA,
    VALID_FROM,
    VALID_TO,
    VERDICT,
    key_struct,
    named,
)
from lakejoin.transforms.model.specs import StreamJoinSpec, TableSpec
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import ACCEPTED, is_due, stream_joined_schema, waiting

HISTORY = "{}.versions"
BATCHES = "{}.batches"
"""The names that a table's history and a join's batches have among the assets that are checked."""

_COUNTED = pa.schema(
    [
        ("primary_key", pa.struct([("batch", pa.int64())])),
        ("clock", pa.timestamp("us", "UTC")),
        ("clock_before", pa.timestamp("us", "UTC")),
        *[
            (name, pa.int64())
            for name in ("received", "sorted", "waited", "left_waiting", "waiting", "emitted")
        ],
    ]
)


def stream_join_assets(pipeline: Pipeline, name: str, scope: Scope) -> list[Asset]:
    """Return what is checked of the join of a stream: its rows, and its batches."""
    join = pipeline.stream_join_spec(name)
    stream = pipeline.streams[join.left].spec
    return [_stream_join(join, stream, scope), _batches(join, stream, scope)]


def history_asset(table: TableSpec, scope: Scope) -> Asset:
    """Return the frames of a versioned table."""
    state = scope.state
    stored = read_log(state, versions_of(table.name), versions_schema(table))
    every, rows = state.versions(table), state.all_rows(table)
    if scope.since is not None:
        recent = every.where(named(BATCH) > scope.since)
        changed = scope.keys(recent.select(*map(named, table.key)).distinct())
        stored, every, rows = (restrict(f, changed, table.key) for f in (stored, every, rows))
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
    # a join that began since has taken every record that its stream ever had
    if scope.since is not None and state.plan.begun.get(join.name, 0) <= scope.since:
        recent = [frame.where(named(BATCH) > scope.since).select(POSITION) for frame in (log, joined)]
        if join.grace is not None and scope.since > 0:
            recent.append(_released(join, stream, scope, published_snapshot(scope.journal, scope.since)))
        wanted = scope.keys(reduce(DataFrame.unionByName, recent).distinct())
        log, joined, wait, late = (
            restrict(frame, wanted, (POSITION,)) for frame in (log, joined, wait, late)
        )
    frames = {
        "records": log.select(position, named(HASH).alias("hash")),
        "joined": joined.select(position, named(LEFT_HASH).alias("left_hash"), named(BATCH).alias("batch")),
        "waiting": wait.select(position),
        "late": late.select(position),
    }
    return Asset(
        join.name, stream_kind(join.how, condition=join.where is not None), frames, small=scope.in_one_task
    )


def _waiting(join: StreamJoinSpec, stream: TableSpec, scope: Scope) -> DataFrame:
    plan = scope.state.plan
    clock = plan.clocks.get(f"joins/{join.name}")
    log = scope.state.stream_records(
        stream, after=plan.released(join.name), later=moved_back(clock, join.grace)
    )
    return log.limit(0) if join.grace is None else waiting(log, join, clock)


def _released(join: StreamJoinSpec, stream: TableSpec, scope: Scope, before: Plan) -> DataFrame:
    """Positions of records that waited at `before` and wait no more, to find those that were lost since."""
    clock, now = before.clocks.get(f"joins/{join.name}"), scope.state.plan
    later = moved_back(clock, join.grace)
    log = scope.state.stream_records(stream, after=before.released(join.name), later=later)
    waited = waiting(log.where(named(BATCH) < before.batch), join, clock)
    due = is_due(join, now.clocks.get(f"joins/{join.name}")) | (named(BATCH) <= now.released(join.name))
    return waited.where(due).select(POSITION)


def _late(join: StreamJoinSpec, scope: Scope) -> DataFrame:
    rows = read_log(scope.state, QUARANTINE, QUARANTINE_SCHEMA)
    ours = rows.where((F.col("reason") == "late") & F.col("detail").startswith(f"{join.name}:"))
    # before the join began anew, others were late
    since_begun = named(BATCH) >= scope.state.plan.begun.get(join.name, 0)
    return ours.where((F.col("table") == join.left) & since_begun).select(
        F.struct("date", "file", "line").alias(POSITION), BATCH
    )


def _batches(join: StreamJoinSpec, stream: TableSpec, scope: Scope) -> Asset:
    """A row for each batch of the join since it began.

    The lake itself says how many rows are left of each, and how many records wait after the last one.
    """
    rows, name, waited, clock = [], join.name, 0, None
    begun, since = scope.state.plan.begun.get(name, 0), scope.since or 0
    for batch in scope.journal.published[max(begun - 1, 0) :]:
        counts, now = batch.joins.get(name), batch.clocks.get(f"joins/{name}")
        if counts is None:
            continue
        ways = sum(counts[way] for way in ("at_once", "buffered", "late", "ignored"))
        rows.append(
            {
                "primary_key": {"batch": batch.batch}, "clock": now, "clock_before": clock,
                "received": counts["received"], "sorted": ways, "waited": waited + counts["buffered"],
                "left_waiting": counts["released"] + counts["waiting"], "waiting": counts["waiting"],
                "emitted": counts["emissions"] if batch.batch > since else None,
            }
        )  # fmt: skip
        waited, clock = counts["waiting"], now
    known = scope.state.spark.createDataFrame(pa.Table.from_pylist(rows, _COUNTED))
    joined = read_log(scope.state, joined_of(name), stream_joined_schema(join)).where(named(BATCH) > since)
    kept = joined.groupBy(F.struct(named(BATCH).alias("batch")).alias("primary_key")).agg(
        F.count("*").alias("kept")
    )
    waits = _waiting(join, stream, scope).agg(F.count("*").alias("in_buffer"))
    after_last = F.when(F.col("primary_key")["batch"] == scope.state.plan.batch - 1, F.col("in_buffer"))
    frame = known.join(kept, "primary_key", "left").fillna(0, ["kept"]).crossJoin(F.broadcast(waits))
    frame = frame.withColumn("in_buffer", after_last)
    return Asset(BATCHES.format(name), "batches", {"batches": frame}, small=True)
