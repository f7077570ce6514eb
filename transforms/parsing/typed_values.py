"""Reads text and Parquet values by declared types; what does not fit, or would lose digits, becomes null.

A caller that finds a source and no value knows that the source does not fit. Only built-in functions are used, and none
of them raises: under ANSI mode a plain cast would end the batch at the first bad value.
"""

from collections.abc import Mapping

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

from transforms.parsing.nested_json import parse_nested
from transforms.parsing.options import Encoding, ParseOptions, TimeUnit
from transforms.parsing.unscaled_numbers import unscaled

WHOLE = r"^[+-]?[0-9]{1,19}$"
NUMBER = r"^\s*+[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?\s*+$"
"""Possessive, for of a long text each split of its digits would be tried."""
_SCIENTIFIC = r"^\s*[+-]?(?=\.?[0-9])([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]{1,9})\s*$"
"""Its groups: the digits before the point, those behind it, the exponent."""
_LONGEST_NUMBER = 1000
"""Bytes of a text that is read as a number: as many digits as the JSON parser takes. Of a million, Java makes a decimal
in a minute, and finds out in hours that a letter behind them is no digit."""
_NO_NUMBER = r"^\s*([+-]?[iI]nf(inity)?|NaN)\s*$"
_DAY = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?"
_ZONE = r" ?(Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)"
_DAYS = (-719_162, 2_932_896)
_MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The years 1 to 9999: what every reader of the tables can hold."""
_PER_MILLI = 1000
PER_SECOND: Mapping[TimeUnit, int] = {"millis": 10**3, "micros": 10**6, "nanos": 10**9}
_INSTANT = TimestampType()


def parse_text(text: Column, dtype: DataType, options: ParseOptions, exact: Column | None = None) -> Column:
    """Read text by its declared type.

    `exact`: for what is or holds a decimal, the text with all digits of JSON numbers, where `text` may have lost some;
    else null.
    """
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
            return parse_nested(text, dtype, lambda value, kind: parse_text(value, kind, options), exact)


def convert(value: Column, source: DataType, target: DataType, options: ParseOptions) -> Column:
    """Turn a value of a Parquet file into the declared type if that loses nothing."""
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
            return _MICROS
        case "millis":
            return _MICROS[0] // _PER_MILLI, _MICROS[1] // _PER_MILLI
    # the least of all cannot be rounded
    return 1 + _PER_MILLI - 2**63, 2**63 - 1


def from_nanos(number: Column) -> Column:
    """The instant that a count of nanoseconds since 1970 falls into, in microseconds."""
    return _instant(number.cast("string"), "nanos")


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
        case _:
            return text.try_cast(dtype)


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
            return _date(text)
        case TimestampNTZType():
            return _local_timestamp(text, options.time)
        case _:
            return _timestamp(text, options)


def _date(text: Column) -> Column:
    days = text.try_cast("int")
    return F.when(text.rlike(WHOLE), F.when(days.between(*_DAYS), F.date_from_unix_date(days))).when(
        text.rlike(_DAY + "Z?$"), F.substring(text, 1, 10).try_cast("date")
    )


def _timestamp(text: Column, options: ParseOptions) -> Column:
    zoned = F.when(text.rlike(WHOLE), _instant(text, options.time)).when(
        text.rlike(_DAY + _CLOCK + _ZONE + "$"), _in_range(_with_seconds(text).try_cast("timestamp"))
    )
    if options.timezone is None:
        return zoned
    return zoned.when(text.rlike(_DAY + f"({_CLOCK})?$"), _in_zone(text.try_cast("timestamp"), options))


def _local_timestamp(text: Column, unit: TimeUnit) -> Column:
    number = _instant(text, unit).cast("timestamp_ntz")
    return F.when(text.rlike(WHOLE), number).when(
        text.rlike(_DAY + f"({_CLOCK})?$"), text.try_cast("timestamp_ntz")
    )


def _in_zone(utc: Column, options: ParseOptions) -> Column:
    """The instant at which clocks in the source's zone show what they show in UTC at `utc`.

    Of the two instants when clocks are set back the earlier; a skipped time moves on by the skipped hour.
    """
    if options.timezone is None:
        return F.lit(None).cast("timestamp")
    return _in_range(F.to_utc_timestamp(utc, options.timezone))


def _instant(text: Column, unit: TimeUnit) -> Column:
    number = text.try_cast("bigint")
    in_range = number.between(*bounds_of(unit))
    if unit == "micros":
        return F.when(in_range, F.timestamp_micros(number))
    if unit == "millis":
        return F.when(in_range, F.timestamp_millis(number))
    # towards the past, as Spark cuts the digits of text behind microseconds
    micros = F.call_function("div", number - F.pmod(number, F.lit(_PER_MILLI)), F.lit(_PER_MILLI))
    return F.when(in_range, F.timestamp_micros(micros))


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
        low, high = (F.timestamp_micros(F.lit(bound)).cast(dtype) for bound in _MICROS)
    return F.when(value.between(low, high), value)
