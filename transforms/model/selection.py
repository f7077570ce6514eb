"""Makes the columns of a join's result of its two rows: what KIP-213 calls the ValueJoiner."""

from collections.abc import Collection
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.expressions import any_fails, computed, may_raise, meets
from lakejoin.transforms.model.result_spec import ResultSpec, Selected
from lakejoin.transforms.model.schemas import named
from lakejoin.transforms.model.specs import JoinSpec

FILTERED = "_lj_filtered"
"""True for a pair of rows that does not meet the condition of the join."""
FAILED = "_lj_failed"
"""True for a pair of rows of which an expression of the join cannot be computed."""
WITHHELD = "_lj_withheld"
"""True for a left row of a star that lacks a right row, where no answer said that this went: nothing is emitted."""
LACKS = "_lj_lacks"
"""True for a left row of a star that lacks the right row of a side, which calls the column by `JoinSpec.of_side`."""


def _expressions(join: ResultSpec) -> list[str]:
    return [entry.sql for entry in join.select or () if entry.column is None]


def judged(pairs: DataFrame, join: ResultSpec, kept: Column | None = None) -> DataFrame:
    """Say of rows of `ResultSpec.pair_columns` what the join does with them.

    Adds `FILTERED` where the join has a condition: true for what does not meet it. And `FAILED` where something may not
    be computable: true if it is not. `kept`: where it is false neither is asked.
    """
    kept = F.lit(True) if kept is None else kept
    if join.where is not None:
        pairs = pairs.withColumn(FILTERED, kept & ~meets(join.where))
    if not join.computed_texts:
        return pairs
    fails = F.lit(False)
    if values := list(filter(may_raise, _expressions(join))):
        shown = kept if join.where is None else kept & ~named(FILTERED)
        fails = F.when(shown, any_fails(values))
    if join.where is not None and may_raise(join.where):
        fails = F.when(kept & named(FILTERED) & any_fails([join.where]), True).otherwise(fails)
    return pairs.withColumn(FAILED, F.coalesce(fails, F.lit(False)))


def marks_of(join: ResultSpec) -> list[str]:
    """The columns that say what becomes of a pair of rows: those that `judged` adds, and those of a star."""
    of_star = [WITHHELD, *[part.of_side(LACKS) for part in join.needed]] if join.needed else []
    return [FILTERED] * (join.where is not None) + [FAILED] * bool(join.computed_texts) + of_star


def left_out(join: ResultSpec, part: JoinSpec) -> Column | None:
    """Whether the result lacks a pair for another reason than that `part` has no right row; None where none may.

    Over `marks_of`: the pair does not meet the condition, or another right row is missing.
    """
    others = [named(other.of_side(LACKS)) for other in join.needed if other is not part]
    reasons = [named(FILTERED)] * (join.where is not None) + others
    return reduce(or_, reasons) if reasons else None


def selected(join: ResultSpec, kept: Column | None = None, always: Collection[str] = ()) -> list[Column]:
    """Columns of the result over a row of `ResultSpec.pair_columns`.

    `kept`: where it is false they are null, but for those of the pair that are `always` there. An expression that
    cannot be computed is null.
    """
    entries = join.select
    if entries is None:
        entries = tuple(Selected(f.name, f.dataType, "", f.name) for f in join.pair_columns)
    return [_selected(entry, kept, always) for entry in entries]


def _selected(entry: Selected, kept: Column | None, always: Collection[str]) -> Column:
    value = named(entry.column) if entry.column is not None else computed(entry.sql, entry.dtype)
    return (value if kept is None or entry.column in always else F.when(kept, value)).alias(entry.name)
