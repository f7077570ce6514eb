"""The race itself: batch after batch, every contender's turn, measured, then checked."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from bench.contest.check import check
from bench.contest.contender import Contender, StageBytes, Work
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
    stage_bytes: StageBytes
    maintenance: Cost
    """What was done after the batch, before the next."""
    stored: Mapping[str, int]
    """Bytes of its tables after that, by table."""


@dataclass(frozen=True)
class Course:
    """What is run of a workload."""

    batches: int
    """The last of them."""
    checked: bool = True
    """A wrong answer ends the race. It is looked for where rivals take part: one that is wrong stays wrong."""
    lake: Path | None = None
    """A first load of ours that was kept; there is no other then."""
    keep: Path | None = None
    """Where ours is kept after the first load."""
    rivals_every: int = 1
    """Who recomputes takes part in every so manieth batch, in the load and in the last."""
    maintain_every: int = 0
    """After every so manieth batch all of the lake's maintenance is done; 0: what is due, after each."""
    by_stage: bool = False
    """What each stage read and wrote is asked of Spark, behind each turn."""

    def takes_part(self, contender: Contender, batch: int) -> bool:
        """Whether it is a contender's turn at a batch."""
        if batch == 0:
            return contender.loads
        return not contender.recomputes or self._is_met(batch)

    def checks(self, batch: int) -> bool:
        """Whether the answers to a batch are held against the expected ones."""
        return self.checked and self._is_met(batch)

    def maintains(self, batch: int) -> bool:
        """Whether everything is maintained after a batch."""
        return self.maintain_every > 0 and batch > 0 and batch % self.maintain_every == 0

    def _is_met(self, batch: int) -> bool:
        return batch % self.rivals_every == 0 or batch == self.batches


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

    def rounds(self, course: Course) -> Iterator[Round]:
        """Run the first load, which is batch 0, and the batches. Raises `WrongAnswer` where answers are checked."""
        if course.lake is None:
            yield from self._turns(course, 0)
            if course.keep is not None:
                for contender in self._contenders:
                    contender.keep(course.keep)
        for contender in self._contenders:
            contender.start()
        for batch in range(1, course.batches + 1):
            if self._current is not None:
                self._current.advance(batch)
            yield from self._turns(course, batch)

    def _turns(self, course: Course, batch: int) -> Iterator[Round]:
        for contender in in_turn(self._contenders, batch):
            if course.takes_part(contender, batch):
                turn = self._round(course, contender, batch)
                if course.checks(batch):
                    check(contender.joined(), contender.name, self._workload, batch)
                yield turn

    def _round(self, course: Course, contender: Contender, batch: int) -> Round:
        scope = Scope(
            pid=contender.pid or os.getpid(),
            without=() if contender.pid else self._others,
            folder=contender.folder,
            jobs=lambda: jobs(self._spark),
        )
        contender.prepare(batch)
        collect_garbage(self._spark)
        started = datetime.now(UTC)
        first_job = scope.jobs()
        work, cost = measure(lambda: contender.run(batch), scope)
        by_stage = contender.stage_bytes(first_job) if course.by_stage else {}
        everything = course.maintains(batch)
        _, maintenance = measure(lambda: contender.maintain(everything=everything), scope)
        return Round(contender.name, batch, started, cost, work, by_stage, maintenance, contender.stored())


def in_turn(items: Sequence[Item], batch: int) -> Sequence[Item]:
    """Return the items with another first one at each batch, so that nobody always runs behind the same."""
    first = batch % len(items) if items else 0
    return [*items[first:], *items[:first]]
