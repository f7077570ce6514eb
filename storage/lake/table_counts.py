"""Counts rows and quarantined records of a lake's tables from logs and files, with delta-rs and without a JVM."""

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from lakejoin.storage.delta_log.live_files import live_files
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.lake.layout import QUARANTINE, Lake
from lakejoin.transforms.model.schemas import BATCH, POSITION


def row_count(lake: Lake, table: str, version: int) -> int:
    """Return how many rows a table had at a version: those of its files that no deletion vector deletes."""
    return sum(file.rows - file.deleted for file in live_files(lake.path(table), version))


def dated_counts(
    lake: Lake, table: str, batch: int, kind: str, *, which: ds.Expression | None = None
) -> Mapping[date | None, Mapping[str, int]]:
    """Count the rows that a batch wrote to a log, by the `{date}` of their position and what a column says of them.

    `kind`: that column. `which`: leaves out rows. Nothing for a table that is not there.
    """
    day = ds.field("date") if table == QUARANTINE else ds.field(POSITION, "date")
    found: dict[date | None, Counter[str]] = {}
    snapshot = lake.snapshot(table)
    if snapshot is None:
        return found
    own = ds.field(BATCH) == batch
    with reading_table(lake.path(table)):
        rows = snapshot.delta.to_pyarrow_dataset().to_table(
            columns={"date": day, "kind": ds.field(kind)}, filter=own if which is None else own & which
        )
    grouped = rows.group_by(["date", "kind"]).aggregate([([], "count_all")])
    for one, said, count in zip(*grouped.to_pydict().values(), strict=True):
        found.setdefault(one, Counter())[said] += count
    return found


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
