"""Parses JSON lines by one `from_json` with only what is declared, each value first as text.

Two things are mended here. Spark's reader stops behind the first value and would not see what follows it on the line.
And as text it gives a number with a fraction as the nearest double: `1.10` as `1.1`, and never more than 17 digits. Of
members with the same name the last counts; only a map must not have any. (JSON: RFC 8259.)

A variant (`try_parse_json`) would not spare the second parse: numbers with an exponent are doubles in it, too, `1.0` is
read as `1`, members are sorted, and a name that comes twice is an error.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    StringType,
    StructField,
    StructType,
)

from lakejoin.transforms.parsing.broken_lines import why_broken
from lakejoin.transforms.parsing.limits import (
    JSON_TEXT,
    LONE_SURROGATE,
    deeper,
    has_lone_surrogate,
    is_deep,
    is_long,
    longer,
)
from lakejoin.transforms.parsing.options import DEEPEST, ParseOptions, reason_is

_RECORD, _END, _CORRUPT = "_lj_record", "_lj_end", "_lj_corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    # Spark allows both by default; RFC 8259 does not
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
_NUMBER = "-?[0-9][0-9.eE+-]*+"
_PLAIN_NAME = re.compile("[A-Za-z0-9_.$-]+")
"""Names that nobody writes with escapes."""
_BEGIN, _STOP = "\x01", "\x02"
"""Where a number stands; a line of JSON holds neither of the two signs."""


def parse_line(line: Column, record: DataType) -> Column:
    """Parse a line that is to hold one object of JSON, or value of another type; see `record_of` and `is_broken`."""
    # The line stands in a list, where a further member such as `,"a":{}` is an error, and the list in an object that
    # goes on behind it, for the parser stops behind the first whole value and would not see what follows
    wrapped = F.concat(F.lit(f'{{"{_RECORD}":['), line, F.lit(f'],"{_END}":true}}'))
    schema = StructType().add(_RECORD, ArrayType(record)).add(_END, BooleanType()).add(_CORRUPT, StringType())
    return F.from_json(wrapped, schema, _OPTIONS)


def record_of(parsed: Column) -> Column:
    """What a parsed line holds."""
    return F.get(parsed[_RECORD], 0)


def is_broken(parsed: Column) -> Column:
    """Whether the line held anything but one object of the expected shape."""
    is_one = (F.size(parsed[_RECORD]) == 1) & record_of(parsed).isNotNull()
    return parsed[_CORRUPT].isNotNull() | parsed[_END].isNull() | ~is_one


def line_reason(
    line: Column, parsed: Column, record: StructType, options: ParseOptions
) -> tuple[Column, Column]:
    """Reason and detail for a line that is no record at all, else null. `record`: what it was parsed for."""
    invalid, broken, lone = ~F.is_valid_utf8(line), is_broken(parsed), has_lone_surrogate(line)
    long = is_long(line, options)
    # beyond the last level that the parser reads, only what it could not read needs a look
    deep = is_deep(line, options) if options.max_depth < DEEPEST else broken & is_deep(line, options)
    in_base64 = F.concat(F.lit("bytes in base64: "), F.base64(F.substring(line.cast("binary"), 1, 65536)))
    reasons = [
        (long, reason_is("too_large"), longer(F.octet_length(line), options)),
        (invalid, reason_is("invalid_utf8"), in_base64),
        (deep, reason_is("too_large"), deeper(options)),
        (broken, reason_is("parse_error"), why_broken(line, record)),
        (lone, reason_is("invalid_utf8"), F.lit(LONE_SURROGATE)),
    ]
    return (
        F.coalesce(*[F.when(holds, reason) for holds, reason, _ in reasons]),
        F.coalesce(*[F.when(holds, detail) for holds, _, detail in reasons]),
    )


def texts(names: Iterable[str]) -> StructType:
    """Members by these names, each read as text."""
    return StructType([StructField(name, StringType()) for name in names])


def absent_from(names: Column, wanted: Mapping[str, str]) -> Column:
    """The columns whose member is not among these names of a row's; empty without any. `wanted`: members by column."""
    missing = [F.when(~F.array_contains(names, member), F.lit(column)) for column, member in wanted.items()]
    return F.array_compact(F.array(F.lit(None).cast("string"), *missing))


def parse_digits(
    line: Column, record: StructType, decimals: Sequence[tuple[str, DataType, Column]]
) -> Column:
    """Parse a line again with all digits of its numbers if one of the texts found may have lost some, else null.

    `record`: members as text. `decimals`: of the members that are or hold decimals, their names, their types, and what
    was read of each. What the line holds between quotes was text from the start.
    """
    rounded = reduce(or_, [_may_be_rounded(line, name, found) for name, _, found in decimals])
    plain = all(isinstance(dtype, DecimalType) and _PLAIN_NAME.fullmatch(name) for name, dtype, _ in decimals)
    names = dict.fromkeys(name for name, *_ in decimals)
    quoted = _with_quoted_members(line, names) if plain else _with_quoted_numbers(line)
    return F.when(rounded, parse_line(quoted, record))


def _with_quoted_members(line: Column, names: Iterable[str]) -> Column:
    """The line with the numbers of some members as strings, which are read as they are written."""
    # a string that ends before a colon is a name, and quotes within strings are escaped
    keys = "|".join(map(re.escape, names))
    return F.regexp_replace(line, rf'("(?:{keys})"\s*+:\s*+)({_NUMBER})', '$1"$2"')


def _with_quoted_numbers(line: Column) -> Column:
    """The line with all its numbers as strings, which takes longer than those of some members."""
    # each match is a string or a number, and the other of the two is empty
    marked = F.regexp_replace(line, f"({JSON_TEXT})|({_NUMBER})", f"$1{_BEGIN}$2{_STOP}")
    return F.translate(F.replace(marked, F.lit(_BEGIN + _STOP), F.lit("")), _BEGIN + _STOP, '""')


def _may_be_rounded(line: Column, name: str, text: Column) -> Column:
    member = json.dumps(name, ensure_ascii=False)
    quoted = [line.contains(F.concat(F.lit(f'{member}:{space}"'), text, F.lit('"'))) for space in ("", " ")]
    # a double as Java writes it always has a point; null where there is no text
    return F.coalesce(text.contains(".") & ~quoted[0] & ~quoted[1], F.lit(False))
