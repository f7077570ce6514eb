r"""Refuses records that are too long, too deep, or not Unicode.

A record beyond the limits is not parsed, and its text is not kept: quarantine has its length and its hash, by which it
can be found in its file. JSON can also hold half of a surrogate pair (`"\ud800"`; RFC 8259, section 8.2), which is no
character. Java would read each such half as a question mark, and take different keys for equal.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import REASON
from lakejoin.transforms.parsing.options import ParseOptions, reason_is

LONE_SURROGATE = r"holds half of a surrogate pair (\ud800 to \udfff alone), which is no character"

_BRACKETS = 100_000
"""How many brackets of a line are looked at."""
JSON_TEXT = r'(?s)"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|$)'
"""A JSON string with its quotes. Possessive, for Java keeps each step that it could go back to on its stack."""
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_WHOLE = rf"\\\\|{_HIGH}{_LOW}"
"""An escaped backslash, which escapes nothing itself, or both halves of a pair."""
_HALF = rf"{_HIGH}|{_LOW}"


def is_long(line: Column, options: ParseOptions) -> Column:
    """Whether a line has more bytes than it may."""
    return F.octet_length(line) > options.max_line


def readable(line: Column, options: ParseOptions) -> Column:
    """The line if it is short enough to be parsed, else null."""
    return F.when(~is_long(line, options), line)


def is_deep(line: Column, options: ParseOptions) -> Column:
    """Whether objects and arrays are nested deeper than they may be, as far as their first brackets tell."""
    brackets = F.regexp_replace(F.regexp_replace(line, JSON_TEXT, ""), r"[^\[\]{}]++", "")
    steps = F.split(F.substring(brackets, 1, _BRACKETS), "")
    start = F.struct(F.lit(0).alias("now"), F.lit(0).alias("most"))
    most = F.aggregate(steps, start, _step, lambda level: level["most"])
    return (F.octet_length(line) > options.max_depth) & (most > options.max_depth)


def _step(level: Column, bracket: Column) -> Column:
    opens, closes = bracket.isin("[", "{"), bracket.isin("]", "}")
    now = level["now"] + F.when(opens, 1).when(closes, -1).otherwise(0)
    return F.struct(now.alias("now"), F.greatest(level["most"], now).alias("most"))


def has_lone_surrogate(line: Column) -> Column:
    r"""Whether a line escapes half of a surrogate pair; `\\ud800` is a backslash and five letters."""
    # almost no line has an escape at all, and a search for one costs least
    mentions = line.contains(r"\u") & line.rlike(_HALF)
    return mentions & F.regexp_replace(line, _WHOLE, " ").rlike(_HALF)


def longer(length: Column, options: ParseOptions) -> Column:
    """What is said of a record that is too long."""
    found = F.format_number(length, 0)
    return F.concat(found, F.lit(f" bytes, expected at most {options.max_line:,} (source.limits.line)"))


def deeper(options: ParseOptions) -> Column:
    """What is said of a record that is too deep."""
    return F.lit(f"more than {options.max_depth} levels of objects and arrays (source.limits.depth)")


def refuse_large(
    length: Column, reason: Column, detail: Column, options: ParseOptions
) -> tuple[Column, Column]:
    """Reason and detail of a row of so many bytes: that it is too long, else what was found before."""
    large = length > options.max_line
    return (
        F.when(large, reason_is("too_large")).otherwise(reason),
        F.when(large, longer(length, options)).otherwise(detail),
    )


def short_text(raw: Column) -> Column:
    """What quarantine keeps of a record: its text, or of a large one the length and the hash, as JSON."""
    large = F.to_json(
        F.struct(F.octet_length(raw).alias("bytes"), F.sha2(raw.cast("binary"), 256).alias("sha256"))
    )
    return F.when(F.col(REASON) == reason_is("too_large"), large).otherwise(raw)
