"""Runs the streams of a batch: joins them with their tables as these are after the batch, and commits both."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame

from orchestration.batch.context import Batch
from orchestration.batch.streams.stream import StreamBatch
from orchestration.batch.streams.table_join import StreamJoinBatch, stream_join_batch
from orchestration.batch.tables.table import TableBatch
from storage.delta_table.direct_scan import TIMED_LOG_PROPERTIES
from storage.lake.layout import QUARANTINE, joined_of, records_of
from storage.state.joined_table import OF_STREAMS
from transforms.model.schemas import POSITION


def join_streams(
    batch: Batch, streams: Mapping[str, StreamBatch], tables: Mapping[str, TableBatch]
) -> dict[str, StreamJoinBatch]:
    """Run every join of a stream that the batch keeps."""
    joined: dict[str, StreamJoinBatch] = {}
    for name in batch.plan.joins:
        if name in batch.pipeline.stream_joins:
            join = batch.pipeline.stream_join_spec(name)
            with batch.stage(f"join/{name}"):
                joined[name] = stream_join_batch(join, streams[join.left], tables[join.right], batch)
    return joined


def without_late(
    streams: Mapping[str, StreamBatch], joins: Iterable[StreamJoinBatch]
) -> dict[str, StreamBatch]:
    """The streams, with status `late` for those records that every join of theirs dropped."""
    of_stream: dict[str, list[StreamJoinBatch]] = {name: [] for name in streams}
    for join in joins:
        of_stream[join.spec.left].append(join)
    return {name: _without_late(stream, of_stream[name]) for name, stream in streams.items()}


def _without_late(stream: StreamBatch, joins: list[StreamJoinBatch]) -> StreamBatch:
    if not joins or not all(join.counts["late"] for join in joins):
        return stream
    late = reduce(_both, (join.late.select(POSITION) for join in joins))
    return stream.without(late, joins[0].counts["late"] if len(joins) == 1 else late.count())


def _both(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.join(other, POSITION, "left_semi")


def commit_stream(batch: Batch, pool: ThreadPoolExecutor, stream: StreamBatch) -> list[Future[None]]:
    """Commit a stream's log, and what of it could not be accepted."""
    name, counts = stream.spec.name, stream.counts
    bad = counts["quarantined"]
    return [
        pool.submit(
            batch.append, f"records/{name}", records_of(name), stream.log, counts["records"] - bad,
            TIMED_LOG_PROPERTIES,
        ),
        pool.submit(batch.append, f"quarantine/{name}", QUARANTINE, stream.quarantined, bad),
    ]  # fmt: skip


def commit_late(batch: Batch, pool: ThreadPoolExecutor, join: StreamJoinBatch) -> Future[None]:
    """Commit the records that a join dropped."""
    return pool.submit(
        batch.append, f"late/{join.spec.name}", QUARANTINE, join.quarantined, join.counts["late"]
    )


def commit_stream_join(batch: Batch, join: StreamJoinBatch) -> None:
    """Append what the join emits; the first batch makes the table, whether it has rows or not."""
    table = joined_of(join.spec.name)
    batch.append(
        f"joined/{join.spec.name}", table, join.emissions, join.counts["emissions"],
        OF_STREAMS, makes=table not in batch.plan.versions,
    )  # fmt: skip
