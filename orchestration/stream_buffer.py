"""The buffer of a stream's join, which is a range of the stream's log (decision 9): what leaves it, what waits on."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration.batch.context import Batch
from orchestration.batch.streams.stream import StreamBatch
from storage.delta_log.live_files import rows_after
from storage.lake.layout import records_of
from transforms.model.event_time import moved_back
from transforms.model.specs import StreamJoinSpec
from transforms.stream_join.table_join import ROUTE, is_due, waiting


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
