"""Applies a table's records to its keys, and again where a purged tombstone or the history has to be looked up."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.first_load import TableLoad
from lakejoin.orchestration.batch.tables.record_survey import RecordKinds
from lakejoin.orchestration.batch.tables.verdicts import count_verdicts, first_records, with_set_aside
from lakejoin.orchestration.batch.tables.versioned import known_again, with_history
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.state.pinned_state import State, known_changes
from lakejoin.transforms.changelog.apply_changes import apply_changes
from lakejoin.transforms.changelog.current_rows import latest_rows, settled
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.schemas import PURGED, SEQUENCE, TIME, VERDICT, named
from lakejoin.transforms.model.specs import TableSpec


def apply_to_table(  # noqa: PLR0913, PLR0917 - what the records are held against, and one look at the records
    good: DataFrame, beside: DataFrame, before: DataFrame, table: TableSpec, state: State, frames: Frames,
    kinds: RecordKinds, load: TableLoad,
) -> tuple[DataFrame, dict[str, int]]:  # fmt: skip
    """Return every record of a batch with its status, and the counts of `count_verdicts`.

    `good`: records that can be applied; `beside`: those of which some cannot. `before`: the stored rows of their
    keys. `kinds`: what all of the records are like. `load`: where many records are the first of their table, they are
    rather kept in the files of its log than in others besides.
    """
    # a truncate event adds records to keys that have one
    alone = kinds.keys is not None and not kinds.truncated
    judged = apply_changes(good, before, table, _floor(state, table), alone=alone)
    all_logged = not kinds.beside and not kinds.unavailable
    if load.log_first is not None and alone and all_logged and not state.has_rows(table.name):
        log = load.log_first(judged)
        if log is not None:
            records = first_records(log, table)
            return records, {**count_verdicts(records), **kinds.ignored}
    if table.history_retention is None:
        judged = frames.keep(with_set_aside(judged, beside, table))
        counts = count_verdicts(judged)
        if not counts["expired"] or table.name not in state.plan.floors:
            return judged, counts
        judged = with_set_aside(
            _apply_with_remembered(judged, good, before, table, state, frames), beside, table
        )
    else:
        # a delete without a time of its own is one at the time of the row that it deletes
        judged = judged.withColumn(TIME, F.coalesce(TIME, F.col(SEQUENCE)[TIME]))
        judged = frames.keep(with_set_aside(judged, beside, table))
        counts = count_verdicts(judged)
        set_aside = kinds.unavailable and counts["quarantined"]
        if not counts["out_of_order"] and not set_aside:
            return judged, counts
        if counts["out_of_order"]:
            judged = with_history(judged, table, state, frames)
        if set_aside:
            judged = known_again(judged, table, state, frames)
    judged = frames.keep(judged)
    return judged, count_verdicts(judged)


def _floor(state: State, table: TableSpec) -> Column:
    text = state.plan.floors.get(table.name)
    return F.from_json(F.lit(text), table.sequence) if text else F.lit(None).cast(table.sequence)


def _apply_with_remembered(
    judged: DataFrame, good: DataFrame, before: DataFrame, table: TableSpec, state: State, frames: Frames
) -> DataFrame:
    """Apply the records once more, with the purged tombstones of the keys that the floor refused, and without it.

    The floor is the greatest sequence of all purged tombstones. A key that never existed may begin below it, and one
    that did may come back below it. `tables/T/changes` tells which; it is read whole, but only if the floor refused a
    record.
    """
    expired = judged.where(F.col(VERDICT) == "expired").select(*map(named, table.key)).distinct()
    refused = frames.keys(expired)
    files = Journal(state.lake).replaced_files(table.name, state.plan.batch)
    rows = settled(known_changes(state, table, files), before.columns)
    purged = frames.keep(latest_rows(restrict(rows, refused, table.key), table.key))
    known = before.withColumn(PURGED, F.lit(False)).unionByName(purged.withColumn(PURGED, F.lit(True)))
    return apply_changes(good, known, table, F.lit(None).cast(table.sequence))
