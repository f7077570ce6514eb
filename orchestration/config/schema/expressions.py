"""Decides which SQL expressions may be a foreign key.

An expression is evaluated again whenever its row is looked at, so it must give the same value every time: a column, or
a deterministic scalar expression over the left row. sqlglot reads it; what is not on the lists here is refused.
"""

import logging
import re
from collections.abc import Iterable
from itertools import pairwise

import sqlglot
from pyspark.sql.types import DataType
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from orchestration.config.problems import did_you_mean
from orchestration.config.schema.expression_types import Columns, column_type, infer_type


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words("""
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode
    elt encode endswith find_in_set format_string initcap instr lcase left len length levenshtein locate
    lower lpad ltrim luhn_check mask octet_length overlay parse_url position printf regexp_count
    regexp_extract regexp_instr regexp_replace regexp_substr repeat replace reverse right rpad rtrim
    soundex split split_part startswith substr substring substring_index to_char to_number translate trim
    try_to_number ucase unbase64 upper url_decode url_encode coalesce equal_null greatest if ifnull
    isnotnull isnull least nullif nvl nvl2 abs bin bround ceil ceiling conv floor hex mod negative pmod
    positive round shiftleft shiftright sign signum try_add try_divide try_multiply try_subtract unhex
    crc32 hash md5 sha sha1 sha2 xxhash64 add_months date_add date_diff date_format date_from_unix_date
    date_part date_sub date_trunc datediff day dayofmonth dayofweek dayofyear extract from_unixtime
    from_utc_timestamp hour last_day make_date minute month next_day quarter second timestamp_micros
    timestamp_millis timestamp_seconds to_date to_timestamp to_unix_timestamp to_utc_timestamp trunc
    try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year
    array_contains array_join cardinality element_at get get_json_object size try_element_at bigint binary
    boolean cast date decimal double float int smallint string timestamp tinyint try_cast
""")
"""Functions of Spark that give the same value for the same row, whenever and wherever they run."""
_SYNTAX = _words("""
    and or not in case when then else between like ilike rlike is div dec numeric varchar
""")
"""Words that stand before a parenthesis without calling anything."""
_NONDETERMINISTIC = _words("""
    rand randn random randstr uniform uuid shuffle now curdate current_date current_time current_timestamp
    localtimestamp current_timezone current_user session_user user current_catalog current_database
    current_schema input_file_name monotonically_increasing_id spark_partition_id reflect java_method
""")
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
            _check_deterministic(column.name.lower())
        column_type(column, columns)
    _check_calls(text)
    try:
        return infer_type(tree, columns)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error


def referenced_columns(expressions: Iterable[str]) -> list[str]:
    """Names of the columns that foreign-key expressions read, each once; they are valid already."""
    trees = [_parse(text) for text in expressions]
    return list(dict.fromkeys(c.parts[0].name for tree in trees for c in tree.find_all(exp.Column)))


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
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        for name in node.sql_names():
            _check_deterministic(name.lower())
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
        if calls and name not in FUNCTIONS and name not in _SYNTAX:
            _check_deterministic(name)
            raise ValueError(
                f"calls {name!r}, which is not among the functions known to be deterministic"
                f"{did_you_mean(name, FUNCTIONS)} (docs/configuration.md lists them)"
            )


def _check_deterministic(name: str) -> None:
    if name in _NONDETERMINISTIC:
        raise ValueError(f"calls {name!r}, which gives another value each time or place it runs; {RULE}")


def _tokens(text: str) -> list[Token]:
    """The words and signs of an expression that has been parsed before."""
    return sqlglot.tokenize(text, read="spark")
