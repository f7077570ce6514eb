"""Translates expressions of a configuration for DuckDB, as far as they surely mean the same there as to Spark."""

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
"""What is computed with. DuckDB orders nested values in another way, and gives a literal the type of a small number."""
_NUMBERS = {"whole", "double", "decimal"}
_NULL = "null"
_CASTS = {
    ("time", "DATE"): "date",
    ("date", "DATE"): "date",
    ("whole", "BIGINT"): "whole",
    ("whole", "DOUBLE"): "double",
}
"""Casts to a wider number, and of a time to its day."""


class _Unsure(Exception):
    """Something may mean something else to DuckDB."""


def translated(text: str, columns: StructType, table: str = "") -> str | None:
    """Return an expression over columns as DuckDB has it; None where it may mean something else there.

    table: what the columns are of, where that must be said. A column alone may have any type.
    """
    names = {field.name.lower(): field.name for field in columns}
    try:
        tree = sqlglot.parse_one(text, read="spark")
        if not isinstance(tree, exp.Column):
            _kind(tree, {field.name.lower(): _KINDS.get(type(field.dataType), "") for field in columns})
    except (SqlglotError, _Unsure):
        return None
    for column in list(tree.find_all(exp.Column)):
        name = names.get(column.name.lower())
        if name is None or column.table:
            return None
        column.set("this", exp.to_identifier(name, quoted=True))
        column.set("table", exp.to_identifier(table) if table else None)
    return tree.sql(dialect="duckdb").replace("TRY_CAST(", "CAST(")


def _kind(node: exp.Expr, known: Mapping[str, str]) -> str:
    """The kind of value that an expression gives. Raises `_Unsure`."""
    way = _WAYS.get(type(node))
    if way is None:
        raise _Unsure
    return way(node, known)


def _column(node: exp.Expr, known: Mapping[str, str]) -> str:
    kind = known.get(node.name.lower(), "")
    if not kind:
        raise _Unsure
    return kind


def _literal(node: exp.Expr, known: Mapping[str, str]) -> str:  # noqa: ARG001 - each way takes the same
    if node.args.get("is_string"):
        return "text"
    return "whole" if node.name.isdigit() else "decimal"


def _boolean(node: exp.Expr, known: Mapping[str, str]) -> str:  # noqa: ARG001 - as above
    return "boolean"


def _null(node: exp.Expr, known: Mapping[str, str]) -> str:  # noqa: ARG001 - as above
    return _NULL


def _same(*kinds: str) -> str:
    """The kind that all have; null goes with each, and numbers go together. Raises `_Unsure`."""
    found = {kind for kind in kinds if kind != _NULL}
    if len(found) > 1 and not found <= _NUMBERS:
        raise _Unsure
    return next(iter(found), _NULL)


def _parts(node: exp.Expr, known: Mapping[str, str]) -> list[str]:
    """The kinds of all operands."""
    found = [node.args.get(name) for name in ("this", "expression", "low", "high")]
    return [_kind(one, known) for one in (*found, *node.expressions) if one is not None]


def _compared(node: exp.Expr, known: Mapping[str, str]) -> str:
    _same(*_parts(node, known))
    return "boolean"


def _connected(node: exp.Expr, known: Mapping[str, str]) -> str:
    if _same("boolean", *_parts(node, known)) != "boolean":
        raise _Unsure
    return "boolean"


def _calculated(node: exp.Expr, known: Mapping[str, str]) -> str:
    kinds = set(_parts(node, known)) - {_NULL}
    if not kinds <= {"whole", "double"}:  # decimals get other scales
        raise _Unsure
    return "double" if "double" in kinds else "whole"


def _chosen(node: exp.Expr, known: Mapping[str, str]) -> str:
    return _alike(*_parts(node, known))


def _alike(*kinds: str) -> str:
    """The one kind of values of which one is chosen: numbers of two kinds would be made one."""
    found = set(kinds) - {_NULL}
    if len(found) > 1:
        raise _Unsure
    return next(iter(found), _NULL)


def _case(node: exp.Expr, known: Mapping[str, str]) -> str:
    if node.this is not None:
        raise _Unsure
    branches = [*node.args["ifs"], *([node.args["default"]] if node.args.get("default") else [])]
    return _alike(*[_kind(branch, known) for branch in branches])


def _if(node: exp.Expr, known: Mapping[str, str]) -> str:
    _same("boolean", _kind(node.this, known))
    otherwise = node.args.get("false")
    return _alike(*[_kind(one, known) for one in (node.args["true"], otherwise) if one is not None])


def _cast(node: exp.Expr, known: Mapping[str, str]) -> str:
    kind = _CASTS.get((_kind(node.this, known), node.args["to"].sql(dialect="duckdb").upper()))
    if kind is None:
        raise _Unsure
    return kind


_WAYS: Mapping[type[exp.Expr], Callable[[exp.Expr, Mapping[str, str]], str]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _chosen,
    exp.Coalesce: _chosen,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **dict.fromkeys((exp.And, exp.Or, exp.Not), _connected),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Neg), _calculated),
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _compared),
    **dict.fromkeys((exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between), _compared),
}
"""What the two say alike. Left out are division, rounding, upper and lower case, patterns, functions of text and of
time."""
