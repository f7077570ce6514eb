"""Brings groups up to date in a batch, and holds the rows that subscribe to them against their rules."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration.batch.joins.gate import (
    Held,
    WaysOut,
    broken,
    collected,
    counted,
    left_values,
    refuse_broken,
)
from orchestration.batch.uncomputed import Uncomputed, as_counts
from storage.spark.kept_frames import Frames
from transforms.foreign_key_join.emissions import TOMBSTONE
from transforms.groups.batch import GroupBatch
from transforms.model.join_sides import with_foreign_keys
from transforms.model.schemas import PRIMARY_KEY, named
from transforms.model.selection import FAILED

GROUP_COUNTS = ("subscriptions", "emissions", "tombstones")
"""What a batch counts of groups."""


def judge_groups(
    batch: GroupBatch,
    accept: Sequence[str],
    frames: Frames,
    ways_out: WaysOut,
    uncomputed: tuple[Uncomputed, Uncomputed],
) -> dict[str, int]:
    """Count what a batch does to groups, and check that each row at hand is in the group that it says.

    Arguments, counts and errors are those of `orchestration.batch.joins.gate.judge`.
    """
    small = frames.small
    marks = [FAILED] * bool(batch.spec.computed_texts)
    emissions = batch.emissions.select(PRIMARY_KEY, TOMBSTONE, *marks)
    held = Held("", "members", _rule_frames(batch))
    parts = (
        counted(batch.log, {"subscriptions": F.count(F.lit(1))})
        .unionByName(
            counted(emissions, {"emissions": F.count(F.lit(1)), "tombstones": F.count_if(F.col(TOMBSTONE))})
        )
        .unionByName(broken(held, small=small))
    )
    of_keys, of_results = uncomputed
    asked = {
        "uncomputed keys": (of_keys, left_values(batch.rows)),
        "uncomputed results": (of_results, (emissions, named(PRIMARY_KEY))),
    }
    found, told = collected(parts, asked, frames)
    counts = {name: int(found.pop(("", name))["offending"]) for name in GROUP_COUNTS}
    refuse_broken(batch.spec.name, [held], found, accept, ways_out, small=small)
    return counts | as_counts(*told)


def _rule_frames(batch: GroupBatch) -> Mapping[str, DataFrame]:
    """The rows at hand, of which each is in one group: the one that it has subscribed to."""
    (part,) = batch.spec.parts
    rows = with_foreign_keys(batch.rows, part).select(
        "primary_key",
        "foreign_key",
        F.col("left_hash").alias("hash"),
        F.col("left_hash").isNull().alias("deleted"),
    )
    return {
        "left_rows": rows,
        "subscriptions": batch.store.select("foreign_key", "primary_key", "hash"),
    }
