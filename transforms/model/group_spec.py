"""Describes groups: a table with a row for each value that some columns of another result have together."""

from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import DataType, DecimalType, IntegralType, LongType, StructField, StructType

from lakejoin.transforms.model.expressions import may_raise
from lakejoin.transforms.model.result_spec import History, ResultKey, ResultSpec, Selected
from lakejoin.transforms.model.schemas import HASH, HASH_TYPE
from lakejoin.transforms.model.specs import JoinSpec

Function = Literal[
    "count", "count_distinct", "sum", "avg", "min", "max", "any", "first", "last", "collect", "map"
]
"""What is made of the rows of a group."""
TOTALS = "_lj_totals"
"""What groups that are adjusted keep beside each row: how many rows it has, and of each aggregate count and sum."""
_MOST_DIGITS = 28
"""Of decimals that are added without end: their sum has 37."""


@dataclass(frozen=True)
class Aggregate:
    """A column of groups that is made of all rows of a group."""

    name: str
    dtype: DataType
    function: Function
    arguments: tuple[str, ...]
    """SQL over a row of the group; none for a count of all rows."""
    of: DataType | None = None
    """Type of the first of them."""
    order: tuple[str, ...] = ()
    """SQL over a row, by which rows are put in order; among equals their key decides."""
    descending: bool = False

    @property
    def expressions(self) -> tuple[str, ...]:
        """All SQL that is evaluated for a row."""
        return (*self.arguments, *self.order)

    @property
    def is_adjusted(self) -> bool:
        """Whether it follows from counts and exact sums, from which a row that goes can be taken away again."""
        decimal = isinstance(self.of, DecimalType) and self.of.precision <= _MOST_DIGITS
        return (
            self.function == "count"
            or (self.function == "sum" and (decimal or isinstance(self.of, IntegralType)))
            or (self.function == "avg" and isinstance(self.of, IntegralType))
        )


@dataclass(frozen=True)
class GroupSpec(ResultSpec):
    """Declared groups of the rows of a table, of a join, or of other groups.

    A row subscribes to its group as the left row of a join does to its right one (KIP-213, "followed up group by").
    """

    name: str
    left: str
    """Name of what is grouped."""
    left_columns: StructType
    """Columns that are read of its rows."""
    left_key: tuple[str, ...]
    by: tuple[Selected, ...]
    """Columns that rows of a group have in common, each an expression over a row; null is a value like others."""
    aggregates: tuple[Aggregate, ...]
    having: str | None = None
    """SQL condition over `columns` that a group meets."""
    changelog: bool = False
    history: History | None = None
    left_sequence: StructType | None = None
    left_whole: bool = True
    left_key_may_be_null: bool = False
    select: tuple[Selected, ...] | None = None
    where: str | None = None
    result_key: ResultKey = "left"

    @property
    def adjusts(self) -> bool:
        """Whether groups are adjusted by the rows that change, without a look at others (`transforms.groups.totals`).

        A group that does not meet a condition has no row to keep its totals beside.
        """
        return self.having is None and all(aggregate.is_adjusted for aggregate in self.aggregates)

    @property
    def totals_type(self) -> StructType:
        """What `TOTALS` holds: `rows`, and of the aggregate with a number its `count` and `sum`."""
        found = [StructField("rows", LongType())]
        for number, aggregate in enumerate(self.aggregates):
            if aggregate.arguments:
                found.append(StructField(f"count{number}", LongType()))
            if aggregate.function != "count":
                scale = aggregate.of.scale if isinstance(aggregate.of, DecimalType) else 0
                # one digit less than the most: Spark gives the sum of two one more, or rounds it
                found.append(StructField(f"sum{number}", DecimalType(37, scale)))
        return StructType(found)

    @property
    def parts(self) -> tuple[JoinSpec, ...]:
        """The join of a row with its group."""
        key = self.joined_key_type
        return (
            JoinSpec(
                name=self.name,
                left=self.left,
                right=self.name,
                left_columns=self.left_columns,
                left_key=self.left_key,
                right_columns=key,
                right_key=self.joined_key,
                foreign_key=tuple(entry.sql for entry in self.by),
                how="inner",
                left_whole=self.left_whole,
                null_refers=True,
            ),
        )

    @property
    def reads(self) -> set[str]:
        """What is grouped."""
        return {self.left}

    @property
    def columns(self) -> StructType:
        """Those in common, then the aggregates."""
        columns: list[Selected | Aggregate] = [*self.by, *self.aggregates]
        return StructType([StructField(entry.name, entry.dtype) for entry in columns])

    @property
    def computed_texts(self) -> list[str]:
        """SQL of aggregates, as far as it may raise for a row; and sums, which may be too great for their type."""
        return self.row_texts + [f"sum({a.arguments[0]})" for a in self.aggregates if a.function == "sum"]

    @property
    def row_texts(self) -> list[str]:
        """SQL that aggregates evaluate for a row, as far as it may raise for one."""
        return [text for aggregate in self.aggregates for text in aggregate.expressions if may_raise(text)]

    @property
    def hashes(self) -> list[StructField]:
        """The hash of the row: two groups with the same columns are one and the same."""
        return [StructField(HASH, HASH_TYPE)]

    @property
    def internal_columns(self) -> list[StructField]:
        """The hash, and the totals of groups that are adjusted."""
        return [*self.hashes, StructField(TOTALS, self.totals_type)] if self.adjusts else self.hashes

    @property
    def may_lack_rows(self) -> bool:
        """Of a row that its group does not show, its group may be there."""
        return True

    @property
    def key_may_be_null(self) -> bool:
        """As in SQL."""
        return True

    @property
    def joined_key(self) -> tuple[str, ...]:
        """The columns in common."""
        return tuple(entry.name for entry in self.by)
