"""Keeps groups by what changed alone: counts and exact sums are adjusted, without a look at the other rows of a group.

The totals of a group stand beside its row. A batch subtracts the rows that changed as they were, and adds them as they
are now.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from lakejoin.transforms.model.expressions import any_fails, computed
from lakejoin.transforms.model.group_spec import TOTALS, Aggregate, Function, GroupSpec
from lakejoin.transforms.model.schemas import FOREIGN_KEY, named
from lakejoin.transforms.model.selection import FAILED

SIGN = "_lj_sign"
"""1 for a row that comes, -1 for one that goes."""
_BEFORE = "_lj_before"


def totals_of(rows: DataFrame, group: GroupSpec) -> DataFrame:
    """What rows add to the totals of their groups.

    `rows`: the columns that the group reads, with `FOREIGN_KEY`, the key of the group, and `SIGN`. Returns these keys
    with `TOTALS` and, where an expression may raise, `FAILED`: whether it does for a row that comes.
    """
    comes = F.col(SIGN) > 0
    parts = {"rows": F.sum(SIGN)}
    for number, aggregate in enumerate(group.aggregates):
        if not aggregate.arguments:
            continue
        value = computed(aggregate.arguments[0])
        parts[f"count{number}"] = F.sum(F.when(value.isNotNull(), F.col(SIGN)).otherwise(0))
        if aggregate.function != "count":
            dtype = group.totals_type[f"sum{number}"].dataType
            exact = value.cast(dtype)
            summed = F.sum(F.when(comes, exact).otherwise(-exact)).cast(dtype)
            parts[f"sum{number}"] = F.coalesce(summed, F.lit(0).cast(dtype))
    failing = group.row_texts
    failed = [F.bool_or(comes & any_fails(failing)).alias(FAILED)] if failing else []
    total = F.struct(*[part.alias(name) for name, part in parts.items()]).cast(group.totals_type)
    return rows.groupBy(FOREIGN_KEY).agg(total.alias(TOTALS), *failed)


def adjusted(changes: DataFrame, before: DataFrame, group: GroupSpec) -> DataFrame:
    """The totals of groups after a batch, and their aggregates.

    `changes`: of `totals_of`. `before`: `FOREIGN_KEY` and `TOTALS` of the same groups before it. Returns `FOREIGN_KEY`,
    `TOTALS`, the aggregates, and `FAILED` where something may not be computable.
    """
    stored = before.select(named(FOREIGN_KEY).alias("before_key"), named(TOTALS).alias(_BEFORE))
    met = changes.join(stored, named(FOREIGN_KEY).eqNullSafe(F.col("before_key")), "left")
    parts = [
        (F.col(TOTALS)[part.name] + F.coalesce(F.col(_BEFORE)[part.name], F.lit(0).cast(part.dataType)))
        .cast(part.dataType)
        .alias(part.name)
        for part in group.totals_type
    ]
    after = F.struct(*parts).cast(group.totals_type)
    made = [
        _VALUES[aggregate.function](F.col(TOTALS), number, aggregate).alias(aggregate.name)
        for number, aggregate in enumerate(group.aggregates)
    ]
    fails = [_is_too_great(F.col(TOTALS), number, a) for number, a in _sums(group)]
    fails += [F.coalesce(FAILED, F.lit(False))] if FAILED in changes.columns else []
    failed = [reduce(or_, fails).alias(FAILED)] if group.computed_texts else []
    return met.withColumn(TOTALS, after).select(FOREIGN_KEY, TOTALS, *made, *failed)


def _sums(group: GroupSpec) -> list[tuple[int, Aggregate]]:
    return [(number, a) for number, a in enumerate(group.aggregates) if a.function == "sum"]


def _count(total: Column, number: int, aggregate: Aggregate) -> Column:
    return total[f"count{number}"] if aggregate.arguments else total["rows"]


def _sum(total: Column, number: int, aggregate: Aggregate) -> Column:
    return F.when(total[f"count{number}"] > 0, total[f"sum{number}"].try_cast(aggregate.dtype))


def _avg(total: Column, number: int, _: Aggregate) -> Column:
    return total[f"sum{number}"].cast(DoubleType()) / F.nullif(total[f"count{number}"], F.lit(0))


def _is_too_great(total: Column, number: int, aggregate: Aggregate) -> Column:
    return (total[f"count{number}"] > 0) & total[f"sum{number}"].try_cast(aggregate.dtype).isNull()


_VALUES: Mapping[Function, Callable[[Column, int, Aggregate], Column]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
}
