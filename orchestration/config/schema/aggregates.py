"""Reads the `select` of groups: aggregates such as `sum(amount)` or `first(status, order by at desc)`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    LongType,
    MapType,
    StructType,
)
from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from lakejoin.orchestration.config.problems import did_you_mean, listed
from lakejoin.orchestration.config.schema.column_types import type_text
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.expressions import type_by_rule
from lakejoin.orchestration.config.schema.select import as_sql
from lakejoin.transforms.model.group_spec import Aggregate, Function

_RULE = "the argument of an aggregate is a deterministic scalar expression over a row"
_MOST_DIGITS = 38
_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET}


@dataclass(frozen=True)
class _Shape:
    """How an aggregate is written."""

    arguments: int
    ordered: bool = False
    """Whether it may end with `order by …`."""


_SHAPES: Mapping[Function, _Shape] = {
    "count": _Shape(1),
    "count_distinct": _Shape(1),
    "sum": _Shape(1),
    "avg": _Shape(1),
    "min": _Shape(1),
    "max": _Shape(1),
    "any": _Shape(1),
    "first": _Shape(1, ordered=True),
    "last": _Shape(1, ordered=True),
    "collect": _Shape(1, ordered=True),
    "map": _Shape(2, ordered=True),
}
FUNCTIONS = ("count(*)", "count(distinct …)", *[f"{name}(…)" for name in _SHAPES if name != "count_distinct"])
"""How aggregates may begin, for people."""


def aggregate(name: str, text: str, columns: Columns) -> Aggregate | None:
    """A column of groups as the stages take it; None where the type of a column is not known.

    `columns`: of a row. Raises `ValueError` with what is wrong with the text.
    """
    function, arguments, order, descending = _taken_apart(text)
    types = [_argument_type(argument, columns) for argument in (*arguments, *order)]
    if None in types:
        return None
    known = [dtype for dtype in types if dtype is not None]
    _check_types(text, function, known, len(arguments))
    of = known[0] if arguments else None
    dtype = _RESULTS[function](known)
    sql = as_sql([*arguments, *order], columns)
    given = len(arguments)
    return Aggregate(name, dtype, function, sql[:given], of, sql[given:], descending)


def _taken_apart(text: str) -> tuple[Function, list[str], list[str], bool]:
    """Function, arguments, order, and whether the order is descending."""
    try:
        words = sqlglot.tokenize(text, read="spark")
    except SqlglotError as error:
        raise ValueError(f"{text!r} is not valid SQL ({str(error).splitlines()[0]})") from error
    if len(words) < 3 or words[1].token_type is not TokenType.L_PAREN or words[-1].token_type not in _CLOSING:
        raise ValueError(f"{text!r} is no aggregate; write one of {listed(FUNCTIONS)}")
    name = words[0].text.lower()
    if name not in _SHAPES or name == "count_distinct":
        hint = did_you_mean(name, [known for known in _SHAPES if known != "count_distinct"])
        raise ValueError(
            f"{text!r} calls {name!r}, which is no aggregate; write one of {listed(FUNCTIONS)}{hint}"
        )
    arguments, order = _pieces(text, words)
    return _shaped(text, name, arguments, order)


def _pieces(text: str, words: Sequence[Token]) -> tuple[list[str], list[str]]:
    """What stands between the commas of a call, and behind its `order by`."""
    arguments, order, depth, start = list[str](), list[str](), 0, words[1].end + 1
    pieces = arguments
    for word in words[2:]:
        if depth == 0 and (word.token_type in _CLOSING or word.token_type is TokenType.COMMA):
            if word.token_type in _CLOSING and word is not words[-1]:
                raise ValueError(f"{text!r} is more than one aggregate; select each as a column of its own")
            pieces.append(text[start : word.start].strip())
            start = word.end + 1
        elif depth == 0 and word.token_type is TokenType.ORDER_BY:
            if pieces is order or text[start : word.start].strip():
                raise ValueError(f"{text!r}: `order by` stands behind a comma, and once")
            pieces, start = order, word.end + 1
        depth += (word.token_type in _OPENING) - (word.token_type in _CLOSING)
    return arguments, order


def _shaped(
    text: str, name: str, arguments: list[str], order: list[str]
) -> tuple[Function, list[str], list[str], bool]:
    function: Function = next(known for known in _SHAPES if known == name)
    if function == "count" and arguments and arguments[0].lower().startswith("distinct "):
        function, arguments = "count_distinct", [arguments[0][len("distinct ") :].strip(), *arguments[1:]]
    if function == "count" and arguments == ["*"]:
        return function, [], _unordered(text, function, order), False
    shape = _SHAPES[function]
    if len(arguments) != shape.arguments or not all(arguments):
        raise ValueError(
            f"{text!r}: {name} takes {shape.arguments} argument(s), found {len([*filter(None, arguments)])}"
        )
    if not shape.ordered:
        return function, arguments, _unordered(text, function, order), False
    ways = {entry.lower().rpartition(" ")[2] == "desc" for entry in order}
    if len(ways) > 1:
        raise ValueError(
            f"{text!r}: the order is ascending and descending at once; write all with desc, or none"
        )
    return function, arguments, [_without_way(entry) for entry in order], ways == {True}


def _unordered(text: str, function: Function, order: list[str]) -> list[str]:
    if order:
        raise ValueError(
            f"{text!r}: the order of rows makes no difference to {function}; leave `order by` out"
        )
    return order


def _without_way(entry: str) -> str:
    rest, _, way = entry.rpartition(" ")
    return rest.strip() if way.lower() in {"asc", "desc"} and rest else entry


def _argument_type(text: str, columns: Columns) -> DataType | None:
    dtype = type_by_rule(text, columns, _RULE)
    if dtype is None and text not in columns and None not in columns.values():
        raise ValueError(f"{text!r} has a type that only Spark can tell; say it: cast({text} as …)")
    return dtype


def _check_types(text: str, function: Function, types: list[DataType], arguments: int) -> None:
    ordered = function in {"collect", "map"}
    if function in {"sum", "avg"} and not isinstance(
        types[0], IntegralType | DecimalType | FloatType | DoubleType
    ):
        raise ValueError(f"{text!r}: {function} adds numbers, and the argument is {type_text(types[0])}")
    compared = types[:arguments] if ordered or function in {"min", "max", "count_distinct"} else []
    for dtype in (*compared, *types[arguments:]):
        if _has_map(dtype):
            raise ValueError(f"{text!r}: a value of type {type_text(dtype)} cannot be compared")


def _has_map(dtype: DataType) -> bool:
    match dtype:
        case MapType():
            return True
        case ArrayType():
            return _has_map(dtype.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in dtype)
    return False


def _sum_type(types: list[DataType]) -> DataType:
    match types[0]:
        case DecimalType(precision=precision, scale=scale):
            return DecimalType(min(precision + 10, _MOST_DIGITS), scale)
        case IntegralType():
            return LongType()
    return DoubleType()


def _avg_type(types: list[DataType]) -> DataType:
    match types[0]:
        case DecimalType(precision=precision, scale=scale):
            return DecimalType(min(precision + 4, _MOST_DIGITS), min(scale + 4, _MOST_DIGITS))
    return DoubleType()


_RESULTS: Mapping[Function, Callable[[list[DataType]], DataType]] = {
    **dict.fromkeys(("count", "count_distinct"), lambda _: LongType()),
    "sum": _sum_type,
    "avg": _avg_type,
    **dict.fromkeys(("min", "max", "any", "first", "last"), lambda types: types[0]),
    "collect": lambda types: ArrayType(types[0]),
    "map": lambda types: MapType(types[0], types[1]),
}
"""The types that Spark gives to its own aggregates, of those of their arguments."""
