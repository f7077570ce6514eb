"""Orders the records of each key for the windows that look back and ahead among them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import OP, POSITION, named
from lakejoin.transforms.model.specs import TableSpec

STORED = "_lj_stored"
"""Struct of the key's row before the batch; null for an unknown key."""
COUNTS = "_lj_counts"
"""The record has a place in its key's order."""
CANDIDATE = "_lj_candidate"
"""The record is in order: afterwards its key is what it says."""
LAST = partial(F.last, ignorenulls=True)
"""The aggregate: the last value that is not null."""


def beside(records: DataFrame, other: DataFrame, common: tuple[str, ...]) -> DataFrame:
    """Put beside each record the columns of the row that has the same values in the common ones; null without one."""
    renamed = {name: f"_lj_other_{name}" for name in common}
    same = reduce(and_, [named(name) == named(new) for name, new in renamed.items()])
    return records.join(other.withColumnsRenamed(renamed), same, "left").drop(*renamed.values())


def key_columns(table: TableSpec) -> list[Column]:
    """The columns of a table's key."""
    return [named(name) for name in table.key]


@dataclass(frozen=True)
class KeyOrder:
    """The records that a record's key has in the batch, in the order of position.

    A position is unique within a key: a derived delete shares it with a record of another key only.
    """

    table: TableSpec
    alone: bool
    """Each key has one record, so that nothing need be sorted to know what is before it."""

    def former(self, value: Column) -> Column:
        """A value of the record before this one; null for the first."""
        return _nothing(value) if self.alone else F.lag(value).over(self._records)

    def before(self, aggregate: Callable[[Column], Column], value: Column) -> Column:
        """An aggregate over all records before this one, which is null where there are none."""
        earlier = self._records.rowsBetween(Window.unboundedPreceding, -1)
        return _nothing(value) if self.alone else aggregate(value).over(earlier)

    def whole(self, aggregate: Callable[[Column], Column], value: Column) -> Column:
        """An aggregate over all records, which is the value itself where there is one."""
        every = self._records.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        return value if self.alone else aggregate(value).over(every)

    @property
    def _records(self) -> WindowSpec:
        return Window.partitionBy(*key_columns(self.table)).orderBy(POSITION)


def _nothing(value: Column) -> Column:
    """Null, of the value's type."""
    return F.when(F.lit(False), value)


def is_delete() -> Column:
    """Whether a record says that its key has no row."""
    return F.col(OP).isin("delete", "filtered", "tombstone")
