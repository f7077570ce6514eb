"""Evaluates the SQL of the configuration row by row, and refuses the records for which it raises.

Spark raises where a value cannot be computed: a text that is no number is cast, a divisor is 0, an array is too short.
Such an error would end the batch, and each batch after it. So every expression is evaluated within Spark's own
`TryEval`, and what it raises for is told by its record.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType

from lakejoin.transforms.model.refused_records import refuse
from lakejoin.transforms.model.schemas import OP, REASON, UNAVAILABLE, named

EXPRESSION_FAILED = "expression_failed"
"""Reason for which a record is refused by an expression over it."""
_NAME = re.compile(r"\w+|`(?:[^`]|``)+`")
_SHOWN = 200  # characters of the values that a message shows


@dataclass(frozen=True)
class RowExpression:
    """An expression of the configuration over the rows of a table or stream."""

    role: str
    """What it is, as messages say it."""
    text: str
    """SQL."""
    columns: tuple[str, ...]
    """Names of the columns that it reads."""

    @property
    def told(self) -> str:
        """How the details of refused records begin."""
        return f"{self.role}: {self.text} cannot be computed from "


def may_raise(text: str) -> bool:
    """Whether an expression is more than the name of a column."""
    return _NAME.fullmatch(text) is None


def attempt(value: Column) -> Column:
    """An array of the one value; null for a row for which computing the value raises."""
    # within a lambda Spark does not take out what two expressions share, to compute it where nothing is caught; and
    # under a condition it does not compute parts that are the same for all rows before any, where nothing is either
    tried = F.transform(F.array(F.lit(0)), lambda zero: F.when(zero == 0, value))
    sql: Any = SparkSession.active()._jvm.org.apache.spark.sql  # type: ignore[union-attr]  # noqa: SLF001
    columns = sql.classic.ExpressionUtils
    return Column(columns.column(sql.catalyst.expressions.TryEval(columns.expression(tried._jc))))  # noqa: SLF001


def or_null(value: Column) -> Column:
    """The value; null also for a row for which computing it raises."""
    return attempt(value)[0]


def computed(text: str, dtype: DataType | None = None) -> Column:
    """What an expression of the configuration gives for a row; null for a row for which it raises.

    `dtype`: the type that it is cast to, if to any.
    """
    value = F.expr(text) if dtype is None else F.expr(text).cast(dtype)
    return or_null(value) if may_raise(text) else value


def meets(condition: str) -> Column:
    """Whether a row meets an SQL condition; one for which it is null, or cannot be computed, does not."""
    return F.coalesce(computed(condition, BooleanType()), F.lit(False))


def any_fails(texts: Sequence[str]) -> Column:
    """Whether one of some expressions raises for a row."""
    return reduce(or_, [attempt(F.expr(text)).isNull() for text in texts])


def refuse_failing(
    records: DataFrame,
    names: Sequence[str],
    expressions: Sequence[RowExpression],
    which: Column | None = None,
) -> DataFrame:
    """Quarantine the records for which an expression raises.

    `records`: what the parsers yield. `names`: the declared columns. `which`: the records that the expressions are
    evaluated for, beside that they are rows. An expression over a column that a record left out is not evaluated.
    """
    if not expressions:
        return records
    asked = (F.col(OP) == "upsert") & F.col(REASON).isNull()
    asked = asked if which is None else asked & which
    detail = F.lit(None).cast("string")
    for expression in reversed(expressions):
        left_out = F.arrays_overlap(UNAVAILABLE, F.array(*map(F.lit, expression.columns)))
        fails = ~F.coalesce(left_out, F.lit(False)) & attempt(F.expr(expression.text)).isNull()
        values = F.substring(F.to_json(F.struct(*map(named, expression.columns))), 1, _SHOWN)
        detail = F.when(fails, F.concat(F.lit(expression.told), values)).otherwise(detail)
    told = F.when(asked, detail)
    return refuse(records, names, F.when(told.isNotNull(), F.lit(EXPRESSION_FAILED)), told)
