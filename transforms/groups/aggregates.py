"""Computes a row for each group from the rows in it.

The result is the same in whatever order Spark reads the rows: where their order counts, it ends with their key.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, IntegralType

from lakejoin.transforms.model.expressions import any_fails, computed
from lakejoin.transforms.model.group_spec import Aggregate, Function, GroupSpec
from lakejoin.transforms.model.schemas import FOREIGN_KEY, PRIMARY_KEY, named
from lakejoin.transforms.model.selection import FAILED

_ITEM, _PLACE = "item", "place"


def aggregated_groups(rows: DataFrame, group: GroupSpec) -> DataFrame:
    """One row for each group.

    `rows`: the columns that the group reads, with `FOREIGN_KEY`, the key of the group, and `PRIMARY_KEY`, that of the
    row. Returns `FOREIGN_KEY`, the aggregates, and where something may not be computable `FAILED`: true if it is not,
    of any row; that row's value is null.
    """
    made = [_VALUES[aggregate.function](aggregate).alias(aggregate.name) for aggregate in group.aggregates]
    failed = []
    if group.computed_texts:
        failed = [F.coalesce(_fails(group), F.lit(False)).alias(FAILED)]
    return rows.groupBy(FOREIGN_KEY).agg(*made, *failed)


def _fails(group: GroupSpec) -> Column:
    found = [F.bool_or(any_fails(group.row_texts))] if group.row_texts else []
    # Spark's own sum is null where there is nothing to add, too
    found += [
        _sum(aggregate).isNull() & (F.count(_argument(aggregate)) > 0)
        for aggregate in group.aggregates
        if aggregate.function == "sum"
    ]
    return reduce(or_, found)


def _argument(aggregate: Aggregate, number: int = 0) -> Column:
    return computed(aggregate.arguments[number])


def _count(aggregate: Aggregate) -> Column:
    return F.count(_argument(aggregate)) if aggregate.arguments else F.count(F.lit(1))


def _sum(aggregate: Aggregate) -> Column:
    return _added(_argument(aggregate), aggregate.dtype)


def _avg(aggregate: Aggregate) -> Column:
    value = _argument(aggregate)
    if not isinstance(aggregate.dtype, DoubleType):
        return F.try_avg(value)
    exact = isinstance(aggregate.of, IntegralType)
    total = F.sum(value.cast("decimal(38,0)")).cast("double") if exact else _added(value, DoubleType())
    return total / F.nullif(F.count(value), F.lit(0))


def _added(value: Column, dtype: DataType) -> Column:
    """The sum. Floating-point numbers are added in the order of their size, for the order changes the sum."""
    if isinstance(dtype, IntegralType):
        return F.sum(value.cast("decimal(38,0)")).try_cast(dtype)
    if not isinstance(dtype, DoubleType | FloatType):
        return F.try_sum(value)
    values = F.array_sort(F.collect_list(value.cast("double")))
    added = F.aggregate(values, F.lit(0.0), lambda total, one: total + one)
    return F.when(F.size(values) > 0, added)


def _at(which: Callable[[Column, Column], Column], aggregate: Aggregate) -> Column:
    """The value of the row at one end of the order."""
    return which(F.struct(_argument(aggregate).alias(_ITEM)), _place(aggregate))[_ITEM]


def _place(aggregate: Aggregate) -> Column:
    order = [computed(text).alias(f"{_PLACE}{number}") for number, text in enumerate(aggregate.order)]
    return F.struct(*order, named(PRIMARY_KEY))


def _first(aggregate: Aggregate) -> Column:
    return _at(F.max_by if aggregate.descending else F.min_by, aggregate)


def _last(aggregate: Aggregate) -> Column:
    return _at(F.min_by if aggregate.descending else F.max_by, aggregate)


def _collect(aggregate: Aggregate) -> Column:
    """The values in order, without those that are null."""
    value = _argument(aggregate)
    placed = F.struct(_place(aggregate).alias(_PLACE), value.alias(_ITEM))
    entries = F.sort_array(F.collect_list(F.when(value.isNotNull(), placed)), asc=not aggregate.descending)
    return F.transform(entries, lambda entry: entry[_ITEM])


def _map(aggregate: Aggregate) -> Column:
    """The value of each key, of the last row with the key; rows without a key are left out."""
    key, value = (_argument(aggregate, number) for number in (0, 1))
    placed = F.struct(key.alias("key"), _place(aggregate).alias(_PLACE), value.alias("value"))
    entries = F.sort_array(F.collect_list(F.when(key.isNotNull(), placed)))
    # of equal keys the last, or, in descending order, the first
    neighbour = -1 if aggregate.descending else 1

    def stands(entry: Column, place: Column) -> Column:
        other = F.get(entries, place + neighbour)
        return other.isNull() | (other["key"] != entry["key"])

    kept = F.filter(entries, stands)
    return F.map_from_arrays(
        F.transform(kept, lambda entry: entry["key"]), F.transform(kept, lambda entry: entry["value"])
    )


_VALUES: Mapping[Function, Callable[[Aggregate], Column]] = {
    "count": _count,
    "count_distinct": lambda aggregate: F.count_distinct(_argument(aggregate)),
    "sum": _sum,
    "avg": _avg,
    "min": lambda aggregate: F.min(_argument(aggregate)),
    "max": lambda aggregate: F.max(_argument(aggregate)),
    "any": _first,
    "first": _first,
    "last": _last,
    "collect": _collect,
    "map": _map,
}
