"""Guesses the type of a column from values: what Arrow takes texts for, and which unit makes times of whole numbers."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyarrow import csv

from lakejoin.transforms.parsing.debezium_toast import UNAVAILABLE_VALUE
from lakejoin.transforms.parsing.options import TimeUnit

_TIMES = re.compile(
    r"(?:^|_)(?:at|ts|on|when|since|until)$|time|date|stamp|created|changed|modified", re.IGNORECASE
)
_DATES = re.compile(r"date|(?:^|_)(?:day|since|until|dob|birth)", re.IGNORECASE)
_KEYS = re.compile(r"(?:^|_)(?:id|no|nr|key|number|code)$|Id$")
_FIXED = re.compile(r"[+-]?[0-9]+\.([0-9]+)")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}Z?")
"""How Debezium writes a day as text."""
_NO_NUMBERS = ("NaN", "Infinity", "-Infinity")
"""What stands as text in a column of doubles."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_FIRST, _LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1990, 2100))
_UNITS: tuple[tuple[TimeUnit, int], ...] = (("millis", 10**3), ("micros", 10**6), ("nanos", 10**9))
_DAYS = (_FIRST // 86_400, _LAST // 86_400)
_LONG = 2**63
_SHORT = 18
"""Digits of a decimal that a long holds."""


@dataclass(frozen=True)
class Writing:
    """How a source writes its values."""

    is_text: bool = False
    """All are texts, and say nothing of their types: CSV, and what Canal writes."""
    is_event: bool = False
    """They are in Debezium's events, whose whole numbers are times without a zone."""
    has_zone: bool = False
    """Times without a zone are of a zone that is declared."""


@dataclass(frozen=True)
class Guess:
    """A type for a column."""

    type: str
    unit: TimeUnit | None = None
    """What whole numbers count that are times."""
    note: str = ""
    """What nobody can tell from the values, or why it was guessed."""


def guess(name: str, values: Sequence[Any], writing: Writing) -> Guess:
    """Return the type for a column with these values, of which null says nothing."""
    known = [
        value
        for value in values
        if not (value is None or value == UNAVAILABLE_VALUE or (writing.is_text and value == ""))
    ]
    numbers = [value for value in known if value not in _NO_NUMBERS]
    known = numbers if any(isinstance(value, float) for value in numbers) else known
    match {type(value) for value in known}:
        case kinds if not kinds:
            return Guess("string", note="null in the whole sample")
        case kinds if kinds == {int}:
            return _whole(name, known, writing)
        case kinds if kinds == {str}:
            return _of_texts(name, known, writing)
        case kinds if kinds == {bool} or kinds <= {int, float}:
            return Guess("boolean" if kinds == {bool} else "double")
        case kinds if kinds & {dict, list}:
            return _of_members(known)
    return Guess("string", note="values of several kinds")


def _of_members(values: Sequence[Any]) -> Guess:
    if all(isinstance(value, dict) and value.keys() == {"scale", "value"} for value in values):
        return Guess("decimal(38,10)", note="numbers with a scale of their own")
    return Guess("string", note="holds JSON; declare struct<…>, map<…> or array<…> to take it apart")


def arrow_type(texts: Sequence[str]) -> pa.DataType:
    """Return what Arrow takes a column of these texts for."""
    lines = "\n".join('"' + text.replace('"', '""') + '"' for text in texts).encode(errors="replace")
    read = csv.read_csv(
        io.BytesIO(lines),
        read_options=csv.ReadOptions(column_names=["texts"], block_size=len(lines) + 1),
        parse_options=csv.ParseOptions(newlines_in_values=True),
    )
    return read.schema.field(0).type


def _whole(name: str, numbers: Sequence[int], writing: Writing) -> Guess:
    if any(not -_LONG <= number < _LONG for number in numbers):
        return Guess("decimal(38,0)")
    unit = unit_of(name, numbers, writing)
    if unit is not None:
        return Guess("timestamp_ntz" if writing.is_event else "timestamp", unit)
    if writing.is_event and _DATES.search(name) and all(_DAYS[0] <= number < _DAYS[1] for number in numbers):
        return Guess("date", note="whole numbers, taken for days since 1970")
    if _TIMES.search(name) and all(_FIRST <= number < _LAST for number in numbers):
        return Guess("bigint", note="seconds since 1970, perhaps, which are read as numbers")
    return Guess("bigint")


def unit_of(name: str, numbers: Sequence[int], writing: Writing) -> TimeUnit | None:
    """Return the unit by which all numbers but 0 are times of our days; None where they may be anything.

    Thirteen digits are many things. So milliseconds are believed of a column only whose name says so, or which is of
    an event.
    """
    counted = [number for number in numbers if number]
    if not counted or _KEYS.search(name):
        return None
    for unit, per_second in _UNITS:
        if all(_FIRST * per_second <= number < _LAST * per_second for number in counted):
            return unit if unit != "millis" or writing.is_event or _TIMES.search(name) else None
    return None


def _of_texts(name: str, texts: Sequence[str], writing: Writing) -> Guess:
    if writing.is_event and all(map(_DAY.fullmatch, texts)):
        return Guess("date")
    found = arrow_type(texts)
    if pa.types.is_timestamp(found):
        return Guess("timestamp_ntz" if found.tz is None and not writing.has_zone else "timestamp")
    if (fixed := "date" if pa.types.is_date(found) else decimal_of(texts)) is not None:
        return Guess(fixed)
    if not writing.is_text:
        return Guess("string", note=_base64(texts) if writing.is_event else "")
    if pa.types.is_int64(found) and not any(re.match(r"\s*[+-]?0[0-9]", text) for text in texts):
        return _whole(name, [int(text) for text in texts], writing)
    is_boolean, is_double = pa.types.is_boolean(found), pa.types.is_float64(found)
    return Guess("boolean" if is_boolean else "double" if is_double else "string")


def decimal_of(texts: Sequence[str]) -> str | None:
    """Return the decimal whose digits behind the point all texts have, with room before it; None for other texts."""
    matches = [_FIXED.fullmatch(text) for text in texts]
    scales = {len(match[1]) if match else 0 for match in matches}
    if len(scales) != 1 or 0 in scales:
        return None
    (scale,) = scales
    digits = max(len(text) for text in texts)
    return f"decimal({_SHORT if digits < _SHORT - 2 else 38},{scale})" if digits < 38 else None


def _base64(texts: Sequence[str]) -> str:
    """What may be told of texts that are numbers in base64, perhaps."""
    if all(map(_BASE64.fullmatch, texts)) and any(text.endswith("=") for text in texts):
        return 'base64, perhaps of numbers: then {type: "decimal(12,2)", as: precise}, with the column\'s own digits'
    return ""
