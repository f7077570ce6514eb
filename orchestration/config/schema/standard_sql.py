"""Says an expression in the SQL of DuckDB and DataFusion, as far as it surely means the same there as to Spark."""

from collections.abc import Callable, Mapping

import sqlglot
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakejoin.orchestration.config.schema.expression_types import Columns, arms, infer_type

_KINDS: Mapping[type[DataType], str] = {
    BooleanType: "boolean",
    StringType: "text",
    IntegerType: "whole",
    LongType: "whole",
    DoubleType: "double",
    DecimalType: "decimal",
    DateType: "date",
    TimestampType: "time",
}
"""What is computed with. Other engines order nested values in another way, and give a literal the type of a small
number beside it."""
_NUMBERS = {"whole", "double", "decimal"}
_CASTS = {("time", "DATE"), ("date", "DATE"), ("whole", "BIGINT"), ("whole", "DOUBLE")}
"""Casts to a wider number, and of a time to its day."""
_LEAVES = (exp.Identifier, exp.DataType, exp.Literal, exp.Boolean, exp.Null, exp.Paren)
_CHOICES = (exp.Coalesce, exp.If, exp.Case)


def translated(text: str, columns: StructType, table: str = "") -> str | None:
    """Return an expression over columns as those engines have it; None where it may mean something else there.

    table: what the columns are of, where that must be said. A column alone may have any type.
    """
    names = {field.name.lower(): field.name for field in columns}
    try:
        tree = sqlglot.parse_one(text, read="spark")
    except SqlglotError:
        return None
    read = list(tree.find_all(exp.Column))
    for column in read:
        name = names.get(column.name.lower())
        if name is None or column.table:
            return None
        column.set("this", exp.to_identifier(name, quoted=True))
    known: Columns = {field.name: field.dataType for field in columns}
    if not isinstance(tree, exp.Column) and not all(_is_sure(node, known) for node in tree.walk()):
        return None
    for column in read:
        column.set("table", exp.to_identifier(table) if table else None)
    return tree.sql(dialect="duckdb").replace("TRY_CAST(", "CAST(")


def _is_sure(node: exp.Expr, columns: Columns) -> bool:
    """Whether an operation means the same on what its operands are; these are asked about for themselves."""
    rule = next((rule for kinds, rule in _RULES if isinstance(node, kinds)), None)
    return rule is not None and rule(node, columns)


def _kind(node: exp.Expr, columns: Columns) -> str:
    """The kind of value that an expression gives; empty where it is none of `_KINDS`."""
    if isinstance(node, _CHOICES):
        kinds = _kinds(arms(node), columns)
        return kinds.pop() if len(kinds) == 1 else ""
    if isinstance(node, exp.Paren):
        return _kind(node.this, columns)
    if isinstance(node, exp.Literal) and not node.is_string and not node.name.isdecimal():
        return "decimal"
    found = infer_type(node, columns)
    return "" if found is None else _KINDS.get(type(found), "")


def _kinds(nodes: list[exp.Expr], columns: Columns) -> set[str]:
    """The kinds of some expressions; null goes with each."""
    return {_kind(node, columns) for node in nodes if not isinstance(node.unnest(), exp.Null)}


def _operands(node: exp.Expr) -> list[exp.Expr]:
    named = [node.args.get(name) for name in ("this", "expression", "low", "high")]
    return [operand for operand in (*named, *node.expressions) if operand is not None]


def _compares_like(node: exp.Expr, columns: Columns) -> bool:
    kinds = _kinds(_operands(node), columns)
    return "" not in kinds and (len(kinds) <= 1 or kinds <= _NUMBERS)


def _connects_booleans(node: exp.Expr, columns: Columns) -> bool:
    return _kinds(_operands(node), columns) <= {"boolean"}


def _calculates(node: exp.Expr, columns: Columns) -> bool:
    """Not with decimals, which get other scales."""
    return _kinds(_operands(node), columns) <= {"whole", "double"}


def _chooses(node: exp.Expr, columns: Columns) -> bool:
    """Among values of one kind: numbers of two kinds would be made one."""
    asks = [node.this] if isinstance(node, exp.If) else []
    compares_with = isinstance(node, exp.Case) and node.this is not None
    found = _kinds(arms(node), columns)
    return not compares_with and _kinds(asks, columns) <= {"boolean"} and len(found) <= 1 and "" not in found


def _casts(node: exp.Expr, columns: Columns) -> bool:
    return (_kind(node.this, columns), node.args["to"].sql(dialect="duckdb").upper()) in _CASTS


_Kinds = type[exp.Expr] | tuple[type[exp.Expr], ...]
_RULES: tuple[tuple[_Kinds, Callable[[exp.Expr, Columns], bool]], ...] = (
    (_LEAVES, lambda *_: True),
    (exp.Column, lambda node, columns: bool(_kind(node, columns))),
    (_CHOICES, _chooses),
    (exp.Cast, _casts),
    ((exp.And, exp.Or, exp.Not), _connects_booleans),
    ((exp.Add, exp.Sub, exp.Mul, exp.Neg), _calculates),
    ((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between), _compares_like),
    ((exp.NullSafeEQ, exp.NullSafeNEQ), _compares_like),
)
"""What all say alike. Left out are division, rounding, upper and lower case, patterns, functions of text and time."""
