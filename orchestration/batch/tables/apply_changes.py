"""The walk of a table's records in a batch, repeated in part where only more than the keys' own rows can judge them."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestration.batch.tables.record_survey import RecordKinds
from orchestration.batch.tables.verdicts import beside_walk, count_verdicts, first_records
from orchestration.batch.tables.versioned import known_again, with_history
from storage.lake.journal import Journal
from storage.spark.kept_frames import Frames
from storage.state.pinned_state import State, known_changes
from transforms.changelog.apply_changes import walk
from transforms.changelog.current_rows import latest_rows, restrict, settled
from transforms.model.schemas import PURGED, SEQUENCE, TIME, VERDICT, named
from transforms.model.specs import TableSpec

First = Callable[[DataFrame], DataFrame | None]
"""Puts records into the files of the log that begins with them, and returns its rows; None where there is a log."""


def walk_batch(  # noqa: PLR0913, PLR0917 - what the walk reads, and one look at the records
    good: DataFrame, beside: DataFrame, before: DataFrame, table: TableSpec, state: State, frames: Frames,
    kinds: RecordKinds, first: First | None = None,
) -> tuple[DataFrame, dict[str, int]]:  # fmt: skip
    """Return every record of a batch with its verdict, and the counts of `count_verdicts`.

    `good`: records that the walk takes; `beside`: those of which it leaves some out. `before`: the stored rows of their
    keys. `kinds`: what all of the records are like. `first`: where many records are the first of their table, they are
    rather kept in the files of its log than in others besides.
    """
    # a truncate event adds records to keys that have one
    alone = kinds.keys is not None and not kinds.truncated
    walked = walk(good, before, table, _floor(state, table), alone=alone)
    all_logged = not kinds.beside and not kinds.unavailable
    if first is not None and alone and all_logged and not state.has_rows(table.name):
        log = first(walked)
        if log is not None:
            records = first_records(log, table)
            return records, count_verdicts(records)
    if table.history_retention is None:
        walked = frames.keep(beside_walk(walked, beside, table))
        counts = count_verdicts(walked)
        if not counts["expired"] or table.name not in state.plan.floors:
            return walked, counts
        walked = beside_walk(_walk_remembered(walked, good, before, table, state, frames), beside, table)
    else:
        # a delete without a time of its own is one at the time of the row that it deletes
        walked = walked.withColumn(TIME, F.coalesce(TIME, F.col(SEQUENCE)[TIME]))
        walked = frames.keep(beside_walk(walked, beside, table))
        counts = count_verdicts(walked)
        set_aside = kinds.unavailable and counts["quarantined"]
        if not counts["out_of_order"] and not set_aside:
            return walked, counts
        if counts["out_of_order"]:
            walked = with_history(walked, table, state, small=frames.small)
        if set_aside:
            walked = known_again(walked, table, state, small=frames.small)
    walked = frames.keep(walked)
    return walked, count_verdicts(walked)


def _floor(state: State, table: TableSpec) -> Column:
    text = state.plan.floors.get(table.name)
    return F.from_json(F.lit(text), table.sequence) if text else F.lit(None).cast(table.sequence)


def _walk_remembered(
    walked: DataFrame, good: DataFrame, before: DataFrame, table: TableSpec, state: State, frames: Frames
) -> DataFrame:
    """Walk the records once more, with the purged tombstones of the keys that the floor refused, and without it.

    It is the greatest sequence of all of them: a key that never was may well begin below it, and one that was may come
    back below it. What each was says `tables/T/changes`, read whole, but only where the floor refused a record.
    """
    refused = walked.where(F.col(VERDICT) == "expired").select(*map(named, table.key)).distinct()
    files = Journal(state.lake).replaced_files(table.name, state.plan.batch)
    rows = settled(known_changes(state, table, files), before.columns)
    purged = frames.keep(latest_rows(restrict(rows, refused, table.key, small=frames.small), table.key))
    known = before.withColumn(PURGED, F.lit(False)).unionByName(purged.withColumn(PURGED, F.lit(True)))
    return walk(good, known, table, F.lit(None).cast(table.sequence))
