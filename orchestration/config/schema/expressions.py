"""Decides which SQL expressions may be a foreign key.

An expression is evaluated again whenever its row is looked at, so it must give the same value every time: a column, or
a deterministic scalar expression over the left row. sqlglot reads it; what is not on the lists here and in
`orchestration.config.schema.functions` is refused.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

import sqlglot
from pyspark.sql.types import BinaryType, BooleanType, DataType, NumericType, StringType
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from lakejoin.orchestration.config.problems import did_you_mean
from lakejoin.orchestration.config.schema.expression_types import Columns, column_type, infer_type
from lakejoin.orchestration.config.schema.functions import (
    DATES,
    FUNCTIONS,
    GIVE_TEXT,
    NOT_CONSTANT,
    SYNTAX,
    refusal,
)
from lakejoin.transforms.model.schemas import quoted

_CLOCK_WORDS = re.compile(r"\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)
RULE = "a foreign key is a column or a deterministic scalar expression over the left row"
"""What the messages of `expression_type` end with."""
_LONGEST = 2000
_SELECT = "SELECT "

_REFUSED: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Query, exp.Exists), "a subquery"),
    (exp.Window, "a window function"),
    (exp.UDTF, "a function that makes several rows"),
    (exp.AggFunc, "an aggregate"),
    (exp.Star, "*"),
    (exp.Alias, "a second word or AS"),
    (exp.Lambda, "a lambda"),
    ((exp.Placeholder, exp.Parameter), "a parameter"),
    (exp.Collate, "a collation"),
)
_ALLOWED = (
    exp.AtTimeZone,  # what sqlglot makes of from_utc_timestamp
    exp.Between,
    exp.Binary,
    exp.Boolean,
    exp.Bracket,
    exp.Case,
    exp.Column,
    exp.ColumnDef,
    exp.DataType,
    exp.DataTypeParam,
    exp.Escape,
    exp.FromTimeZone,
    exp.Func,
    exp.HexString,
    exp.Identifier,
    exp.In,
    exp.Interval,
    exp.JSONPath,
    exp.JSONPathPart,
    exp.Literal,
    exp.Null,
    exp.Unary,
    exp.Var,
)

_PLAIN = (StringType, BinaryType, BooleanType, NumericType)
"""Types of columns that make no date of a text beside them."""
_TOO_DEEP = "is nested too deeply"

# Its warnings about other dialects and paths in JSON would stand between our own messages.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def expression_type(text: str, columns: Columns) -> DataType | None:
    """The type of a foreign-key expression over a row of `columns`, None where only Spark can tell.

    A text that is exactly the name of a column is that column, whatever signs it holds. Raises `ValueError`
    with what may not be in a foreign key.
    """
    if text in columns:
        return columns[text]
    tree = _parse(text)
    for node in tree.walk():
        _check_node(node)
    for column in tree.find_all(exp.Column):
        if column.name not in columns:
            _check_listed(column.name.lower())
        column_type(column, columns)
    _check_calls(text)
    try:
        _check_constants(tree, columns)
        return infer_type(tree, columns)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def type_by_rule(text: str, columns: Columns, rule: str) -> DataType | None:
    """As `expression_type`, for what is no foreign key: messages begin with the text and end with another `rule`."""
    try:
        return expression_type(text, columns)
    except ValueError as error:
        told = str(error).replace(RULE, rule)
        raise ValueError(
            f"{text!r}: {told}" if told.startswith("no column") else f"{text!r} {told}"
        ) from error


def referenced_columns(expressions: Iterable[str]) -> list[str]:
    """Names of the columns that foreign-key expressions read, each once; they are valid already."""
    trees = [_parse(text) for text in expressions]
    return list(dict.fromkeys(c.parts[0].name for tree in trees for c in tree.find_all(exp.Column)))


def renamed(text: str, names: Mapping[str, str]) -> str:
    """An expression, valid already, with other names for its columns."""
    columns = {column.parts[0].name for column in _parse(text).find_all(exp.Column)}
    words, parts, end = _tokens(text), list[str](), 0
    for before, word, after in zip([None, *words], words, [*words[1:], None], strict=False):
        names_column = word.text in columns and word.token_type is not TokenType.STRING
        is_field = before is not None and before.token_type is TokenType.DOT
        calls = after is not None and after.token_type is TokenType.L_PAREN
        if names_column and not is_field and not calls:
            parts += [text[end : word.start], quoted(names[word.text])]
            end = word.end + 1
    return "".join([*parts, text[end:]])


@lru_cache(maxsize=1024)  # the trees are only looked at
def _parse(text: str) -> exp.Expr:
    """The expression's tree, read as what follows SELECT: on its own, `show tables` would be a statement."""
    if not text.strip():
        raise ValueError("is empty; " + RULE)
    if len(text) > _LONGEST:
        raise ValueError(f"is longer than {_LONGEST} characters")
    try:
        trees = sqlglot.parse(_SELECT + text, read="spark")
    except ParseError as error:
        raise ValueError(f"is not valid SQL{_near(error)}") from error
    except SqlglotError as error:
        raise ValueError(f"is not valid SQL ({str(error).splitlines()[0]})") from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    select = trees[0]
    if len(trees) != 1 or not isinstance(select, exp.Select) or len(select.expressions) != 1:
        raise ValueError("is not one expression; " + RULE)
    clauses = [name for name, value in select.args.items() if value and name != "expressions"]
    if clauses:
        raise ValueError(f"holds more than an expression ({clauses[0].rstrip('_').upper()}); " + RULE)
    tree: exp.Expr = select.expressions[0]
    return tree


def _near(error: ParseError) -> str:
    place = error.errors[0] if error.errors else {}
    column = place.get("col", 0) - (len(_SELECT) if place.get("line") == 1 else 0)
    return f", near character {column}" if column > 0 else ""


def _check_node(node: exp.Expr) -> None:
    """Refuse what is no deterministic scalar expression by its kind."""
    for kinds, what in _REFUSED:
        if isinstance(node, kinds):
            raise ValueError(f"holds {what}; {RULE}")
    if isinstance(node, exp.Func):
        # those that are called without a parenthesis, too
        for name in sorted(NOT_CONSTANT & _names_of(node)):
            _check_listed(name)
    if isinstance(node, exp.Literal) and node.is_string and _CLOCK_WORDS.match(node.name):
        raise ValueError(
            f"holds {node.name!r}, which reads the clock where Spark takes it for a date or time"
        )
    if not isinstance(node, _ALLOWED):
        raise ValueError(f"holds {node.sql(dialect='spark')!r}, which is not supported; {RULE}")


def _check_calls(text: str) -> None:
    """Refuse functions by the names as written, which are what Spark will call."""
    words = _tokens(text)
    for token in words:
        if token.comments or token.token_type in {TokenType.SEMICOLON, TokenType.ARROW, TokenType.FARROW}:
            raise ValueError(f"holds a comment, ';', '->' or '=>', which are not supported; {RULE}")
    for token, following in pairwise(words):
        name = token.text.lower()
        calls = following.token_type is TokenType.L_PAREN and re.fullmatch(r"\w+", name)
        if calls and name not in FUNCTIONS and name not in SYNTAX:
            _check_listed(name)
            raise ValueError(
                f"calls {name!r}, which is not among the functions known to be deterministic"
                f"{did_you_mean(name, FUNCTIONS)} (docs/configuration.md lists them)"
            )


def _check_listed(name: str) -> None:
    if reason := refusal(name):
        raise ValueError(f"calls {name!r}, which {reason}; {RULE}")


def _check_constants(tree: exp.Expr, columns: Columns) -> None:
    """Refuse texts computed of constants beside dates: Spark computes them first, and finds words of the clock."""
    if any(_is_of_dates(node, columns) for node in tree.walk()):
        for node in tree.walk():
            if _gives_text(node) and not node.find(exp.Column):
                raise ValueError(
                    f"computes {node.sql(dialect='spark')!r} of constants, which reads the clock where it makes "
                    "'today' or the like; write the text itself"
                )


def _is_of_dates(node: exp.Expr, columns: Columns) -> bool:
    match node:
        case exp.Cast():
            return node.to.is_type(*exp.DataType.TEMPORAL_TYPES)
        case exp.Column():
            return not isinstance(column_type(node, columns), _PLAIN)
    return isinstance(node, exp.Interval) or not DATES.isdisjoint(_names_of(node))


def _gives_text(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return node.to.is_type(*exp.DataType.TEXT_TYPES) and not isinstance(node.this, exp.Literal)
    return isinstance(node, exp.DPipe | exp.Case | exp.Concat) or not GIVE_TEXT.isdisjoint(_names_of(node))


def _names_of(node: exp.Expr) -> set[str]:
    """The names that a call may be written by."""
    match node:
        case exp.Anonymous():
            return {node.name.lower()}
        case exp.Func():
            return {name.lower() for name in node.sql_names()}
    return set()


def _tokens(text: str) -> list[Token]:
    """The words and signs of an expression that has been parsed before."""
    return sqlglot.tokenize(text, read="spark")
