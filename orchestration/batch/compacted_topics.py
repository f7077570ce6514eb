"""Refuses to finish a batch whose input has lost records since a part of it was committed.

A compacted topic drops records that newer ones of their keys replace, within offsets that are still there. What a batch
committed of it before it was cut off has them, and what it reads when it is run again has not.
"""

from lakejoin.orchestration.batch.context import Batch
from lakejoin.orchestration.config import Input
from lakejoin.storage.errors import SourceChanged
from lakejoin.storage.lake.table_counts import row_count


def check_as_committed(batch: Batch, read: Input, log: str, count: int) -> None:
    """Refuse other records of a source with gaps than its log has of the batch already. Raises `SourceChanged`.

    `log`: the table of the lake that they go into, `count`: how many of them do.
    """
    if read.source_format.is_dense or not read.source_format.has_lines:
        return
    before, now = batch.plan.versions.get(log), batch.lake.snapshot(log)
    if now is None or now.version == before:
        return
    committed = row_count(batch.lake, log, now.version)
    committed -= 0 if before is None else row_count(batch.lake, log, before)
    if committed != count:
        raise SourceChanged(
            f"table {read.name}: {count:,} records of {read.source.place} are to be kept, expected {committed:,}, as "
            f"batch {batch.plan.batch} committed before it was cut off: the topic was compacted since. Load it into a "
            "new lake; and let a compacted topic keep its records longer than a run may be interrupted "
            "(min.compaction.lag.ms)."
        )
