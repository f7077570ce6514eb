"""Lists the steps that assets stand for: what a batch counts and times of each, and where it looks things up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from storage.lake.layout import (
    changes_of,
    joined_of,
    left_rows_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
    versions_of,
)


@dataclass(frozen=True)
class Step:
    """A step of a table, a stream or a join."""

    stages: tuple[str, ...]
    """The stages of a batch that it takes."""
    counts: tuple[str, ...] | None = None
    """The counts of a batch that are about it; None for all of its table's or stream's."""
    reads: tuple[Callable[[str], str], ...] = ()
    """Tables in which a batch looks something up."""
    base: Callable[[str], str] | None = None
    """The table that its log is folded into."""


STEPS: Mapping[str, Step] = {
    "table": Step(("read", "changes", "quarantine"), reads=(changes_of, rows_of), base=rows_of),
    "versions": Step(
        ("changes",), ("versions", "history", "expired"), reads=(versions_of,), base=versions_of
    ),
    "stream": Step(("read", "records", "quarantine")),
    "buffer": Step(("join",), ("received", "buffered", "late", "released", "waiting")),
    "subscription_log": Step(
        ("subscription_log",),
        ("subscriptions",),
        reads=(subscription_log_of, subscription_store_of),
        base=subscription_store_of,
    ),
    "response_log": Step(("response_log",), ("answers", "applied", "superseded", "stale")),
    "joined": Step(
        ("join", "joined"),
        ("emissions", "tombstones", "at_once", "released", "late", "unmatched", "uncomputed"),
        reads=(left_rows_of, joined_of),
    ),
    "changelog": Step(("changelog",), ("emissions", "tombstones")),
}
