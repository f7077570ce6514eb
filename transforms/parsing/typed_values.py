"""Reads text and typed values by declared types; what does not fit, or would lose digits, becomes null.

A caller that finds a source and no value knows that the source does not fit. Only built-in functions are used, and none
of them raises: under ANSI mode a plain cast would end the batch at the first bad value.
"""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.transforms.parsing.csv_dialect import RFC_4180, in_plain_form
from lakejoin.transforms.parsing.nested_json import parse_nested
from lakejoin.transforms.parsing.options import Encoding, ParseOptions, TimeUnit
from lakejoin.transforms.parsing.unscaled_numbers import unscaled

WHOLE = r"^[+-]?[0-9]{1,19}$"
NUMBER = r"^\s*+[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?\s*+$"
"""Possessive, for of a long text each split of its digits would be tried."""
_SCIENTIFIC = r"^\s*[+-]?(?=\.?[0-9])([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]{1,9})\s*$"
"""Its groups: the digits before the point, those behind it, the exponent."""
_EXACT_IN_DOUBLE = 2**53
_LONGEST_NUMBER = 1000
"""Bytes of a text that is read as a number: as many digits as the JSON parser takes. Of a million, Java makes a decimal
in a minute, and finds out in hours that a letter behind them is no digit."""
_NO_NUMBER = r"^\s*([+-]?[iI]nf(inity)?|NaN)\s*$"
_DAY = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONE = r" ?(Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)"
_INFINITY = (
    "infinity", "Infinity", "9223372036825200000", "9223372036825200", str(2**63 - 1), "+294247-01-10T04:00:25.2Z",
)  # fmt: skip
_MINUS_INFINITY = (
    "-infinity", "-Infinity", "-9223372036832400000", "-9223372036832400", str(-(2**63)), "-290308-12-21T19:59:27.6Z",
)  # fmt: skip
"""PostgreSQL's `infinity` as text, in micro- and milliseconds (its driver's `DATE_POSITIVE_INFINITY`), and as the
largest number, which later releases of Debezium send."""
_LAST_DAYS = (
    "2147483647", "106751991167", "-622191234", "-2147472692", "+292278994-08-16Z", "-5877611-06-21Z",
)  # fmt: skip
_FIRST_DAYS = (
    "-2147483648", "-106751991251", "-625821272", "-2147472691", "+292269055-12-02Z", "-5877611-06-22Z",
)  # fmt: skip
"""The same in days: as they are, as a snapshot and the log of Debezium 3.6.1 have them (a number that overflowed), and
as the days that `time.precision.mode: isostring` makes of those."""
_DAYS = (-719_162, 2_932_896)
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The years 1 to 9999: what every reader of the tables can hold."""
_PER_MILLI = 1000
PER_SECOND: Mapping[TimeUnit, int] = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_INSTANT = TimestampType()


def parse_text(text: Column, dtype: DataType, options: ParseOptions, exact: Column | None = None) -> Column:
    """Read text by its declared type.

    `exact`: for what is or holds a decimal, the text with all digits of JSON numbers, where `text` may have lost some;
    else null.
    """
    if options.encoding is None:
        text = in_plain_form(text, dtype, options.dialect)
    match dtype:
        case StringType():
            return text
        case NumericType() if options.encoding == "precise":
            return unscaled(text, dtype)
        case NumericType() | BooleanType():
            return _number(text if exact is None else F.coalesce(exact, text), dtype)
        case DateType() | TimestampType() | TimestampNTZType():
            return _time(text, dtype, options)
        case BinaryType():
            return _binary(text, options.encoding)
        case _:
            of_json = replace(options, dialect=RFC_4180)
            return parse_nested(text, dtype, lambda value, kind: parse_text(value, kind, of_json), exact)


def without_infinity(text: Column, dtype: DataType, options: ParseOptions) -> Column:
    """The text of a time or date, for which PostgreSQL has one that is later, and one that is earlier, than all."""
    starts, ends = [*_MINUS_INFINITY], [*_INFINITY]
    match dtype:
        case DateType():
            first, last = "0001-01-01", "9999-12-31"
            starts, ends = [*starts, *_FIRST_DAYS], [*ends, *_LAST_DAYS]
        case TimestampType() | TimestampNTZType():
            zone = "Z" if isinstance(dtype, TimestampType) else ""
            first, last = f"0001-01-01T00:00:00{zone}", f"9999-12-31T23:59:59.999999{zone}"
        case _:
            return text
    if options.infinity == "quarantine":
        return text
    start, end = (F.lit(bound if options.infinity == "max" else None) for bound in (first, last))
    return F.when(text.isin(ends), end).when(text.isin(starts), start).otherwise(text)


def convert(value: Column, source: DataType, target: DataType, options: ParseOptions) -> Column:
    """Turn a value of a file with types into the declared type if that loses nothing."""
    match source, target:
        case (TimestampType() | TimestampNTZType() | DateType(), _) if source == target:
            return _in_range(value, source)
        case _ if source == target:
            return value
        case (StringType(), _):
            return parse_text(value, target, options)
        case (IntegralType(), DateType() | TimestampType() | TimestampNTZType()):
            return parse_text(value.cast("string"), target, options)
        case (TimestampNTZType(), TimestampType()):
            return _in_zone(value.cast(target), options)
        case _:
            return _cast(value, source, target)


def bounds_of(unit: TimeUnit) -> tuple[int, int]:
    """The least and the greatest count of a unit since 1970 that is read as a time."""
    match unit:
        case "micros":
            return MICROS
        case "millis":
            return MICROS[0] // _PER_MILLI, MICROS[1] // _PER_MILLI
    # the least of all cannot be rounded
    return 1 + _PER_MILLI - 2**63, 2**63 - 1


def instant(text: Column, unit: TimeUnit) -> Column:
    """The instant of a count since 1970 in text; of nanoseconds the microsecond it falls into."""
    number = text.try_cast("bigint")
    in_range = number.between(*bounds_of(unit))
    if unit == "micros":
        return F.when(in_range, F.timestamp_micros(number))
    if unit == "millis":
        return F.when(in_range, F.timestamp_millis(number))
    # towards the past, as Spark cuts the digits of text behind microseconds
    micros = F.call_function("div", number - F.pmod(number, F.lit(_PER_MILLI)), F.lit(_PER_MILLI))
    return F.when(in_range, F.timestamp_micros(micros))


def from_nanos(number: Column) -> Column:
    """The instant that a count of nanoseconds since 1970 falls into, in microseconds."""
    return instant(number.cast("string"), "nanos")


def _cast(value: Column, source: DataType, target: DataType) -> Column:
    """Cast between types of the same kind and back, to text, or to what differs only in what may be null."""
    match source, target:
        case (NumericType(), NumericType()) | (TimestampNTZType(), DateType()):
            turned = value.try_cast(target)
            same = F.when(turned.try_cast(source) == value, turned)
            return _in_range(same, target) if isinstance(target, DateType) else same
        case (NumericType() | BooleanType() | DateType() | BinaryType(), StringType()):
            text = value.cast(target)
            return F.when(F.is_valid_utf8(text), text)
        case (ArrayType() | MapType() | StructType(), _) if source.simpleString() == target.simpleString():
            return value.cast(target)  # whether elements may be null, and comments, are part of a type, too
        case _:
            return F.lit(None).cast(target)


def _number(text: Column, dtype: DataType) -> Column:
    text = F.when(F.octet_length(text) <= _LONGEST_NUMBER, text)
    match dtype:
        case DecimalType():
            return _decimal(text, dtype)
        case FloatType() | DoubleType():
            return _float(text, dtype)
        case IntegralType():
            return F.when(text.contains("."), _whole(text).try_cast(dtype)).otherwise(text.try_cast(dtype))
        case _:
            return text.try_cast(dtype)


def _whole(text: Column) -> Column:
    """A whole number that is written with a point (Oracle's `1.0`); beyond these bounds digits may have been lost."""
    number = _decimal(text, DecimalType(38, 0))
    return F.when(F.abs(number) <= _EXACT_IN_DOUBLE, number)


def _decimal(text: Column, dtype: DecimalType) -> Column:
    """A cast would round: so the digits behind the point are counted before."""
    value = text.try_cast(dtype)
    plain = rf"^\s*[+-]?(?=\.?[0-9])[0-9]*(\.[0-9]{{0,{dtype.scale}}}0*)?\s*$"
    return F.when(text.rlike(plain), value).when(
        text.rlike(_SCIENTIFIC), F.when(_decimals(text) <= dtype.scale, value)
    )


def _decimals(scientific: Column) -> Column:
    """How many digits behind the point a number with an exponent has."""
    whole, fraction, exponent = (F.regexp_extract(scientific, _SCIENTIFIC, group) for group in (1, 2, 3))
    digits = F.length(F.rtrim(F.concat(whole, fraction), F.lit("0")))
    return F.when(digits == 0, 0).otherwise(digits - F.length(whole) - exponent.try_cast("int"))


def _float(text: Column, dtype: DataType) -> Column:
    value = text.try_cast(dtype)
    finite = F.abs(value) < F.lit(float("inf"))
    return F.when(text.rlike(NUMBER) & finite, value).when(text.rlike(_NO_NUMBER), value)


def _binary(text: Column, encoding: Encoding | None) -> Column:
    match encoding:
        case "hex":
            return F.when(text.rlike("^([0-9a-fA-F]{2})*$"), F.unhex(text))
        case "base64-url-safe":
            in_base64 = F.translate(
                text, "-_", "+/"
            )  # with the two signs of its own, and perhaps without the `=`
            padded = F.concat(in_base64, F.repeat(F.lit("="), F.pmod(-F.length(text), F.lit(4))))
            return F.when(text.rlike("^[0-9A-Za-z_-]*={0,2}$"), F.try_to_binary(padded, F.lit("base64")))
        case _:
            return F.try_to_binary(text, F.lit("base64"))


def _time(text: Column, dtype: DataType, options: ParseOptions) -> Column:
    match dtype:
        case DateType():
            return _date(text, options.encoding)
        case TimestampNTZType():
            return _local_timestamp(text, options)
        case _:
            return _timestamp(text, options)


def _date(text: Column, encoding: Encoding | None) -> Column:
    match encoding:
        case "micros" | "millis" | "nanos" as unit:
            midnight = instant(text, unit)
            counted = F.when(midnight == F.date_trunc("day", midnight), midnight.cast("date"))
        case _:
            days = text.try_cast("int")
            counted = F.when(days.between(*_DAYS), F.date_from_unix_date(days))
    return F.when(text.rlike(WHOLE), counted).when(
        text.rlike(_DAY + "Z?$"), F.substring(text, 1, 10).try_cast("date")
    )


def _timestamp(text: Column, options: ParseOptions) -> Column:
    zoned = F.when(text.rlike(WHOLE), instant(text, options.time)).when(
        text.rlike(_DAY + _CLOCK + _ZONE + "$"), _in_range(_with_seconds(text).try_cast("timestamp"))
    )
    if options.timezone is None:
        return zoned
    return zoned.when(text.rlike(_DAY + f"({_CLOCK})?$"), _in_zone(text.try_cast("timestamp"), options))


def _local_timestamp(text: Column, options: ParseOptions) -> Column:
    number = instant(text, options.time).cast("timestamp_ntz")
    zone = "Z?" if options.of_debezium else ""
    return F.when(text.rlike(WHOLE), number).when(
        text.rlike(_DAY + f"({_CLOCK}{zone})?$"), F.rtrim(text, F.lit("Z")).try_cast("timestamp_ntz")
    )


def _in_zone(utc: Column, options: ParseOptions) -> Column:
    """The instant at which clocks in the source's zone show what they show in UTC at `utc`.

    Of the two instants when clocks are set back the earlier; a skipped time moves on by the skipped hour.
    """
    if options.timezone is None:
        return F.lit(None).cast("timestamp")
    return _in_range(F.to_utc_timestamp(utc, options.timezone))


def _with_seconds(text: Column) -> Column:
    """Java leaves out seconds that are zero; Spark takes no zone behind minutes."""
    has_seconds = F.substring(text, 17, 1) == ":"
    padded = F.concat(F.substring(text, 1, 16), F.lit(":00"), F.substr(text, F.lit(17)))
    return F.when(has_seconds, text).otherwise(padded)


def _in_range(value: Column, dtype: DataType = _INSTANT) -> Column:
    """A date or time of the years 1 to 9999, else null."""
    if isinstance(dtype, DateType):
        low, high = (F.date_from_unix_date(F.lit(bound)) for bound in _DAYS)
    else:
        low, high = (F.timestamp_micros(F.lit(bound)).cast(dtype) for bound in MICROS)
    return F.when(value.between(low, high), value)
