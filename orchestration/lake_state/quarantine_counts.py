"""Counts the records in quarantine, without a JVM."""

from collections.abc import Mapping

from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.table_counts import quarantined

LATE = "late"
"""Reason of a record that was read, and came after its grace period: reading it again would change nothing."""


def without_late(reasons: Mapping[str, int]) -> dict[str, int]:
    """Return the counts by reason of what would be read again."""
    return {reason: count for reason, count in reasons.items() if reason != LATE}


def open_counts(lake: Lake, journal: Journal) -> dict[str, dict[str, int]]:
    """Count the records in quarantine after the last finished batch by table and reason, without a JVM.

    Late records are counted, too: that they are there is final.
    """
    if journal.last is None:
        return {}
    # what was open in a file then was either read or ended by it: only what came later is open still
    since = {(f.table, f.name): p.batch for p in journal.finished("replace", "retry") for f in p.files}
    found: dict[str, dict[str, int]] = {}
    for of, count in sorted(quarantined(lake, journal.last.batch).items()):
        if of.reason == LATE or of.batch >= since.get((of.table, of.file), 0):
            reasons = found.setdefault(of.table, {})
            reasons[of.reason] = reasons.get(of.reason, 0) + count
    return found
