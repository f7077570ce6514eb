"""The walk of a table's records in a batch, repeated in part where only more than the keys' own rows can judge them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestration.verdicts import beside_walk, count_verdicts
from orchestration.version_batch import known_again, with_history
from storage.frames import Frames
from storage.lake import changes_of
from storage.logs import read_log
from storage.state import State
from transforms.changes import walk
from transforms.rows import restrict
from transforms.schemas import SEQUENCE, TIME, VERDICT, changes_schema, named
from transforms.specs import TableSpec


def walk_batch(  # noqa: PLR0913 - what the walk reads, and one look at the records
    good: DataFrame, beside: DataFrame, before: DataFrame, table: TableSpec, state: State, frames: Frames,
    *, is_left_out: bool,
) -> tuple[DataFrame, dict[str, int]]:  # fmt: skip
    """Return every record of a batch with its verdict, and the counts of `count_verdicts`.

    `good`: records that the walk takes; `beside`: those of which it leaves some out. `before`: the stored rows of their
    keys. `is_left_out`: some record may have left a value out.
    """
    walked = walk(good, before, table, _floor(state, table))
    if table.history_retention is None:
        walked = frames.keep(beside_walk(walked, beside, table))
        counts = count_verdicts(walked)
        if not counts["expired"] or table.name not in state.plan.floors:
            return walked, counts
        walked = beside_walk(_walk_unpurged(walked, good, before, table, state, frames), beside, table)
    else:
        # a delete without a time of its own is one at the time of the row that it deletes
        walked = walked.withColumn(TIME, F.coalesce(TIME, F.col(SEQUENCE)[TIME]))
        walked = frames.keep(beside_walk(walked, beside, table))
        counts = count_verdicts(walked)
        set_aside = is_left_out and counts["quarantined"]
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


def _walk_unpurged(
    walked: DataFrame, good: DataFrame, before: DataFrame, table: TableSpec, state: State, frames: Frames
) -> DataFrame:
    """Walk the records once more, with the floor for those keys alone that were purged.

    It is the greatest sequence of all of them, and a key that never was may well begin below it. Which were there says
    `tables/T/changes`, read whole, but only where the floor refused a record.
    """
    refused = frames.keep(walked.where(F.col(VERDICT) == "expired").select(*map(named, table.key)).distinct())
    log = read_log(state, changes_of(table.name), changes_schema(table.columns, table.sequence))
    accepted = log.where(F.col(VERDICT) == "applied")
    purged = (
        restrict(accepted, refused, table.key, small=frames.small).select(*map(named, table.key)).distinct()
    )
    fresh = frames.keep(refused.join(purged, list(table.key), "left_anti"))
    others = good.join(fresh, list(table.key), "left_anti").select(*map(named, good.columns))
    none = F.lit(None).cast(table.sequence)
    of_fresh = walk(restrict(good, fresh, table.key, small=frames.small), before, table, none)
    return of_fresh.unionByName(walk(others, before, table, _floor(state, table)))
