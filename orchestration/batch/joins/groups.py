"""Holds what a batch does to groups against their rules, and counts it."""

from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import functions as F

from lakejoin.orchestration.batch.joins.gate import (
    Held,
    WaysOut,
    broken,
    collected,
    counted,
    left_values,
    refuse_broken,
)
from lakejoin.orchestration.batch.uncomputed import Uncomputed, as_counts
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE
from lakejoin.transforms.groups.batch import GroupBatch
from lakejoin.transforms.model.group_spec import TOTALS
from lakejoin.transforms.model.join_sides import with_foreign_keys
from lakejoin.transforms.model.schemas import PRIMARY_KEY, named
from lakejoin.transforms.model.selection import FAILED

GROUP_COUNTS = ("subscriptions", "emissions", "tombstones")
"""What a batch counts of groups."""


def judge_groups(
    batch: GroupBatch,
    accept: Sequence[str],
    frames: Frames,
    ways_out: WaysOut,
    uncomputed: tuple[Uncomputed, Uncomputed],
) -> dict[str, int]:
    """Count what a batch does to groups, and check it against their rules.

    Arguments, counts and errors are those of `orchestration.batch.joins.gate.judge`.
    """
    small = frames.small
    marks = [FAILED] * bool(batch.spec.computed_texts)
    emissions = batch.emissions.select(PRIMARY_KEY, TOMBSTONE, *marks)
    held = _held(batch)
    parts = counted(
        emissions, {"emissions": F.count(F.lit(1)), "tombstones": F.count_if(F.col(TOMBSTONE))}
    ).unionByName(broken(held, small=small))
    if batch.log is not None:
        parts = parts.unionByName(counted(batch.log, {"subscriptions": F.count(F.lit(1))}))
    of_keys, of_results = uncomputed
    asked = {
        "uncomputed keys": (of_keys, left_values(batch.rows)),
        "uncomputed results": (of_results, (emissions, named(PRIMARY_KEY))),
    }
    found, told = collected(parts, asked, frames)
    names = [name for name in GROUP_COUNTS if batch.log is not None or name != "subscriptions"]
    counts = {name: int(found.pop(("", name))["offending"]) for name in names}
    refuse_broken(batch.spec.name, [held], found, accept, ways_out, small=small)
    return counts | as_counts(*told)


def _held(batch: GroupBatch) -> Held:
    """What is held against rules: the rows at hand, of which each is in the group that it has subscribed to.

    Of groups that are adjusted their totals: no more rows went than came, and with the last one all that they added.
    """
    if batch.store is None:
        parts = [F.col(TOTALS)[part.name] for part in batch.spec.totals_type]
        rest = reduce(or_, [part != 0 for part in parts])
        totals = batch.emissions.select(
            named(PRIMARY_KEY).alias("primary_key"), parts[0].alias("rows"), rest.alias("rest")
        )
        return Held("", "totals", {"totals": totals})
    (part,) = batch.spec.parts
    rows = with_foreign_keys(batch.rows, part).select(
        "primary_key",
        "foreign_key",
        F.col("left_hash").alias("hash"),
        F.col("left_hash").isNull().alias("deleted"),
    )
    store = batch.store.select("foreign_key", "primary_key", "hash")
    return Held("", "members", {"left_rows": rows, "subscriptions": store})
