"""Reads numbers that are written as the base64 of their unscaled value: big-endian, two's complement, of any length.

(Kafka Connect's `org.apache.kafka.connect.data.Decimal`; Debezium's `decimal.handling.mode: precise`, its default.)
"""

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType

_PART = 12
"""Hexadecimal digits that are read at once: 48 bits, which fit a long whatever their sign."""
_PARTS = 3
"""More than the 16 bytes of the longest number of 38 digits."""
_DIGITS, _INVERTED = "0123456789ABCDEF", "FEDCBA9876543210"
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
    negative = F.substring(in_hex, 1, 1) >= "8"
    # -n is one more than the inverted bits say
    size = F.when(negative, F.translate(in_hex, _DIGITS, _INVERTED)).otherwise(in_hex)
    digits = F.lpad(size, _PART * _PARTS, "0")
    parts = [F.substring(digits, 1 + _PART * index, _PART) for index in range(_PARTS)]
    longs = [F.conv(part, 16, 10).cast("decimal(20,0)") for part in parts]
    whole = reduce(lambda high, low: F.try_add(F.try_multiply(high, _power(_PART)), low), longs).cast(
        "decimal(38,0)"
    )
    number = F.when(negative, F.try_subtract(F.lit(-1).cast("decimal(38,0)"), whole)).otherwise(whole)
    return F.when(F.length(size) <= _PART * _PARTS, _scaled(number, scale.cast("int")))


def _power(digits: int) -> Column:
    return F.lit(16**digits).cast("decimal(20,0)")


def _scaled(number: Column, scale: Column) -> Column:
    """The number as text with a point, for no type has room for every decimal of 38 digits and its factor."""
    digits = F.abs(number).cast("string")
    padded = F.lpad(digits, F.greatest(F.length(digits), scale + 1), F.lit("0"))
    sign = F.when(number < 0, F.lit("-")).otherwise(F.lit(""))
    before = F.substr(padded, F.lit(1), F.length(padded) - scale)
    with_point = F.concat(sign, before, F.lit("."), F.right(padded, scale))
    return F.when(scale > 0, with_point).otherwise(
        F.concat(number.cast("string"), F.repeat(F.lit("0"), -scale))
    )
