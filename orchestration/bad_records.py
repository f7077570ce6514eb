"""`max_bad_ratio`: input of which too much cannot be read is refused before a batch is planned for it.

Once a plan is committed its files may not change any more; here they can still be corrected, and so can the columns.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from orchestration.config import Input, Pipeline
from storage.errors import LakejoinError
from storage.frames import Frames, framing
from storage.lake import Lake
from storage.plan import Plan, PlannedFile
from storage.sources import read_records
from transforms.schemas import CONTEXT, DERIVED, DETAIL, POSITION, REASON


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


def check_bad_ratio(pipeline: Pipeline, spark: SparkSession, draft: Plan) -> None:
    """Parse the input of a plan that is not committed yet, of the tables that limit their share of bad records.

    Raises `TooManyBadRecords`.
    """
    limited = {name: table for name, table in pipeline.inputs.items() if table.max_bad_ratio < 1}
    with framing(spark, Lake(pipeline.lake).scratch(), draft.records) as frames:
        for name, table in limited.items():
            if files := draft.files_of(name):
                _check(table, files, _reasons(table, files, spark, frames))


def _check(table: Input, files: list[PlannedFile], reasons: list[_Reason]) -> None:
    bad = sum(reason.records for reason in reasons)
    total = sum(file.records for file in files)
    if bad <= table.max_bad_ratio * total:
        return
    found = "; ".join(str(reason) for reason in reasons)
    raise TooManyBadRecords(
        f"table {table.name}: {bad:,} of {total:,} new records ({bad / total:.1%}) cannot be read: {found}. Expected "
        f"at most {table.max_bad_ratio:.1%} (max_bad_ratio: {table.max_bad_ratio}). Nothing of the batch was written. "
        "Correct the files, or how they are declared; or raise max_bad_ratio, and they pass into quarantine; then run "
        "again."
    )


def _reasons(table: Input, files: list[PlannedFile], spark: SparkSession, frames: Frames) -> list[_Reason]:
    ranges = [file.range for file in files]
    read = read_records(spark, table.spec.as_read, table.source.parse_options, ranges)
    # kept, because Spark refuses to read of a CSV file nothing but whether its records are whole
    records = frames.keep(read)
    place, position = F.concat_ws(":", F.col(POSITION)["file"], F.col(POSITION)["line"]), F.col(POSITION)
    first = F.concat(place, F.coalesce(F.concat(F.lit(" ("), F.col(DETAIL), F.lit(")")), F.lit("")))
    counted = (
        records.where(F.col(REASON).isNotNull() & ~F.col(CONTEXT) & ~F.col(DERIVED))
        .groupBy(REASON)
        .agg(F.count("*").alias("records"), F.min_by(first, position).alias("first"))
        .orderBy(F.desc("records"), REASON)
    )
    return [_Reason(row[REASON], row["records"], row["first"]) for row in counted.collect()]
