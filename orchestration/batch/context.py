"""Holds what the stages of one batch share, and commits for them: the plan, the tables, commits made, times taken."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.planning.input_records import InputRecords
from lakejoin.storage.delta_table.commits import append, overwrite
from lakejoin.storage.delta_table.direct_scan import LOG_PROPERTIES
from lakejoin.storage.delta_table.file_pruning import FilesRead
from lakejoin.storage.delta_table.uncommitted_files import Written, write
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import (
    QUARANTINE,
    Lake,
)
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.spark.session import jobs_called
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.declaration import UNDECLARED, Declaration
from lakejoin.transforms.model.schemas import BATCH, TIME, by_reference, named

Progress = Callable[[str], None]
GateResult = Future[dict[str, int]]
"""The counts of a join in a batch, once its gate has passed them; what the gate refuses is raised."""

_MOST_ROWS, _LEAST_ROWS = 500_000, 200_000
"""Rows of a file: at most, and at least if a core would otherwise be idle."""


@dataclass(frozen=True)
class JoinResults:
    """What the joins of one kind did in a batch, by their names."""

    counts: Mapping[str, Mapping[str, int]]
    clocks: Mapping[str, datetime | None] = field(default_factory=dict)
    """The time that a join has reached, where it goes by one."""
    inputs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counts of what was read for them beside the tables."""
    settled: Mapping[str, datetime | None] = field(default_factory=dict)
    """Of histories by event time: the time before which nothing can change them any more."""


@dataclass
class Batch:
    """What the stages of one batch share, and how they commit."""

    pipeline: Pipeline
    spark: SparkSession
    lake: Lake
    journal: Journal
    plan: Plan
    accept: Sequence[str]
    progress: Progress
    records: InputRecords
    seconds: dict[str, float] = field(default_factory=dict)
    files: FilesRead = field(default_factory=FilesRead)
    """How many files of the tables the stages read, of how many."""
    written: dict[str, Written] = field(default_factory=dict)
    """Rows of stages that are in files and not yet committed."""
    committed: list[str] = field(default_factory=list)
    quarantine: Lock = field(default_factory=Lock)
    """For the one table that several stages write: where two make it at once, Delta lets one of them fail."""

    @property
    def frames(self) -> Frames:
        """What the stages keep their frames in."""
        return self.records.frames

    @property
    def state(self) -> State:
        """The tables as the plan pins them."""
        return State(self.spark, self.lake, self.plan, self.files)

    def jobs_of(self, stage: str) -> AbstractContextManager[None]:
        """Name Spark's jobs by pipeline, batch and stage meanwhile."""
        return jobs_called(self.spark, f"{self.pipeline.name}, batch {self.plan.batch}: {stage}")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage and say that it runs; its jobs go by its name."""
        self.progress(name)
        started = time.monotonic()
        try:
            with self.jobs_of(name):
                yield
        finally:
            self.seconds[name] = round(self.seconds.get(name, 0) + time.monotonic() - started, 3)

    def write(
        self, stage: str, table: str, rows: DataFrame, count: int,
        properties: Mapping[str, str] = LOG_PROPERTIES, declared: Declaration = UNDECLARED,
    ) -> DataFrame | None:  # fmt: skip
        """Put the first rows of a table into files, for its stage to commit; return them as read from there.

        None where there is a table already: from this batch, which was interrupted, or from an earlier time.
        """
        if self.lake.snapshot(table) is not None:
            return None
        with self.stage(stage):
            transaction = self.journal.transaction(stage, self.plan.batch)
            written = write(_in_files(rows, count), self.lake.path(table), transaction, properties, declared)
        if written is None:
            return None
        self.written[stage] = written
        return written.read()

    def close(self, stages: Iterable[str] | None = None) -> None:
        """Remove the rows of all stages, or of these, that are in files and were not committed."""
        for stage in list(self.written) if stages is None else stages:
            if written := self.written.pop(stage, None):
                written.remove()

    def append(  # noqa: PLR0913
        self, stage: str, table: str, rows: DataFrame, count: int,
        properties: Mapping[str, str] = LOG_PROPERTIES, *, makes: bool = False, declared: Declaration = UNDECLARED,
    ) -> None:  # fmt: skip
        """Commit a stage's rows to its log; nothing where there are none.

        `makes`: the table begins with these rows, if any, in the place of what is there from before.
        """
        if count == 0 and not makes:
            return
        with self.stage(stage), self.quarantine if table == QUARANTINE else nullcontext():
            transaction, path = self.journal.transaction(stage, self.plan.batch), self.lake.path(table)
            rows, first = _in_files(self.for_log(rows), count), self.written.pop(stage, None)
            if makes and first is None:
                overwrite(rows, path, transaction, properties, declared)
            else:
                append(rows, path, transaction, properties, first=first, declared=declared)
        self.committed.append(stage)

    def append_judged(
        self, stage: str, table: str, rows: DataFrame, gate_result: GateResult, count: str, *, makes: bool
    ) -> None:
        """Commit a stage's rows to its log if the gate lets them pass; a few are in files by then.

        `count`: which of the gate_result's counts is that of the rows. `makes`: as for `append`.
        """
        if makes or not self.frames.small:
            self.append(stage, table, rows, gate_result.result()[count], makes=makes)
            return
        with self.stage(stage):
            append(
                self.for_log(rows).coalesce(1), self.lake.path(table),
                self.journal.transaction(stage, self.plan.batch), LOG_PROPERTIES,
                ready=lambda: gate_result.result()[count] > 0,
            )  # fmt: skip
        if gate_result.result()[count]:
            self.committed.append(stage)

    def for_log(self, rows: DataFrame) -> DataFrame:
        """Rows as a log takes them: with the number of the batch, before everything else."""
        # delta-rs loses the statistics of a column that has a struct without any before it
        others = [named(name) for name in rows.columns if name != BATCH]
        return self.numbered(rows).select(named(BATCH), *others)

    def commits_by_table(self) -> Mapping[str, int]:
        """How many commits the stages of this batch made to each table, by its name below the lake."""
        return Counter(self.journal.table_of(stage) for stage in self.committed)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """Rows as they are committed: with the number of the batch."""
        return rows.withColumn(BATCH, by_reference(F.lit(self.plan.batch).cast("bigint")))

    def timed(self, changes: DataFrame) -> DataFrame:
        """Changes of a table as they are committed: with the batch's clock where they have no time."""
        return changes.withColumn(TIME, F.coalesce(TIME, by_reference(F.lit(self.plan.planned_at))))


def _in_files(rows: DataFrame, count: int) -> DataFrame:
    return rows.coalesce(files_for(count, rows.sparkSession.sparkContext.defaultParallelism))


def files_for(count: int, cores: int) -> int:
    """Return into how many files to write these rows: as few as possible, but the same number for each core.

    A file is written by the task that makes its rows, so few files would leave cores idle.
    """
    fewest = max(1, -(-count // _MOST_ROWS))
    even = -(-fewest // cores) * cores
    return min(even, max(fewest, count // _LEAST_ROWS))
