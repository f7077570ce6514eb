"""Prints what finished batches did, in lines and tables: counts by reason, and the seconds of each stage."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakejoin.orchestration.cli.terminal import Counts, Row, print_counts, print_table

if TYPE_CHECKING:
    from lakejoin.orchestration.checks.figures import Figure
    from lakejoin.storage.lake.plan import Published

_TABLE = (
    "rows", "records", "applied", "out_of_order", "duplicate", "tombstone", "expired", "late", "ignored", "quarantined",
    "filtered", "unchanged", "withheld", "restored", "history", "tie", "inserted", "removed",
)  # fmt: skip
_JOIN = (
    "rows",
    "subscriptions",
    "answers",
    "applied",
    "superseded",
    "stale",
    "emissions",
    "tombstones",
    "uncomputed",
)
_STREAM_JOIN = (
    "rows", "received", "at_once", "buffered", "late", "ignored", "released", "waiting", "emissions", "unmatched",
    "uncomputed",
)  # fmt: skip
"""What is said of a table, of a join of tables and of the join of a stream, in this order."""
_ALWAYS = {"rows", "records", "applied", "subscriptions", "answers", "received", "emissions"}
"""What is said even where it did not occur."""


def batch_line(batch: "Published") -> str:
    """Return one line about a finished batch."""
    days = f" {batch.dates[0]}" if batch.dates else ""
    days += f" to {batch.dates[-1]}" if len(batch.dates) > 1 else ""
    kind = {"bootstrap": " (a join begins)", "batch": ""}.get(batch.kind, f" ({batch.kind})")
    did = f"{sum(counts['records'] for counts in batch.tables.values()):,} records"
    if batch.joins:
        did += f", {sum(counts.get('emissions', 0) for counts in batch.joins.values()):,} joined rows changed"
    return f"batch {batch.batch}{days}{kind}: {did}"


def print_summary(batches: Sequence["Published"]) -> None:
    """Print what the batches did together; nothing where there are none."""
    if not batches:
        return
    from lakejoin.orchestration.show.status import added

    print_tables(added([batch.tables for batch in batches]))
    print_joins(added([batch.joins for batch in batches]))
    print_seconds(batches)


def print_seconds(batches: Sequence["Published"]) -> None:
    """Print the seconds of each stage; stages run beside each other, so their sum is more than has passed."""
    seconds: Counter[str] = Counter()
    for batch in batches:
        seconds.update(batch.seconds)
    rows: list[Row] = [(stage, float(spent)) for stage, spent in seconds.items()]
    print_table("Seconds by stage", ["stage", "seconds"], rows)


def print_tables(counts: Counts) -> None:
    """Print what became of the source records of each table."""
    print_counts("Records by table", "table", counts, _shown(_TABLE, counts))


def print_joins(counts: Counts) -> None:
    """Print what became of the answers of each join's right side, or of a stream's records, and what was emitted."""
    of_streams = {name: found for name, found in counts.items() if "received" in found}
    others = {name: found for name, found in counts.items() if name not in of_streams}
    of_groups = {
        name: found for name, found in others.items() if "emissions" in found and "answers" not in found
    }
    others = {name: found for name, found in others.items() if name not in of_groups}
    if others or not (of_streams or of_groups):
        print_counts("Answers by join", "join", others, _shown(_JOIN, others))
    if of_groups:
        print_counts("Changes by groups", "groups", of_groups, _shown(_JOIN, of_groups))
    if of_streams:
        print_counts("Records by join of a stream", "join", of_streams, _shown(_STREAM_JOIN, of_streams))


def print_figures(figures: Sequence["Figure"]) -> None:
    """Print what the file expects of tables and streams, and what was found; nothing where it expects nothing."""
    rows: list[Row] = [
        (
            figure.subject,
            figure.name,
            figure.told,
            figure.bound.text,
            "within" if figure.holds else "unknown" if figure.found is None else "EXCEEDED",
        )
        for figure in figures
    ]
    if rows:
        print_table("Figures that the file bounds", ["table", "figure", "found", "expected", "result"], rows)


def _shown(order: Sequence[str], counts: Counts) -> Mapping[str, bool]:
    """Leave out what was not counted at all: a run knows no rows, a lake without batches no reasons."""
    known = dict.fromkeys(reason for found in counts.values() for reason in found)
    kinds = [reason for reason in known if reason.startswith("ignored_")]
    reasons = [each for reason in order for each in (reason, *(kinds if reason == "ignored" else ()))]
    return {reason: reason in _ALWAYS for reason in reasons if reason in known}
