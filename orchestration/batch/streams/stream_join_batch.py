"""Joins a stream with a table in one batch: which records are joined at once, wait, are released or come too late."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.batch.joins.sides import right_table
from lakejoin.orchestration.batch.quarantine import quarantine_rows
from lakejoin.orchestration.batch.streams.stream import StreamBatch
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.batch.uncomputed import UNCOMPUTED, Uncomputed, as_counts
from lakejoin.storage.delta_log.live_files import rows_after
from lakejoin.storage.lake.layout import records_of
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.storage.state.pinned_state import history_bound
from lakejoin.transforms.changelog.versions import as_of, as_versions, versions_schema
from lakejoin.transforms.model.event_time import from_micros, latest, moved_back, times_of
from lakejoin.transforms.model.join_sides import spread, unknown
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.schemas import (
    DETAIL,
    FOREIGN_KEY,
    HASH,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    RIGHT_HASH,
    TIME,
    VERDICT,
    empty,
    key_struct,
    named,
)
from lakejoin.transforms.model.selection import FILTERED, marks_of
from lakejoin.transforms.model.specs import StreamJoinSpec
from lakejoin.transforms.stream_join.table_join import (
    ACCEPTED,
    ROUTE,
    emit_records,
    is_due,
    look_up,
    route,
    stream_joined_schema,
    waiting,
)

STREAM_JOIN_COUNTS = (
    "received", "at_once", "buffered", "late", "ignored", "released", "waiting", "emissions", "unmatched",
)  # fmt: skip
"""received = at_once + buffered + late + ignored; waiting before + buffered = released + waiting; and of what is joined
(at_once + released) an inner join emits only what met a row."""


@dataclass(frozen=True)
class StreamJoinBatch:
    """What a batch does to the join of a stream."""

    spec: StreamJoinSpec
    emissions: DataFrame
    """Rows of the joined table."""
    late: DataFrame
    """Position, reason, detail and raw of the records that came after their grace period and are dropped."""
    counts: dict[str, int]
    clock: datetime | None
    """Stream time after the batch."""

    @property
    def quarantined(self) -> DataFrame:
        """Rows of `quarantine`."""
        return quarantine_rows(self.late, self.spec.left)


@dataclass(frozen=True)
class RoutedRecords:
    """The records that are new to a join, each with its way."""

    records: DataFrame
    counts: dict[str, int]
    newest: datetime | None
    """The greatest time among those that move stream time."""


def route_records(join: StreamJoinSpec, stream: StreamBatch, batch: Batch) -> RoutedRecords | None:
    """Say which way the records of a batch go: it needs no table. None where the join has nothing to do."""
    is_asked = batch.plan.kind == "flush" or join.name in batch.plan.bootstrap
    if not stream.counts["applied"] and not is_asked:
        return None
    batch.frames.expect(reads_again(join, batch))
    records = _routed(join, stream, batch, _clock(join, batch))
    return RoutedRecords(records, *_count_routes(records, Uncomputed.keys(batch, join.name), join))


def _clock(join: StreamJoinSpec, batch: Batch) -> datetime | None:
    """Stream time before the batch."""
    return batch.plan.clocks.get(f"joins/{join.name}")


def stream_join_batch(
    join: StreamJoinSpec, stream: StreamBatch, found: RoutedRecords | None, table: TableBatch, batch: Batch
) -> StreamJoinBatch:
    """Release what is due of the records that were `found`, and join it; nothing is committed here."""
    before = _clock(join, batch)
    if found is None:
        return _idle(join, batch, before)
    routed, counts, clock = found.records, dict(found.counts), latest(before, found.newest)
    columns = [*join.left_columns.names, POSITION, TIME, HASH, FOREIGN_KEY]
    due = routed.where(F.col(ROUTE) == "at_once").select(*map(named, columns))
    counts |= {"released": 0, "waiting": 0}
    if join.grace is not None:
        released = leaving(join, stream, routed, batch, (before, clock)).select(*map(named, columns))
        released = batch.frames.keep_if_small(released)
        counts |= count_waiting(released, counts["buffered"], join, batch)
        batch.frames.expect(counts["released"])
        due = due.unionByName(released)
    due = batch.frames.keep_if_small(due)
    met = _met(join, due, table, batch) if counts["at_once"] or counts["released"] else None
    none = empty(batch.spark, stream_joined_schema(join))
    emissions = none if met is None else batch.frames.keep(emit_records(met, join))
    if met is None:
        counts |= {"emissions": 0, "unmatched": 0}
    else:
        emitted = _count_emissions(emissions, join, Uncomputed.results(batch, join))
        failing = counts.get(UNCOMPUTED, 0), emitted.pop(UNCOMPUTED, 0)
        counts |= emitted | as_counts(*failing)
        emissions = emissions.where(_is_shown(join)).drop(*marks_of(join))
    return StreamJoinBatch(join, emissions, _late(join, routed), counts, clock)


def _idle(join: StreamJoinSpec, batch: Batch, clock: datetime | None) -> StreamJoinBatch:
    """A batch without records of the stream: its time stays, so nothing leaves, whatever changes in the table."""
    counts = dict.fromkeys(STREAM_JOIN_COUNTS, 0) | {"waiting": waited(join, batch)}
    emissions = empty(batch.spark, stream_joined_schema(join))
    late = StructType(
        [StructField(POSITION, POSITION_TYPE), *[StructField(n, StringType()) for n in (REASON, DETAIL, RAW)]]
    )
    return StreamJoinBatch(join, emissions, empty(batch.spark, late), counts, clock)


def _routed(join: StreamJoinSpec, stream: StreamBatch, batch: Batch, before: datetime | None) -> DataFrame:
    """The records that are new to the join, each with its way; all the stream ever had for a join that was added."""
    bound = moved_back(latest(before, stream.newest), join.grace)
    some_late = stream.oldest is not None and bound is not None and stream.oldest < bound
    records, in_one_task = stream.applied, batch.frames.small
    if join.name in batch.plan.bootstrap:
        earlier = batch.state.stream_records(stream.spec).where(F.col(VERDICT).isin(*ACCEPTED))
        records, some_late = (
            earlier.select(*map(named, stream.applied.drop(REASON, DETAIL, RAW).columns)),
            False,
        )
    return batch.frames.keep(route(records, join, before, in_one_task=in_one_task, some_late=some_late))


def _met(join: StreamJoinSpec, due: DataFrame, table: TableBatch, batch: Batch) -> DataFrame:
    """The records beside the values that the table had at their time, or has now."""
    if not join.as_of:
        right = right_table(join, table, batch.state, batch.frames)
        return look_up(due, right.after.unionByName(right.lookup(unknown(due, FOREIGN_KEY, right.after))))
    keys = due.select(FOREIGN_KEY).where(F.col(FOREIGN_KEY).isNotNull()).distinct()
    spec = table.spec
    wanted = batch.frames.keys(spread(keys, FOREIGN_KEY, spec.key))
    new = restrict(as_versions(table.changes, versions_schema(spec).names), wanted, spec.key)
    versions = batch.state.versions(spec, wanted).unionByName(new)
    # as it was before the batch: how far back a record is looked up must not depend on what came with it
    bound = history_bound(batch.plan, spec)
    return as_of(due, versions, F.col(FOREIGN_KEY), F.col(TIME), spec, bound)


def _late(join: StreamJoinSpec, routed: DataFrame) -> DataFrame:
    row = F.to_json(F.struct(*[named(name) for name in join.left_columns.names]))
    told = f"{join.name}: stream time was past its event time by more than {join.grace} (grace)"
    return routed.where(F.col(ROUTE) == "late").select(
        F.col(POSITION), F.lit("late").alias(REASON), F.lit(told).alias(DETAIL), row.alias(RAW)
    )


def _count_routes(
    routed: DataFrame, uncomputed: Uncomputed, join: StreamJoinSpec
) -> tuple[dict[str, int], datetime | None]:
    """How many records go which way, and the greatest time among those that move stream time."""
    ways = {"at_once": "at_once", "buffered": "waits", "late": "late", "ignored": "ignored"}
    found = aggregated(
        routed,
        F.count(F.lit(1)).alias("received"),
        *[F.count_if(F.col(ROUTE) == way).alias(name) for name, way in ways.items()],
        *times_of(F.col(FOREIGN_KEY).isNotNull()),
        *uncomputed.counted(key_struct(join.left_key)),
    )
    found.pop("oldest")
    newest = from_micros(found.pop("newest"))
    told = uncomputed.taken(found)
    return found | told, newest


def _is_shown(join: StreamJoinSpec) -> Column:
    """Which emissions meet the condition of the join."""
    return F.lit(True) if join.where is None else ~named(FILTERED)


def _count_emissions(emissions: DataFrame, join: StreamJoinSpec, uncomputed: Uncomputed) -> dict[str, int]:
    shown = _is_shown(join)
    key = F.struct(*[named(name) for name in join.joined_key])
    found = aggregated(
        emissions,
        F.count_if(shown).alias("emissions"),
        F.count_if(shown & F.col(RIGHT_HASH).isNull()).alias("unmatched"),
        *uncomputed.counted(key),
    )
    told = uncomputed.taken(found)
    return found | told


def waited(join: StreamJoinSpec, batch: Batch) -> int:
    """How many records waited when the batch began, as the last one counted them."""
    last = batch.journal.last
    if last is None or join.name in batch.plan.bootstrap:
        return 0
    return last.joins.get(join.name, {}).get("waiting", 0)


def reads_again(join: StreamJoinSpec, batch: Batch) -> int:
    """How many records of earlier batches come all at once: the stream's log for a join that begins, or the buffer."""
    if join.name not in batch.plan.bootstrap:
        return waited(join, batch) if batch.plan.kind == "flush" else 0
    log = records_of(join.left)
    version = batch.plan.versions.get(log)
    return 0 if version is None else rows_after(batch.lake.path(log), version, 0)


def leaving(
    join: StreamJoinSpec, stream: StreamBatch, routed: DataFrame, batch: Batch,
    clocks: tuple[datetime | None, datetime | None],
) -> DataFrame:  # fmt: skip
    """What has waited long enough: of the new records, and of those in the stream's log that waited already.

    `clocks`: stream time before and after the batch. What waits on is not read: it may be any number of records.
    """
    before, after = clocks
    flushed = batch.plan.kind == "flush"
    due = F.lit(True) if flushed else is_due(join, after)
    new = routed.where((F.col(ROUTE) == "waits") & due)
    stands_still = after == before and not flushed
    if join.name in batch.plan.bootstrap or before is None or stands_still:
        return new
    log = batch.state.stream_records(
        stream.spec, after=batch.plan.released(join.name), later=moved_back(before, join.grace)
    )
    return new.unionByName(waiting(log, join, before).where(due), allowMissingColumns=True)


def count_waiting(released: DataFrame, buffered: int, join: StreamJoinSpec, batch: Batch) -> dict[str, int]:
    """How many records leave, and how many wait on. The check of the counts holds the latter against the buffer."""
    count = released.count()
    waiting_on = 0 if batch.plan.kind == "flush" else waited(join, batch) + buffered - count
    return {"released": count, "waiting": waiting_on}
