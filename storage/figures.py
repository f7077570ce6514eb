"""Numbers about the tables of a lake, read from their logs and files with delta-rs: no JVM is started."""

from collections import Counter

import pyarrow.dataset as ds

from storage.lake import QUARANTINE, Lake, reading_table
from storage.table_files import live_files
from transforms.schemas import BATCH


def row_count(lake: Lake, table: str, version: int) -> int:
    """Return how many rows a table had at a version: those of its files that no deletion vector deletes."""
    return sum(file.rows - file.deleted for file in live_files(lake.path(table), version))


def quarantined(lake: Lake, through: int) -> dict[str, dict[str, int]]:
    """Return how many records batches up to `through` put in quarantine, by table and reason."""
    snapshot = lake.snapshot(QUARANTINE)
    counts: Counter[tuple[str, str]] = Counter()
    if snapshot is not None:
        dataset = snapshot.delta.to_pyarrow_dataset()
        finished = ds.field(BATCH) <= through
        with reading_table(lake.path(QUARANTINE)):
            for rows in dataset.to_batches(columns=["table", "reason"], filter=finished):
                counts.update(zip(rows["table"].to_pylist(), rows["reason"].to_pylist(), strict=True))
    found: dict[str, dict[str, int]] = {}
    for (table, reason), count in sorted(counts.items()):
        found.setdefault(table, {})[reason] = count
    return found
