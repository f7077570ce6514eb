"""Counts rows and quarantined records of a lake's tables from logs and files, with delta-rs and without a JVM."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from storage.delta_log.live_files import live_files
from storage.delta_log.snapshot import reading_table
from storage.lake.layout import QUARANTINE, Lake
from transforms.model.schemas import BATCH


def row_count(lake: Lake, table: str, version: int) -> int:
    """Return how many rows a table had at a version: those of its files that no deletion vector deletes."""
    return sum(file.rows - file.deleted for file in live_files(lake.path(table), version))


class Quarantined(NamedTuple):
    """What records in quarantine are counted by."""

    table: str
    file: str
    reason: str
    batch: int


def quarantined(lake: Lake, through: int) -> Mapping[Quarantined, int]:
    """Return how many records batches up to `through` put in quarantine."""
    snapshot = lake.snapshot(QUARANTINE)
    counts: Counter[Quarantined] = Counter()
    if snapshot is None:
        return counts
    columns = ["table", "file", "reason", BATCH]
    dataset = snapshot.delta.to_pyarrow_dataset()
    with reading_table(lake.path(QUARANTINE)):
        for rows in dataset.to_batches(columns=columns, filter=ds.field(BATCH) <= through):
            grouped = pa.Table.from_batches([rows]).group_by(columns).aggregate([([], "count_all")])
            for *place, count in zip(*grouped.to_pydict().values(), strict=True):
                counts[Quarantined(*place)] += count
    return counts
