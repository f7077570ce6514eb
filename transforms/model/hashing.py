"""Computes the value hash that a subscription carries to the right side and a response brings back (KIP-213).

Two salted `xxhash64` make 128 bits. Each column adds its tag (name and type family) and its value, in the order of
names. A null column adds nothing, for `xxhash64` passes over nulls. So an absent and a null column hash alike, and a
new nullable column leaves every hash as it was (KAFKA-15303). The tags keep ('a', null) and (null, 'a') apart.
"""

from collections.abc import Callable
from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.transforms.model.schemas import EXACT_TIMES, HASH_TYPE, named

HASH_SPECIFICATION = 1
"""Number of these rules; it is part of every hash, so that hashes of two specifications never compare equal."""

_SALTS = ("lakejoin/1/high", "lakejoin/1/low")
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_CONVERSIONS: dict[type[DataType], Callable[[Column], Column]] = {
    **{integer: lambda value: value.cast("bigint") for integer in _INTEGERS},
    FloatType: lambda value: value.cast("double"),
    TimestampType: F.unix_micros,
    DateType: lambda value: F.unix_date(value).cast("bigint"),
    BooleanType: lambda value: value.cast("int").cast("bigint"),
}


@lru_cache(maxsize=256)
def value_hash(columns: StructType) -> Column:
    """Hash of a row's declared columns, as `HASH_TYPE`; the caller nulls it for deleted rows."""
    parts: list[Column] = []
    for number, field in enumerate(sorted(columns, key=lambda field: field.name)):
        value = named(field.name)
        tag = F.when(value.isNotNull(), _tag(value, field))
        parts += [tag.alias(f"tag{number}"), _canonical(value, field.dataType).alias(f"value{number}")]
    # `xxhash64` reads a struct as it would its fields one after the other, but Spark makes a method of its own for it:
    # otherwise the whole step becomes one that is too long for the JVM to compile well, and takes three times as long
    row = F.struct(*parts)
    high, low = (F.xxhash64(F.lit(salt), row) for salt in _SALTS)
    return F.struct(
        F.lit(HASH_SPECIFICATION).cast("smallint").alias("spec"), high.alias("high"), low.alias("low")
    ).cast(HASH_TYPE)


def _tag(value: Column, field: StructField) -> Column:
    """Name and type family; `xxhash64` takes -0.0 for 0.0, which a cast to text tells apart, so its tag does."""
    tag = f"{field.name}:{family(field.dataType)}"
    if not isinstance(field.dataType, FloatType | DoubleType):
        return F.lit(tag)
    return F.when((value == 0) & (value.cast("string") == "-0.0"), F.lit(tag + ":negative")).otherwise(
        F.lit(tag)
    )


def family(dtype: DataType) -> str:
    """The part of a type that a widening keeps: int and bigint are one family, decimal scales are not."""
    if isinstance(dtype, _INTEGERS):
        return "integer"
    if isinstance(dtype, DecimalType):
        return f"decimal({dtype.scale})"
    if isinstance(dtype, FloatType | DoubleType):
        return "double"
    if isinstance(dtype, ArrayType | MapType | StructType):
        return "json"
    return dtype.typeName()


def _canonical(value: Column, dtype: DataType) -> Column:
    """The value in the one form of its family that `xxhash64` reads the same on every width."""
    if isinstance(dtype, ArrayType | MapType | StructType):
        nested = F.struct(_sorted(value, dtype).alias("value"))
        return F.when(value.isNotNull(), F.to_json(nested, {"ignoreNullFields": "false", **EXACT_TIMES}))
    if isinstance(dtype, DecimalType):
        return value.cast(DecimalType(38, dtype.scale))
    if isinstance(dtype, TimestampNTZType):
        return F.unix_micros(F.to_timestamp_ltz(value.cast("string")))
    convert = _CONVERSIONS.get(type(dtype))
    return convert(value) if convert is not None else value


def _sorted(value: Column, dtype: DataType) -> Column:
    """A nested value with struct fields by name and map entries by key: their order carries no meaning."""
    if isinstance(dtype, StructType):
        fields = sorted(dtype, key=lambda field: field.name)
        parts = [_sorted(value.getField(f.name), f.dataType).alias(f.name) for f in fields]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(dtype, ArrayType):
        element = dtype.elementType
        return F.transform(value, lambda item: _sorted(item, element))
    if isinstance(dtype, MapType):
        inner = dtype.valueType
        return sorted_entries(value, lambda of_entry: _sorted(of_entry, inner))
    if isinstance(dtype, StringType):
        # `to_json` writes every byte that is no UTF-8 as the same sign
        return F.when(F.is_valid_utf8(value), value).otherwise(F.concat(F.lit("\ufffd"), F.hex(value)))
    return value


def sorted_entries(value: Column, inner: Callable[[Column], Column]) -> Column:
    """Entries of a map in the order of their keys, as structs of key and value. `inner`: what each value becomes."""
    entries = F.transform(
        F.map_entries(value),
        lambda entry: F.struct(entry["key"].alias("key"), inner(entry["value"]).alias("value")),
    )
    return F.array_sort(entries, _by_key)


def _by_key(left: Column, right: Column) -> Column:
    return F.when(left["key"] < right["key"], -1).when(left["key"] > right["key"], 1).otherwise(0)
