"""Refuses input before its plan is committed: too many bad records or deletes, or columns that are not declared.

`max_bad_ratio` limits the share of bad records, `max_deleted` that of rows a snapshot deletes, and
`on_schema_change: fail` asks for the declared columns. Once a plan is committed its files may not change any more; here
files and columns can still be corrected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Input, Pipeline
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.orchestration.config.schema.stream import Stream
from lakejoin.orchestration.planning.input_records import InputRecords
from lakejoin.orchestration.planning.pending_input import blamed, new_parts, paths_text
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.rows.schema_check import Difference
from lakejoin.transforms.model.event_time import has_time, refuse_times
from lakejoin.transforms.model.schemas import CONTEXT, DERIVED, DETAIL, POSITION, REASON
from lakejoin.transforms.stream_join.records import is_event, judge_records

_SHOWN = 10


class TooManyBadRecords(LakejoinError):
    """A larger share of a table's records cannot be read than `max_bad_ratio` allows: correct them, or allow more."""


@dataclass(frozen=True)
class _Reason:
    """Bad records with the same reason."""

    text: str
    records: int
    first: str
    """Where the first of them is, and what is wrong with it."""

    def __str__(self) -> str:
        return f"{self.records:,} {self.text}, the first in {self.first}"


def check_bad_ratio(pipeline: Pipeline, read: InputRecords) -> None:
    """Count the records of a plan that is not committed yet, of the tables that limit their share of bad ones.

    Each `{date}` is looked at by itself, so that many good days do not hide a bad one. Raises `TooManyBadRecords`.
    """
    for name, table in pipeline.inputs.items():
        if table.max_bad_ratio < 1 and (files := read.plan.files_of(name)):
            found = _counted(_judged(table, read.kept(name), read.plan.planned_at))
            if read.compares(name):  # rows that did not change are no records any more
                found = {
                    day: (sum(file.records for file in files if file.date == day), reasons)
                    for day, (_, reasons) in found.items()
                }
            for total, reasons in found.values():
                _check(table, total, reasons)


def _check(table: Input, total: int, reasons: list[_Reason]) -> None:
    bad = sum(reason.records for reason in reasons)
    if bad <= table.max_bad_ratio * total:
        return
    found = "; ".join(str(reason) for reason in reasons)
    raise TooManyBadRecords(
        f"table {table.name}: {bad:,} of {total:,} new records ({bad / total:.1%}) cannot be read: {found}. Expected "
        f"at most {table.max_bad_ratio:.1%} (max_bad_ratio: {table.max_bad_ratio}). Nothing of the batch was written. "
        "Correct the files, or how they are declared; or raise max_bad_ratio, and they pass into quarantine; then run "
        "again."
    )


def _counted(records: DataFrame) -> dict[date | None, tuple[int, list[_Reason]]]:
    """By `{date}`, in their order: how many records there are, and the bad ones by their reasons."""
    place, position = F.concat_ws(":", F.col(POSITION)["file"], F.col(POSITION)["line"]), F.col(POSITION)
    first = F.concat(place, F.coalesce(F.concat(F.lit(" ("), F.col(DETAIL), F.lit(")")), F.lit("")))
    counted = (
        records.groupBy(F.col(POSITION)["date"].alias("date"), REASON)
        .agg(F.count("*").alias("records"), F.min_by(first, position).alias("first"))
        .orderBy("date", F.desc("records"), REASON)
    )
    found = dict[date | None, tuple[int, list[_Reason]]]()
    for row in counted.collect():
        total, reasons = found.get(row["date"], (0, []))
        bad = [] if row[REASON] is None else [_Reason(row[REASON], row["records"], row["first"])]
        found[row["date"]] = (total + row["records"], [*reasons, *bad])
    return found


def _judged(table: Input, records: DataFrame, planned_at: datetime) -> DataFrame:
    """The records with the reasons that a batch finds in each of them, whatever else there is."""
    own, spec = records.where(~F.col(CONTEXT) & ~F.col(DERIVED)), table.spec
    match table:
        case Stream():
            timed = refuse_times(own, spec, planned_at, is_event(table.condition))
            return judge_records(timed, None, spec, table.condition)
        case Table() if table.versioned:
            return refuse_times(own, spec, planned_at, has_time())
    return own


class TooManyDeleted(LakejoinError):
    """A snapshot lacks a larger share of a table's rows than `max_deleted` allows: it may have been cut off."""


def check_deleted(pipeline: Pipeline, read: InputRecords) -> None:
    """Compare the snapshots of a plan, not committed yet, with the rows there are. Raises `TooManyDeleted`."""
    for name in pipeline.tables:
        if read.plan.files_of(name) and read.compares(name):
            read.kept(name)
            table, found = pipeline.read_by(read.plan.kind, name), read.differences[name]
            gone, rows = 0 if found["hidden"] else found["gone"], found["rows"]
            most = table.source.max_deleted
            if gone > most * rows:
                taken = table.source_format.only_snapshots
                again = "the next run takes another dump" if taken else "put a whole one in its place"
                raise TooManyDeleted(
                    f"table {name}: the snapshot {paths_text(read.plan.files_of(name))} lacks {gone:,} of {rows:,} "
                    f"rows ({gone / rows:.1%}). Expected at most {most:.1%} (max_deleted). Nothing of the batch was "
                    f"written. If it was cut off, {again}; if so many rows are gone, raise max_deleted for one run. "
                    "Then run again."
                )


class SchemaChanged(LakejoinError):
    """The columns of new files are not those that are declared: declare them as they are, or correct the files."""


def check_schemas(pipeline: Pipeline, spark: SparkSession, files: Sequence[PlannedFile]) -> None:
    """Compare new parts of files with the declared columns, for the sources that ask for it.

    Raises `SchemaChanged` with every difference, and `SourceError` for a file that cannot be read.
    """
    for table, ranges in new_parts(pipeline, files):
        if table.source.on_schema_change == "fail":
            spec, options, strict = table.spec, table.parse_options, table.source.strict
            with blamed(table):
                found = table.source_format.differences(spark, spec, options, ranges, strict=strict)
            if found:
                raise _changed(table, found)


def _changed(table: Input, found: Sequence[Difference]) -> SchemaChanged:
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return SchemaChanged(
        f"table {table.name}: its source has other columns than are declared: "
        f"{'; '.join(map(str, found[:_SHOWN]))}{more}. Nothing of the batch was written. Correct the files, or "
        "declare the columns as they are now: a lake with rows takes new and wider ones by `lakejoin migrate FILE`, "
        "other types only a new lake. Or set `on_schema_change: ignore`. Then run again."
    )
