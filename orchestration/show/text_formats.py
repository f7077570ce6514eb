r"""Formats rows by Spark as csv (RFC 4180) and JSON lines, which are streamed and never collected.

csv: null is `\N`, an empty string `""`, lines end in CR LF. jsonl: null is null. In both, decimals keep their declared
scale (in jsonl they are text, for a JSON number loses it), timestamps read `2013-01-01T10:15:00.000000Z`, a key of one
column stands bare and a composite one as a JSON array, a hash of ours is 32 hexadecimal digits, a position of ours
`file:line`.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.transforms.model.schemas import HASH_TYPE, POSITION_TYPE, is_internal, named

Format = Literal["csv", "jsonl"]

NULL = r"\N"
"""What stands for null in csv; the same two characters as text are quoted."""

_MICROS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
NEEDS_QUOTES = r'^$|^\\N$|[",\r\n]'
"""What of a csv field makes quotes necessary."""
_AS_TEXT = (DecimalType, DateType, TimestampType, TimestampNTZType, BinaryType)
"""Types that JSON has no equal of."""


def lines(rows: DataFrame, form: Format, keys: Collection[str] = ()) -> Iterator[str]:
    """Yield the text of `rows`, line by line with its line end; csv begins with the header.

    `keys`: columns that hold a key as a struct. One partition of rows at a time is held in memory.
    """
    if form == "csv":
        yield header(rows.columns)
        line, end = F.concat_ws(",", *[_csv_field(field_text(field, keys)) for field in rows.schema]), "\r\n"
    else:
        members = [(field.name, _field_json(field, keys)) for field in rows.schema]
        line, end = _object(members), "\n"
    for row in rows.select(line.alias("line")).toLocalIterator(prefetchPartitions=True):
        yield row["line"] + end


def header(names: Iterable[str]) -> str:
    """Return the first line of a csv file."""
    doubled = ((name, name.replace('"', '""')) for name in names)
    return ",".join(f'"{text}"' if re.search(r'[",\r\n]', name) else name for name, text in doubled) + "\r\n"


def texts(rows: DataFrame, keys: Collection[str] = ()) -> DataFrame:
    """Return every column as the text that csv holds, before it is quoted; null stays null."""
    return rows.select(*[field_text(field, keys).alias(field.name) for field in rows.schema])


def _csv_field(text: Column) -> Column:
    quoted = F.concat(F.lit('"'), F.replace(text, F.lit('"'), F.lit('""')), F.lit('"'))
    return F.when(text.isNull(), F.lit(NULL)).when(text.rlike(NEEDS_QUOTES), quoted).otherwise(text)


def field_text(field: StructField, keys: Collection[str]) -> Column:
    """Return a column as the text that csv holds, before it is quoted. `keys`: columns that hold a key as a struct."""
    if _is_composite(field, keys):
        return _composite(field)
    return _text(*_unpacked(field, keys), own=is_own(field.name, keys))


def _field_json(field: StructField, keys: Collection[str]) -> Column:
    if _is_composite(field, keys):
        return F.coalesce(_composite(field), F.lit("null"))
    return _json(*_unpacked(field, keys), own=is_own(field.name, keys))


def _is_composite(field: StructField, keys: Collection[str]) -> bool:
    return field.name in keys and isinstance(field.dataType, StructType) and len(field.dataType) > 1


def _composite(field: StructField) -> Column:
    """A key of several columns as a JSON array; null stays null."""
    assert isinstance(field.dataType, StructType)
    value = named(field.name)
    parts = [_json(value[part.name], part.dataType) for part in field.dataType]
    return F.when(value.isNotNull(), F.concat(F.lit("["), F.concat_ws(",", *parts), F.lit("]")))


def _unpacked(field: StructField, keys: Collection[str]) -> tuple[Column, DataType]:
    """A column with its type; of a key that is a struct of one column, this one."""
    value, dtype = named(field.name), field.dataType
    if field.name in keys and isinstance(dtype, StructType):
        return value[dtype[0].name], dtype[0].dataType
    return value, dtype


def _text(value: Column, dtype: DataType, *, own: bool = False) -> Column:
    match dtype:
        case TimestampType() | TimestampNTZType():
            zone = "'Z'" if isinstance(dtype, TimestampType) else ""
            text = F.date_format(value, _MICROS + zone)
        case BinaryType():
            text = F.base64(value)
        case StructType() if own and is_hash(dtype):
            text = F.lower(F.concat(*[F.lpad(F.hex(value[half]), 16, "0") for half in ("high", "low")]))
        case StructType() if own and is_position(dtype):
            text = F.concat(value["file"], F.lit(":"), value["line"].cast("string"))
        case ArrayType() | MapType() | StructType():
            text = F.when(value.isNotNull(), _json(value, dtype, own=own))
        case _:
            text = value.cast("string")
    return text


def is_own(name: str, keys: Collection[str]) -> bool:
    """Whether a column is of ours: a declared one may be a struct like a hash or a position, and is shown whole.

    `keys`: columns that hold a key as a struct; only logs and stores have them, none of whose columns is declared.
    """
    return is_internal(name) or bool(keys)


def is_hash(dtype: DataType) -> bool:
    """Whether values of a type are hashes."""
    return _is(dtype, HASH_TYPE)


def is_position(dtype: DataType) -> bool:
    """Whether values of a type are positions of source records."""
    return _is(dtype, POSITION_TYPE)


def _is(dtype: DataType, known: StructType) -> bool:
    """Whether two types are the same but for what may be null in them."""
    return dtype.simpleString() == known.simpleString()


def _json(value: Column, dtype: DataType, *, own: bool = False) -> Column:
    """The value as JSON text, `null` for null."""
    match dtype:
        case ArrayType(elementType=element):
            json = _list(F.transform(value, lambda item: _json(item, element)))
        case MapType():
            entries = F.transform(F.map_entries(value), _member(dtype))
            json = F.concat(F.lit("{"), F.array_join(entries, ","), F.lit("}"))
        case StructType() if not (own and (is_hash(dtype) or is_position(dtype))):
            members = [(field.name, _json(value[field.name], field.dataType, own=own)) for field in dtype]
            json = F.when(value.isNotNull(), _object(members))
        case _ if isinstance(dtype, (*_AS_TEXT, StructType)):
            json = _scalar(_text(value, dtype, own=own))
        case _:
            json = _scalar(value)
    return F.coalesce(json, F.lit("null"))


def _scalar(value: Column) -> Column:
    """A number, boolean or text as Spark writes it in JSON: `to_json` takes only what can stand alone."""
    alone = F.to_json(F.array(value))
    return F.when(value.isNotNull(), F.substr(alone, F.lit(2), F.length(alone) - 2))


def _list(items: Column) -> Column:
    return F.concat(F.lit("["), F.array_join(items, ","), F.lit("]"))


def _member(dtype: MapType) -> Callable[[Column], Column]:
    def member(entry: Column) -> Column:
        key = _scalar(_text(entry["key"], dtype.keyType))
        return F.concat(key, F.lit(":"), _json(entry["value"], dtype.valueType))

    return member


def _object(members: list[tuple[str, Column]]) -> Column:
    pairs = [F.concat(_scalar(F.lit(name)), F.lit(":"), json) for name, json in members]
    return F.concat(F.lit("{"), F.concat_ws(",", *pairs), F.lit("}"))
