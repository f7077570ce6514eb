"""Surveys a table's records of a batch in one pass, before they are applied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.transforms.model.event_time import has_time, times_of
from lakejoin.transforms.model.ignored_records import IGNORED, ignored_counts, is_ignored
from lakejoin.transforms.model.keys import KeyTotals, key_hash
from lakejoin.transforms.model.refused_records import is_by_hand
from lakejoin.transforms.model.schemas import CONTEXT, OP, POSITION, REASON, UNAVAILABLE, named
from lakejoin.transforms.model.specs import TableSpec

_COPIES = "copies"
_COUNTS = ("truncated", "unavailable", "beside")
_TIMES = {"oldest": F.min, "newest": F.max}


@dataclass(frozen=True)
class RecordKinds:
    """How many records there are of the kinds that need more work than others."""

    truncated: int = 0
    """Truncate events."""
    unavailable: int = 0
    """Records that leave a value out."""
    beside: int = 0
    """Records that are not applied, lines before the batch's own among them."""
    keys: KeyTotals | None = None
    """The keys of the records if none has two; None also where nobody looked."""
    oldest: int | None = None
    """Least event time, in microseconds since 1970."""
    newest: int | None = None
    ignored: Mapping[str, int] = field(default_factory=dict)
    """Records that are ignored, by what their kinds are counted as; none where nobody looked."""


def kinds_of(
    records: DataFrame, table: TableSpec, *, looks_for_keys: bool, ignores: bool = False
) -> RecordKinds:
    """Look at the records, in one job.

    `looks_for_keys`: also if any key stands twice, which groups them by it, and `ignores`: and of what kinds those are
    that are ignored. Elsewhere that is counted later.
    """
    own, truncate = ~F.col(CONTEXT), F.coalesce(F.col(OP) == "truncate", F.lit(False)) & ~is_by_hand()
    looked_at = [
        F.count_if(own & truncate).alias("truncated"),
        F.count_if(own & F.col(UNAVAILABLE).isNotNull()).alias("unavailable"),
        F.count_if(truncate | F.col(REASON).isNotNull()).alias("beside"),
        *times_of(own & F.col(REASON).isNull() & has_time()),
    ]
    if not looks_for_keys:
        return RecordKinds(**aggregated(records, *looked_at))
    looked_at += ignored_counts(own & is_ignored()) if ignores else []
    # all of fixed width, which Spark groups without sorting; and by key first, for mostly each stands once
    keys = [named(name) for name in table.key]
    copies = F.when(reduce(and_, [key.isNotNull() for key in keys]), F.count("*"))
    of_keys = records.repartition(*keys).groupBy(*keys).agg(copies.alias(_COPIES), *looked_at)
    counted = [*_COUNTS, *(IGNORED if ignores else ())]
    sums = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in counted]
    times = [aggregate(name).alias(name) for name, aggregate in _TIMES.items()]
    digest = F.bit_xor(F.when(F.col(_COPIES).isNotNull(), key_hash(keys))).alias("digest")
    of_all = [F.max(_COPIES).alias("most"), F.count(_COPIES).alias("count"), digest]
    found = aggregated(of_keys, *sums, *times, *of_all)
    most, seen = found.pop("most"), KeyTotals(found.pop("count"), found.pop("digest"))
    ignored = {name: count for name in IGNORED if (count := found.pop(name, 0))}
    return RecordKinds(**found, keys=seen if most in {None, 1} else None, ignored=ignored)


def first_truncate(records: DataFrame) -> Any:
    """Where the first truncate event stands, as `file:line`."""
    position = F.concat_ws(":", F.col(POSITION)["file"], F.col(POSITION)["line"])
    truncates = records.where(~F.col(CONTEXT) & ~is_by_hand() & (F.col(OP) == "truncate"))
    return aggregated(truncates, F.min_by(position, POSITION).alias("first"))["first"]
