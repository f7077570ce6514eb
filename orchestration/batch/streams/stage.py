"""Runs the streams of a batch: joins their records with the tables, and commits both."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce

from pyspark.sql import DataFrame

from lakejoin.orchestration.batch.context import Batch, JoinResults
from lakejoin.orchestration.batch.quarantine import commit_refused
from lakejoin.orchestration.batch.streams.stream import StreamBatch, read_stream
from lakejoin.orchestration.batch.streams.stream_join_batch import (
    RoutedRecords,
    StreamJoinBatch,
    route_records,
    stream_join_batch,
)
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.storage.delta_table.direct_scan import TIMED_LOG_PROPERTIES
from lakejoin.storage.lake.layout import QUARANTINE, joined_of, records_of
from lakejoin.storage.state.joined_table import OF_STREAMS, properties_of
from lakejoin.transforms.model.schemas import POSITION
from lakejoin.transforms.model.specs import StreamJoinSpec

Routes = Mapping[str, RoutedRecords | None]
"""What each join of a stream does with its records; None where it has nothing to do."""


class StreamJoins:
    """The streams of a batch and their joins, each after its stream and its table."""

    def __init__(self, batch: Batch, pool: ThreadPoolExecutor) -> None:
        self._batch, self._pool = batch, pool
        self._reading: dict[str, Future[tuple[StreamBatch, Routes]]] = {}
        self._streams: dict[str, StreamBatch] = {}
        self._joins: dict[str, StreamJoinBatch] = {}

    def begin(self) -> None:
        """Begin to read the streams, beside the tables."""
        for name in self._batch.pipeline.streams:
            self._reading[name] = self._pool.submit(read_and_route, self._batch, name)

    def join(self, tables: Mapping[str, TableBatch]) -> list[Future[None]]:
        """Run each join; then it is known which records are late, and the streams' logs can be committed."""
        batch, pool = self._batch, self._pool
        read = {name: reading.result() for name, reading in self._reading.items()}
        streams = {name: stream for name, (stream, _) in read.items()}
        routes = {name: route for _, found in read.values() for name, route in found.items()}
        self._joins = join_streams(batch, streams, routes, tables)
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


def read_and_route(batch: Batch, name: str) -> tuple[StreamBatch, Routes]:
    """Read a stream, and say for each of its joins which way the records go, while the tables are read."""
    stream, routes = read_stream(batch, name), dict[str, RoutedRecords | None]()
    for join in _kept_joins(batch):
        if join.left == name:
            with batch.stage(f"join/{join.name}"):
                routes[join.name] = route_records(join, stream, batch)
    return stream, routes


def join_streams(
    batch: Batch, streams: Mapping[str, StreamBatch], routes: Routes, tables: Mapping[str, TableBatch]
) -> dict[str, StreamJoinBatch]:
    """Run every join of a stream that the batch keeps."""
    joined: dict[str, StreamJoinBatch] = {}
    for join in _kept_joins(batch):
        with batch.stage(f"join/{join.name}"):
            joined[join.name] = stream_join_batch(
                join, streams[join.left], routes[join.name], tables[join.right], batch
            )
    return joined


def _kept_joins(batch: Batch) -> list[StreamJoinSpec]:
    declared = batch.pipeline.joins_of_streams
    return [batch.pipeline.stream_join_spec(name) for name in batch.plan.joins if name in declared]


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
    declared = batch.pipeline.joins[join.spec.name].declared
    batch.append(
        f"joined/{join.spec.name}", table, join.emissions, join.counts["emissions"],
        properties_of(OF_STREAMS, declared), makes=table not in batch.plan.versions, declared=declared,
    )  # fmt: skip
