"""Applies a batch to a table that takes files in the place of what they were (`lakejoin run --replace`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.batch.tables.verdicts import LOGGED, count_verdicts, with_set_aside
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.reader import read_records
from lakejoin.storage.spark.kept_frames import Frames, aggregated
from lakejoin.storage.state.pinned_state import State, known_changes
from lakejoin.transforms.changelog.apply_changes import apply_changes
from lakejoin.transforms.changelog.replaced_files import as_records, settle_replaced
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.refused_records import is_by_hand, with_refused_deletes
from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DELETED,
    HASH,
    INSERTED,
    OP,
    POSITION,
    REASON,
    SEQUENCE,
    TIME,
    VERDICT,
    empty,
    named,
    rows_schema,
)
from lakejoin.transforms.model.specs import TableSpec

_LAST = "_lj_last"


class ReplaceRefused(LakejoinError):
    """A file cannot be taken in the place of what it was: its effect reaches beyond its own records."""


@dataclass(frozen=True)
class Files:
    """Files of a table that a batch takes in the place of what they were."""

    names: list[str]
    before: Mapping[str, int]
    """Files that were so taken in earlier batches, by name, with the last batch."""


def replace_batch(
    table: TableSpec, records: DataFrame, files: Files, state: State, frames: Frames,
    *, needed: Callable[[], list[str]],
) -> TableBatch:  # fmt: skip
    """Apply the records of every key of some files anew, with the files' new content in the place of the old.

    `records`: what the parsers yield of the files as they are now. `needed`: columns of the rows before the batch that
    joins read.
    The whole of `tables/T/changes` is read.
    """
    known = known_changes(state, table, files.before)
    in_files = F.col(POSITION)["file"].isin(*files.names)
    old = known.where(in_files & (F.col(OP) != "restored"))
    good = with_refused_deletes(records.where(F.col(REASON).isNull()), records, is_by_hand())
    new_keys, old_keys = (rows.select(*map(named, table.key)) for rows in (good.where(~F.col(CONTEXT)), old))
    keys = frames.keys(frames.keep(new_keys.unionByName(old_keys).distinct()))
    others = restrict(known.where(~in_files), keys, table.key)
    unknown = empty(state.spark, rows_schema(table.columns, table.sequence))
    all_records = good.unionByName(as_records(others, table))
    nothing_purged = F.lit(None).cast(table.sequence)
    judged = frames.keep(apply_changes(all_records, unknown, table, nothing_purged))
    columns = [SEQUENCE, POSITION, HASH, DELETED, *needed()]
    stored = frames.keep(state.rows(table, keys, columns))
    last = F.max_by(F.struct(POSITION, TIME), POSITION).alias(_LAST)
    gone = old.groupBy(*map(named, table.key)).agg(last).select(*map(named, table.key), f"{_LAST}.*")
    settled = settle_replaced(judged, stored, gone, table, files.names)
    rows = frames.keep(with_set_aside(settled, records, table))
    counts = count_verdicts(rows)
    del counts[INSERTED]
    restored = F.count_if((F.col(OP) == "restored") & (F.col(VERDICT) == "applied")).alias("restored")
    logged = counts.pop(LOGGED)
    return TableBatch(table, rows, stored, counts | aggregated(rows, restored), logged=logged)


def files_of(name: str, journal: Journal, plan: Plan) -> Files:
    """The files of a table that a plan takes in the place of what they were."""
    return Files([file.name for file in plan.files_of(name)], journal.replaced_files(name, plan.batch))


def check_truncates(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, draft: Plan
) -> None:
    """Refuse a plan, not committed yet, by which a truncate event would come or go, or that one stands behind.

    Such an event reaches beyond its file: it has deleted what it found of others, and nothing says what it would
    delete of their new records. Raises `ReplaceRefused`.
    """
    for name, table in pipeline.tables.items():
        files, options = draft.files_of(name), table.parse_options
        if not files or not table.source_format.truncates:
            continue
        now = read_records(spark, table.spec.as_read, options, files, table.source_format)
        replaced_now = files_of(name, journal, draft)
        known = known_changes(State(spark, lake, draft), table.spec, replaced_now.before)
        in_files = F.col(POSITION)["file"].isin(*replaced_now.names)
        then = known.where(in_files | _stands_behind(files))
        places = [frame.where(F.col(OP) == "truncate").select(POSITION) for frame in (now, then)]
        found = aggregated(places[0].unionByName(places[1]), F.min(F.to_json(POSITION)).alias("first"))[
            "first"
        ]
        if found is not None:
            raise ReplaceRefused(
                f"{name}: a truncate event at {found} is in what a file has or had, or behind it, and reaches "
                "rows of other files. Such a file cannot be replaced, and nothing was changed: bring the correction as "
                "a new file, or load the sources into a new lake."
            )


def _stands_behind(files: Sequence[PlannedFile]) -> Column:
    """Whether a record stands behind the first of some files."""
    first = min(files, key=lambda file: (file.date or date.min, file.name))
    place = F.struct(F.lit(first.date).cast("date").alias("date"), F.lit(first.name).alias("file"))
    return F.struct(F.col(POSITION)["date"].alias("date"), F.col(POSITION)["file"].alias("file")) > place
