"""Lists the steps that assets stand for: what a batch counts and times of each, and where it looks things up."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow.dataset as ds

from lakejoin.storage.lake.layout import (
    changes_of,
    history_of,
    joined_of,
    left_rows_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
    versions_of,
)
from lakejoin.transforms.model.schemas import DERIVED, OP, VERDICT


@dataclass(frozen=True)
class DatedLog:
    """A log whose rows have the `{date}` of the record that they are from."""

    kind: str
    """The column that says what became of a row, under the name of a count."""
    rows: ds.Expression | None = None
    """Which rows are counted; None: all."""
    sums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Counts of several kinds together; of no kind: of all rows."""


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
    log: DatedLog | None = None
    """Where a row that it writes has a `{date}`: how such rows are counted."""


STEPS: Mapping[str, Step] = {
    "table": Step(
        ("read", "changes", "quarantine"),
        reads=(changes_of, rows_of),
        base=rows_of,
        log=DatedLog(
            VERDICT, ~ds.field(DERIVED), {"records": (), "out_of_order": ("out_of_order", "history")}
        ),
    ),
    "versions": Step(
        ("changes",),
        ("versions", "history", "expired"),
        reads=(versions_of,),
        base=versions_of,
        log=DatedLog(VERDICT, ds.field(OP) != "truncate", {"versions": ("applied", "history")}),
    ),
    "stream": Step(("read", "records", "quarantine"), log=DatedLog(VERDICT, sums={"records": ()})),
    "buffer": Step(("join",), ("received", "buffered", "late", "released", "waiting")),
    "subscription_log": Step(
        ("subscription_log",),
        ("subscriptions",),
        reads=(subscription_log_of, subscription_store_of),
        base=subscription_store_of,
        log=DatedLog("instruction", sums={"subscriptions": ()}),
    ),
    "response_log": Step(
        ("response_log",),
        ("answers", "applied", "superseded", "stale"),
        log=DatedLog("resolution", sums={"answers": ()}),
    ),
    "joined": Step(
        ("join", "joined"),
        ("emissions", "tombstones", "at_once", "released", "late", "unmatched", "uncomputed"),
        reads=(left_rows_of, joined_of),
    ),
    "changelog": Step(("changelog",), ("emissions", "tombstones")),
    "history": Step(("history",), (), reads=(history_of,)),
}
