"""Runs the streams of a batch: joins their records with the tables, and commits both."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame

from orchestration.batch.context import Batch, JoinResults
from orchestration.batch.quarantine import commit_refused
from orchestration.batch.streams.stream import StreamBatch, read_stream
from orchestration.batch.streams.stream_join_batch import StreamJoinBatch, stream_join_batch
from orchestration.batch.tables.table import TableBatch
from orchestration.config import StreamJoin
from storage.delta_table.direct_scan import TIMED_LOG_PROPERTIES
from storage.lake.layout import QUARANTINE, joined_of, records_of
from storage.state.joined_table import OF_STREAMS
from transforms.model.schemas import POSITION


class StreamJoins:
    """The streams of a batch and their joins, each after its stream and its table."""

    def __init__(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        self._batch, self._pool = batch, pool
        self._reading: dict[str, Future[StreamBatch]] = {}
        self._streams: dict[str, StreamBatch] = {}
        self._joins: dict[str, StreamJoinBatch] = {}

    def begin(self) -> None:
        """Begin to read the streams, beside the tables."""
        for name in self._batch.pipeline.streams:
            self._reading[name] = self._pool.submit(read_stream, self._batch, name)

    def join(self, tables: Mapping[str, TableBatch]) -> list[Future[None]]:
        """Run each join; then it is known which records are late, and the streams' logs can be committed."""
        batch, pool = self._batch, self._pool
        streams = {name: stream.result() for name, stream in self._reading.items()}
        self._joins = join_streams(batch, streams, tables)
        self._streams = without_late(streams, self._joins.values())
        logs = [log for stream in self._streams.values() for log in commit_stream(batch, pool, stream)]
        return [*logs, *[commit_late(batch, pool, join) for join in self._joins.values()]]

    def commit_joined(self, ready: Callable[[], None]) -> None:
        """Append what each join emits, once `ready` returns."""
        ready()
        for join in self._joins.values():
            commit_stream_join(self._batch, join)

    def results(self) -> JoinResults:
        """What was counted of streams and joins, and the stream time after the batch."""
        return JoinResults(
            counts={name: join.counts for name, join in self._joins.items()},
            clocks={name: join.clock for name, join in self._joins.items()},
            inputs={name: stream.counts for name, stream in self._streams.items()},
        )


def join_streams(
    batch: Batch, streams: Mapping[str, StreamBatch], tables: Mapping[str, TableBatch]
) -> dict[str, StreamJoinBatch]:
    """Run every join of a stream that the batch keeps."""
    joined: dict[str, StreamJoinBatch] = {}
    declared = batch.pipeline.joins_of(StreamJoin)
    for name in [name for name in batch.plan.joins if name in declared]:
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
        pool.submit(commit_refused, batch, name, stream.quarantined, bad),
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
