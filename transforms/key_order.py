"""The records of one key in their order, as the walk and what it needs look at them."""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from transforms.schemas import OP, POSITION, named
from transforms.specs import TableSpec

STORED = "_lj_stored"
"""Struct of the key's row before the batch; null for an unknown key."""
COUNTS = "_lj_counts"
"""The record has a place in its key's order."""
CANDIDATE = "_lj_candidate"
"""The record is in order: afterwards its key is what it says."""


def beside(records: DataFrame, other: DataFrame, common: tuple[str, ...]) -> DataFrame:
    """Put beside each record the columns of the row that has the same values in the common ones; null without one."""
    renamed = {name: f"_lj_other_{name}" for name in common}
    same = reduce(and_, [named(name) == named(new) for name, new in renamed.items()])
    return records.join(other.withColumnsRenamed(renamed), same, "left").drop(*renamed.values())


def key_columns(table: TableSpec) -> list[Column]:
    """The columns of a table's key."""
    return [named(name) for name in table.key]


def by_key(table: TableSpec) -> WindowSpec:
    """The records of a key in the order of position."""
    # a position is unique within a key: a derived delete shares it with a record of another key only
    return Window.partitionBy(*key_columns(table)).orderBy(POSITION)


def earlier(table: TableSpec) -> WindowSpec:
    """The records of a key before this one."""
    return by_key(table).rowsBetween(Window.unboundedPreceding, -1)


def whole(table: TableSpec) -> WindowSpec:
    """All records of a key."""
    return by_key(table).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def is_delete() -> Column:
    """Whether a record says that its key has no row."""
    return F.col(OP).isin("delete", "tombstone")
