"""The race itself: batch after batch, every contender's turn, measured, then checked."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from bench.contest.check import check
from bench.contest.contender import Contender, Work
from bench.contest.cost import Cost, Scope, measure
from bench.contest.current import CurrentRows
from bench.contest.jvm import collect_garbage, jobs

Item = TypeVar("Item")


@dataclass(frozen=True)
class Round:
    """A contender's turn at a batch."""

    contender: str
    batch: int
    started: datetime
    cost: Cost
    work: Work
    maintenance: Cost
    """What was done after the batch, before the next."""


class Race:
    """Contenders who take turns at the batches of a workload; they may share a Spark session, never a clock."""

    def __init__(
        self,
        spark: SparkSession,
        workload: Path,
        contenders: Sequence[Contender],
        current: CurrentRows | None,
    ) -> None:
        self._spark, self._workload = spark, workload
        self._contenders, self._current = contenders, current
        self._others = tuple(c.pid for c in contenders if c.pid is not None)

    def rounds(self, batches: int, *, checked: bool) -> Iterator[Round]:
        """Run the first load, which is batch 0, and so many batches. Raises `WrongAnswer` where `checked`."""
        for batch in range(batches + 1):
            if batch and self._current is not None:
                self._current.advance(batch)
            for contender in in_turn(self._contenders, batch):
                turn = self._round(contender, batch)
                if checked:
                    check(contender.joined(), contender.name, self._workload, batch)
                yield turn

    def _round(self, contender: Contender, batch: int) -> Round:
        scope = Scope(
            pid=contender.pid or os.getpid(),
            without=() if contender.pid else self._others,
            folder=contender.folder,
            jobs=lambda: jobs(self._spark),
        )
        contender.prepare(batch)
        collect_garbage(self._spark)
        started = datetime.now(UTC)
        work, cost = measure(lambda: contender.run(batch), scope)
        _, maintenance = measure(contender.maintain, scope)
        return Round(contender.name, batch, started, cost, work, maintenance)


def in_turn(items: Sequence[Item], batch: int) -> Sequence[Item]:
    """Return the items with another first one at each batch, so that nobody always runs behind the same."""
    first = batch % len(items) if items else 0
    return [*items[first:], *items[:first]]
