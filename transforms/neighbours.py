"""What the other records of its key in a batch say of a record."""

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from transforms.schemas import POSITION, named


class Neighbours:
    """The records of a record's key, in the order of position.

    With `alone` every key is known to have one record, as in the snapshot that a first load mostly is. Sorting such
    records by key, and handing each through one window after the other, would be most of what the walk costs.
    """

    def __init__(self, key: tuple[str, ...], *, alone: bool) -> None:
        self._alone = alone
        # a position is unique within a key: a derived delete shares it with a record of another key only
        self._ordered = Window.partitionBy(*[named(name) for name in key]).orderBy(POSITION)
        self._earlier = self._ordered.rowsBetween(Window.unboundedPreceding, -1)
        self._all = self._ordered.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)

    def former(self, column: Column) -> Column:
        """Value of the record before it; null for the first."""
        return _nothing(column) if self._alone else F.lag(column).over(self._ordered)

    def highest_before(self, column: Column) -> Column:
        """Greatest value of the records before it; null if none has one."""
        return _nothing(column) if self._alone else F.max(column).over(self._earlier)

    def last_before(self, column: Column) -> Column:
        """Last value of the records before it that is not null."""
        return _nothing(column) if self._alone else F.last(column, ignorenulls=True).over(self._earlier)

    def highest(self, column: Column) -> Column:
        """Greatest value of all of them."""
        return column if self._alone else F.max(column).over(self._all)

    def count(self, condition: Column) -> Column:
        """How many of all of them meet a condition."""
        return F.when(condition, 1).otherwise(0) if self._alone else F.count_if(condition).over(self._all)


def _nothing(column: Column) -> Column:
    """A null of the column's type."""
    return F.when(F.lit(False), column)
