"""What finished batches did, in lines and tables: counts by reason, and the seconds of each stage."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestration.cli.terminal import Counts, Row, print_counts, print_table

if TYPE_CHECKING:
    from storage.plan import Published

_HIDDEN = ("changed",)  # applied changes with the derived ones: a number for the stages


def batch_line(batch: "Published") -> str:
    """Return one line about a finished batch."""
    days = f" {batch.dates[0]}" if batch.dates else ""
    days += f" to {batch.dates[-1]}" if len(batch.dates) > 1 else ""
    kind = " (first batch of a new join)" if batch.kind == "bootstrap" else ""
    records = sum(counts["records"] for counts in batch.tables.values())
    joined = sum(counts["emissions"] for counts in batch.joins.values())
    return f"batch {batch.batch}{days}{kind}: {records:,} records, {joined:,} joined rows changed"


def print_summary(batches: Sequence["Published"]) -> None:
    """Print what the batches did together; nothing where there are none."""
    if not batches:
        return
    from orchestration.status import added

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
    shown = {
        name: {reason: count for reason, count in found.items() if reason not in _HIDDEN}
        for name, found in counts.items()
    }
    print_counts("Records by table", "table", shown, ("rows", "records", "applied"))


def print_joins(counts: Counts) -> None:
    """Print what became of the answers of each join's right side, and what the join emitted."""
    print_counts("Answers by join", "join", counts, ("rows", "answers", "applied", "emissions"))
