"""Infers the type of a foreign-key expression, as far as that is possible without Spark."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
)
from sqlglot import exp

from lakejoin.orchestration.config.problems import did_you_mean, listed
from lakejoin.orchestration.config.schema.column_types import parse_type, type_text

Columns = Mapping[str, DataType | None]
"""The columns of a row; the type is None where its declaration is not understood."""

_WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
"""From narrow to wide."""
_TEXT_CALLS = (
    exp.Upper, exp.Lower, exp.Trim, exp.Initcap, exp.RegexpReplace, exp.RegexpExtract, exp.Translate,
    exp.Replace, exp.MD5, exp.SHA, exp.SHA2, exp.ConcatWs,
)  # fmt: skip
"""Functions that return text whatever their arguments are."""


def infer_type(node: exp.Expr, columns: Columns) -> DataType | None:
    """Return the type of an expression if Spark's rule is certain, else None.

    sqlglot's own inference is not used: it takes `year(d)` for a tinyint and `decimal(12,2) + 1` for a
    decimal(12,2), and a wrong guess would refuse a right file.
    """
    rule = next((rule for kinds, rule in _RULES if isinstance(node, kinds)), None)
    return rule(node, columns) if rule else None


def column_type(column: exp.Column, columns: Columns) -> DataType | None:
    """The type of a column or, after it, of fields of its struct."""
    first, *fields = [part.name for part in column.parts]
    if first not in columns:
        raise ValueError(unknown_column(first, columns))
    dtype = columns[first]
    for field in fields:
        if dtype is None:
            return None
        if not isinstance(dtype, StructType):
            raise ValueError(
                f"takes the field {field!r} of {first!r}, which is {type_text(dtype)}, not a struct"
            )
        if field not in dtype.names:
            raise ValueError(
                f"takes the field {field!r}, which {first!r} lacks{did_you_mean(field, dtype.names)}"
            )
        dtype = dtype[field].dataType
    return dtype


def unknown_column(name: str, columns: Iterable[str]) -> str:
    """The message for a column that is not there, with the nearest that is."""
    known = list(columns)
    return f"no column is named {name!r}{did_you_mean(name, known)} (columns: {listed(known)})"


def _cast_type(node: exp.Cast) -> DataType | None:
    try:
        return parse_type(node.to.sql(dialect="spark"))
    except ValueError:
        return None


def _literal_type(node: exp.Literal) -> DataType | None:
    if node.is_string:
        return StringType()
    if not node.name.isdecimal():
        return None
    return IntegerType() if int(node.name) < 2**31 else LongType() if int(node.name) < 2**63 else None


def arms(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a choice that its value may come from."""
    match node:
        case exp.Case():
            arms = [branch.args["true"] for branch in node.args["ifs"]]
            return [*arms, *([node.args["default"]] if node.args.get("default") else [])]
        case exp.If():
            return [node.args["true"], *([node.args["false"]] if node.args.get("false") else [])]
        case exp.Nullif():
            return [node.this]
    return [node.this, *node.expressions]


def _texts(node: exp.Expr) -> list[exp.Expr]:
    """The arguments that must be text for the result to be text: of binary, these functions make binary."""
    match node:
        case exp.Concat():
            return list(node.expressions)
        case exp.DPipe():
            return [node.this, node.expression]
    return [node.this]


def _choice_type(node: exp.Expr, columns: Columns) -> DataType | None:
    """The type that all arms of a choice have."""
    types = [infer_type(arm, columns) for arm in arms(node) if not isinstance(arm, exp.Null)]
    return types[0] if types and all(dtype == types[0] for dtype in types) else None


def _text_type(node: exp.Expr, columns: Columns) -> DataType | None:
    return StringType() if all(infer_type(part, columns) == StringType() for part in _texts(node)) else None


def _sum_type(node: exp.Binary, columns: Columns) -> DataType | None:
    """Double beside any number, the wider of two whole-number types; None for others, which depend on precision."""
    types = [infer_type(side, columns) for side in (node.left, node.right)]
    kinds = [type(dtype) for dtype in types]
    if DoubleType in kinds:
        return DoubleType() if all(issubclass(kind, NumericType) for kind in kinds) else None
    return max(types, key=_width) if all(kind in _WHOLE for kind in kinds) else None


def _quotient_type(node: exp.Div, columns: Columns) -> DataType | None:
    """Double for whole numbers, too."""
    whole = all(isinstance(infer_type(side, columns), _WHOLE) for side in (node.left, node.right))
    return DoubleType() if whole else _sum_type(node, columns)


def _struct_type(node: exp.Struct, columns: Columns) -> DataType | None:
    """Of columns, and of what has a name; what Spark calls other fields depends on how they are written."""
    named = [entry for entry in node.expressions if isinstance(entry, exp.PropertyEQ)]
    types = [infer_type(entry.expression, columns) for entry in named]
    if len(named) < len(node.expressions) or None in types:
        return None
    return StructType(
        [StructField(entry.name, dtype) for entry, dtype in zip(named, types, strict=True) if dtype]
    )


def _width(dtype: DataType | None) -> int:
    return _WHOLE.index(type(dtype))


_Rule = Callable[[Any, Columns], DataType | None]
_RULES: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], _Rule], ...] = (
    (exp.Column, column_type),
    (_TEXT_CALLS, lambda *_: StringType()),
    ((exp.Paren, exp.Neg), lambda node, columns: infer_type(node.this, columns)),
    (exp.Cast, lambda node, _: _cast_type(node)),
    (exp.Literal, lambda node, _: _literal_type(node)),
    ((exp.Coalesce, exp.Nullif, exp.If, exp.Case), _choice_type),
    ((exp.Add, exp.Sub, exp.Mul, exp.Mod), _sum_type),
    (exp.Div, _quotient_type),
    ((exp.Concat, exp.DPipe, exp.Substring, exp.Left, exp.Right, exp.Pad), _text_type),
    ((exp.Length, exp.Year, exp.Month, exp.Day), lambda *_: IntegerType()),
    (exp.IntDiv, lambda *_: LongType()),
    (exp.Struct, _struct_type),
    (exp.TsOrDsToDate, lambda *_: DateType()),
    ((exp.Predicate, exp.Connector, exp.Not, exp.Boolean), lambda *_: BooleanType()),
)
