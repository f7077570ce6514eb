"""The table of targets: ten rows, the first of them at three sizes of the tables."""

from collections.abc import Sequence
from dataclasses import dataclass

LEFT_ROWS = 1_500_000
"""Rows of the left table at scale 1; the right one has a tenth."""
CHANGES = (10_000, 100)
"""Left and right rows of a batch, unless a row says otherwise."""
HOT_SHARE = 0.01
PEERS = "Kafka Streams 6,500-20,000, Pathway 28,000, Flink SQL 30,000-43,000"
"""Rows a second on this workload on one such core, as they were measured elsewhere."""


@dataclass(frozen=True)
class Target:
    """What a figure must reach, and what it should."""

    row: int
    scale: float
    """Of the tables that it is about; where two sizes are compared, the larger."""
    what: str
    must: float
    aim: float
    unit: str = "times"
    more_is_better: bool = False

    def reached(self, value: float) -> str:
        """In a word, what a measured value reaches."""
        for bound, name in ((self.aim, "aim"), (self.must, "must")):
            if value >= bound if self.more_is_better else value <= bound:
                return name
        return "no"

    def shown(self, value: float) -> str:
        """A value in the unit of the target."""
        number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
        return f"{number} MiB" if self.unit == "MiB" else number

    def bound(self, value: float) -> str:
        """A bound with its direction."""
        return f"{'≥' if self.more_is_better else '≤'} {self.shown(value)}"


_BATCH = "10,000 left and 100 right changes: times faster than Spark's recompute, at {} rows"

TARGETS: Sequence[Target] = (
    Target(1, 1, _BATCH.format("1.5 M"), 1.0, 1.5, more_is_better=True),
    Target(1, 5, _BATCH.format("7.5 M"), 2, 5, more_is_better=True),
    Target(1, 10, _BATCH.format("15 M"), 3, 10, more_is_better=True),
    Target(2, 10, "the same batch at 15 M rows against itself at 1.5 M", 3.0, 1.5),
    Target(
        3, 5, "100,000 left and 1,000 right changes at 7.5 M rows: times faster than the recompute",
        1.3, 2.5, more_is_better=True,
    ),
    Target(4, 1, "one change, warm, at 1.5 M rows, against a MERGE of one row into the same joined table", 3, 2),
    Target(5, 1, "a run that finds nothing, without a JVM, against the start of a Spark session", 0.3, 0.1),
    Target(6, 1, "first load of 1.5 M and 150,000 rows, against Spark's read-join-write of them", 4, 2.5),
    Target(
        7, 5, "one right row changes that 1 % of 7.5 M left rows point at, against the batch of row 1", 2, 1.5
    ),
    Target(8, 1, "live bytes after 50 batches and maintenance, against compacted inputs and output", 3, 2),
    Target(
        9, 1, "batch against recompute: batches 180-200 against batches 10-30, with maintenance", 1.25, 1.10
    ),
    Target(
        10, 10, "15 M rows in 4 GiB of heap; peak of Python's memory there less that at 1.5 M", 50, 20, "MiB"
    ),
)  # fmt: skip
