"""Reads one stream in one batch: its source records, each with its status."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from lakejoin.orchestration.batch.compacted_topics import check_as_committed
from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.batch.quarantine import only_open
from lakejoin.orchestration.batch.tables.verdicts import VERDICTS
from lakejoin.orchestration.planning.pending_input import check_read
from lakejoin.storage.lake.layout import records_of
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.transforms.model.event_time import from_micros, instant, moved_back, refuse_times, times_of
from lakejoin.transforms.model.ignored_records import ignored_counts, without_none
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.schemas import (
    BATCH,
    DETAIL,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIME,
    VERDICT,
    empty,
    named,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.stream_join.records import is_event, judge_records, stream_schema
from lakejoin.transforms.stream_join.table_join import ACCEPTED

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class StreamBatch:
    """What a batch knows of a stream."""

    spec: TableSpec
    records: DataFrame
    """Every record with its status: columns of `stream_schema`, reason, detail, raw."""
    counts: dict[str, int]
    oldest: datetime | None = None
    newest: datetime | None = None
    """Least and greatest event time of the applied records."""

    @property
    def applied(self) -> DataFrame:
        """The records that are events of the stream, and new."""
        return self.records.where(F.col(VERDICT) == "applied")

    @property
    def log(self) -> DataFrame:
        """Rows of `streams/S/records`; batch and time first, for their statistics."""
        names = stream_schema(self.spec).names
        rows = self.records.where(F.col(VERDICT) != "quarantined").withColumn(
            BATCH, F.lit(None).cast("bigint")
        )
        return rows.select(named(BATCH), named(TIME), *[named(n) for n in names if n not in (BATCH, TIME)])

    @property
    def quarantined(self) -> DataFrame:
        """The records that could not be accepted."""
        return self.records.where(F.col(VERDICT) == "quarantined")

    def without(self, late: DataFrame, count: int) -> "StreamBatch":
        """The same with status `late` for `count` records, given by their position, that no join took."""
        found = late.select(POSITION).withColumn("_lj_late", F.lit(True))
        verdict = F.when(F.col("_lj_late"), "late").otherwise(F.col(VERDICT))
        joined = self.records.join(found, POSITION, "left").withColumn(VERDICT, verdict)
        records = joined.select(*map(named, self.records.columns))
        moved = {"late": count, "applied": self.counts["applied"] - count}
        return replace(self, records=records, counts=self.counts | moved)


def read_stream(batch: Batch, name: str) -> StreamBatch:
    """Read a stream's source records of a batch, and give each its status."""
    stream, files = batch.pipeline.streams[name], batch.plan.files_of(name)
    spec = stream.spec
    if not files:
        return _untouched(batch, spec)
    with batch.stage(f"read/{name}"):
        ahead, events = batch.records.has(name), is_event(stream.condition)
        parsed = batch.records.kept(name) if ahead else batch.records.read(name)
        if batch.plan.kind == "retry":
            parsed = only_open(parsed, name, batch)
        timed = refuse_times(parsed, spec, batch.plan.planned_at, events)
        seen = None
        if spec.sequence != POSITION_TYPE:
            timed = timed if ahead else batch.frames.keep(timed)
            seen = _seen(batch, timed, spec, events)
        records = batch.frames.keep(judge_records(timed, seen, spec, stream.condition))
        read = _counted(spec, records)
        check_read(stream, files, None if batch.plan.kind == "retry" else read.counts["records"])
        logged = read.counts["records"] - read.counts["quarantined"]
        check_as_committed(batch, stream, records_of(name), logged)
    return read


def _seen(batch: Batch, records: DataFrame, stream: TableSpec, which: Column) -> DataFrame:
    """Key and sequence of earlier records of the same keys; a repeated record has the time it had before.

    `which`: records that are events of the stream. The others repeat nothing, however old they are.
    """
    oldest = from_micros(aggregated(records, *times_of(which & F.col(REASON).isNull()))["oldest"])
    identity = (*stream.key, SEQUENCE)
    if oldest is None:
        schema = stream_schema(stream)
        return empty(batch.spark, StructType([schema[name] for name in identity]))
    log = batch.state.stream_records(stream, later=moved_back(oldest, _TICK))
    before = log.where((F.col(TIME) >= instant(oldest)) & F.col(VERDICT).isin(*ACCEPTED))
    keys = batch.frames.keys(records.select(*map(named, stream.key)).distinct())
    return restrict(before, keys, stream.key).select(*map(named, identity))


def _counted(stream: TableSpec, records: DataFrame) -> StreamBatch:
    counts = aggregated(
        records,
        F.count(F.lit(1)).alias("records"),
        *[F.count_if(F.col(VERDICT) == verdict).alias(verdict) for verdict in VERDICTS],
        *ignored_counts(F.col(VERDICT) == "ignored"),
        *times_of(F.col(VERDICT) == "applied"),
    )
    oldest, newest = from_micros(counts.pop("oldest")), from_micros(counts.pop("newest"))
    return StreamBatch(stream, records, without_none(counts), oldest, newest)


def _untouched(batch: Batch, stream: TableSpec) -> StreamBatch:
    schema = stream_schema(stream)
    for name in (REASON, DETAIL, RAW):
        schema = schema.add(name, StringType())
    records = empty(batch.spark, schema)
    return StreamBatch(stream, records, dict.fromkeys(("records", *VERDICTS), 0))
