"""Reads numbers that are written as the base64 of their unscaled value: big-endian, two's complement, of any length.

(Kafka Connect's `org.apache.kafka.connect.data.Decimal`; Debezium's `decimal.handling.mode: precise`, its default.)
"""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType

_HALF = 16
"""Hexadecimal digits of half a number: two halves have room for all numbers of 38 digits."""
BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
"""What base64 is, to the letter."""


def unscaled(text: Column, dtype: DataType) -> Column:
    """The number that a text in base64 stands for; null where it is none, or does not fit.

    The scale is that of the declared decimal; of any other type it is 0.
    """
    scale = dtype.scale if isinstance(dtype, DecimalType) else 0
    return unscaled_digits(text, F.lit(scale)).try_cast(dtype)


def unscaled_digits(text: Column, scale: Column) -> Column:
    """The same as text, with so many digits behind the point; null where it has more than 38."""
    in_hex = F.hex(F.when(text.rlike(BASE64) & (text != ""), F.try_to_binary(text, F.lit("base64"))))
    # bound to the variable of a lambda, for it would be computed wherever it is used
    numbers = F.transform(
        F.array(in_hex), lambda digits: F.when(F.length(digits) <= 2 * _HALF, _signed(digits))
    )
    return F.get(F.transform(numbers, lambda number: _scaled(number, scale.cast("int"))), F.lit(0))


def _signed(in_hex: Column) -> Column:
    """A number in two's complement."""
    negative = in_hex >= "8"
    digits = F.lpad(in_hex, F.lit(2 * _HALF), F.when(negative, F.lit("F")).otherwise(F.lit("0")))
    # to the base of -10 is to read the first half with its sign
    high = F.conv(F.substring(digits, 1, _HALF), 16, -10).cast("decimal(20,0)")
    low = F.conv(F.substring(digits, _HALF + 1, _HALF), 16, 10).cast("decimal(20,0)")
    # of a negative number the high half is rounded towards zero, lest it have more digits than the number
    half, carry = F.lit(str(2 ** (4 * _HALF))).cast("decimal(20,0)"), F.when(negative, 1).otherwise(0)
    return F.try_add(F.try_multiply(high + carry, half), low - half * carry).cast("decimal(38,0)")


def _scaled(number: Column, scale: Column) -> Column:
    """The number as text with a point, for no type has room for every decimal of 38 digits and its factor."""
    digits = F.abs(number).cast("string")
    padded = F.lpad(digits, F.greatest(F.length(digits), scale + 1), F.lit("0"))
    sign = F.when(number < 0, F.lit("-")).otherwise(F.lit(""))
    place = F.concat(F.lit("([0-9]{"), scale.cast("string"), F.lit("})$"))
    with_point = F.concat(sign, F.regexp_replace(padded, place, F.lit(".$1")))
    return F.when(scale > 0, with_point).otherwise(
        F.concat(number.cast("string"), F.repeat(F.lit("0"), -scale))
    )
