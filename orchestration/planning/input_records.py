"""Reads the records of a plan's input: before it is committed, to see whether they are as declared, and in its batch.

What was read before is kept for the batch, which goes on with it. A batch that was interrupted reads its input again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Input, Pipeline
from lakejoin.orchestration.config.schema.stream import Stream
from lakejoin.orchestration.planning.row_expressions import conditions, of_joins
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.planned.planned_file import end_of
from lakejoin.storage.sources.reader import read_records
from lakejoin.storage.spark.kept_frames import Frames, aggregated, framing
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.changelog.filtered_rows import filtered, is_unmet
from lakejoin.transforms.changelog.snapshot_changes import (
    WAS_THERE,
    difference_counts,
    is_found_gone,
    snapshot_changes,
)
from lakejoin.transforms.model.expressions import refuse_failing
from lakejoin.transforms.model.refused_records import judged_once, refuse_places
from lakejoin.transforms.model.schemas import DELETED, HASH, POSITION, POSITION_TYPE, SEQUENCE
from lakejoin.transforms.parsing.ambiguity import MARKS
from lakejoin.transforms.stream_join.records import is_event

THREADS = 8
"""How many sources, or stages of a batch, are worked on side by side; most of the time each waits for Spark."""


@dataclass(frozen=True)
class InputRecords:
    """The source records of a plan, by the names of its tables and streams."""

    pipeline: Pipeline
    spark: SparkSession
    plan: Plan
    frames: Frames
    """What the batch keeps its frames in, too."""
    keeps: bool = True
    """Whether anything is kept; else each look reads the sources."""
    differences: dict[str, dict[str, int]] = field(default_factory=dict)
    """By table, in what a snapshot differs from the rows: the counts of `difference_counts`, and of all `rows`."""
    _kept: dict[str, DataFrame] = field(default_factory=dict)

    def asked(self, name: str) -> DataFrame:
        """The records of a table or stream with the marks of `ParseOptions.asks`; kept for its batch without them."""
        records = self._once(self.read(name, asks=True), name)
        self._kept[name] = records.drop(MARKS)
        return records

    def kept(self, name: str) -> DataFrame:
        """The records of a table or stream, read once, unless it `reads_again`."""
        if name not in self._kept:
            self._kept[name] = self._once(self.read(name), name)
        return self._kept[name]

    def _once(self, records: DataFrame, name: str) -> DataFrame:
        return records if self.reads_again(name) or not self.keeps else self.frames.keep(records)

    def reads_again(self, name: str) -> bool:
        """Whether records are rather read again than kept: many, from files of columns."""
        is_columnar = self._input(name).source_format.is_columnar
        return is_columnar and not self.frames.small and not self.compares(name)

    def compares(self, name: str) -> bool:
        """Whether the records are a snapshot that is compared with the rows there are."""
        is_snapshot = self.plan.kind == "batch" and self._input(name).source.is_snapshot
        return (is_snapshot or self.plan.kind == "reconcile") and self.keeps and self._state.has_rows(name)

    def _input(self, name: str) -> Input:
        return self.pipeline.read_by(self.plan.kind, name)

    @property
    def _state(self) -> State:
        return State(self.spark, Lake(self.pipeline.lake), self.plan)

    def _compared(self, records: DataFrame, name: str) -> DataFrame:
        """What a snapshot changes; where a bad record hides its key, nothing is called gone."""
        table, end = self.pipeline.tables[name].spec, end_of(self.plan.files_of(name)[-1])
        last = Journal(Lake(self.pipeline.lake)).last
        count = last.rows.get(name, 0) if last else 0
        self.frames.expect(count)
        at = F.from_json(F.lit(self.plan.at), table.sequence) if self.plan.at else None
        rows = self._state.all_rows(table, (HASH, DELETED, *([] if at is None else [SEQUENCE])))
        changed = self.frames.keep(snapshot_changes(records, rows, table, _place(*end), at))
        if at is not None:
            place = F.from_json(F.lit(self.plan.place), POSITION_TYPE)
            changed = changed.withColumns({POSITION: place, SEQUENCE: at})
        found = aggregated(changed, *difference_counts(table)) | {"rows": count}
        self.differences[name] = found
        changed = changed.drop(WAS_THERE)
        return changed.where(~is_found_gone()) if found["hidden"] else changed

    def has(self, name: str) -> bool:
        """Whether the records of a table or stream are kept already."""
        return name in self._kept

    def read(self, name: str, *, asks: bool = False, flawless: bool = False) -> DataFrame:
        """Records with the reasons for which a batch refuses them, each by itself; nothing is kept of them.

        `flawless`: see `ParseOptions.flawless`.
        """
        table = self._input(name)
        options = replace(table.parse_options, asks=asks, flawless=flawless)
        spec, names, files = table.spec, table.spec.columns.names, self.plan.files_of(name)
        records = read_records(self.spark, spec.as_read, options, files, table.source_format)
        records = refuse_places(records, names, self.plan.refused_of(name))
        if not flawless:
            records = refuse_failing(records, names, conditions(self.pipeline, name))
        if self.compares(name):
            wanted = records if spec.where is None else records.where(~is_unmet(spec))
            records = self._compared(wanted, name)
        records = filtered(records, spec)
        if flawless:
            return records
        events = [is_event(table.condition)] if isinstance(table, Stream) else []
        records = refuse_failing(records, names, of_joins(self.pipeline, self.plan, name), *events)
        return judged_once(records)


def _place(day: date | None, file: str, line: int) -> Column:
    return F.struct(F.lit(day).alias("date"), F.lit(file).alias("file"), F.lit(line).alias("line")).cast(
        POSITION_TYPE
    )


@contextmanager
def reading(
    pipeline: Pipeline, spark: SparkSession, plan: Plan, *, keeps: bool = True
) -> Iterator[InputRecords]:
    """The records of a plan, and frames to work with them; all that was kept is gone at the end."""
    with framing(spark, Lake(pipeline.lake).scratch(), plan.records) as frames:
        yield InputRecords(pipeline, spark, plan, frames, keeps)
