"""Reads arrays, maps and structs written as JSON, each value in them as a column of its type would be read."""

from collections.abc import Callable
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructField, StructType

Read = Callable[[Column, DataType], Column]
"""Reads text by its type, null where it does not fit."""
_OPTIONS = {"columnNameOfCorruptRecord": "corrupt", "allowSingleQuotes": "false"}


def is_readable(dtype: DataType) -> bool:
    """Whether JSON can hold values of the type: the members of its objects have text for names."""
    match dtype:
        case ArrayType():
            return is_readable(dtype.elementType)
        case MapType():
            return isinstance(dtype.keyType, StringType) and is_readable(dtype.valueType)
        case StructType():
            return all(is_readable(field.dataType) for field in dtype)
        case _:
            return True


def decimals_of(columns: StructType) -> dict[str, DataType]:
    """The types of the columns that are decimal, or hold one however deep, by name."""
    return {field.name: field.dataType for field in columns if _holds(field.dataType, DecimalType)}


def _holds(dtype: DataType, kind: type[DataType]) -> bool:
    match dtype:
        case _ if isinstance(dtype, kind):
            return True
        case ArrayType():
            return _holds(dtype.elementType, kind)
        case MapType():
            return _holds(dtype.valueType, kind)
        case StructType():
            return any(_holds(field.dataType, kind) for field in dtype)
        case _:
            return False


def parse_nested(text: Column, dtype: DataType, read: Read, exact: Column | None = None) -> Column:
    """Read JSON of an array, map or struct; null if any value in it does not fit, or a map has a name twice.

    `exact`: the same with all digits of its numbers, where `text` may have lost some; else null.
    """
    if not is_readable(dtype):
        return F.lit(None).cast(dtype)
    shape = _with_texts(dtype)
    whole = _whole(text, shape)
    if _holds(dtype, MapType):
        whole = F.filter(whole, lambda parsed: _has_names_once(parsed["value"], dtype))
    if shape == dtype:
        return F.get(whole, F.lit(0))["value"]
    digits = F.lit(None) if exact is None else F.get(_whole(exact, shape), F.lit(0))["value"]
    # elements of lists, for what is not bound to the variable of a lambda is computed again wherever it is used
    sources = F.transform(whole, lambda parsed: _sources(parsed["value"], digits))
    pairs = F.transform(sources, lambda parsed: _pair(parsed["source"], parsed["digits"], dtype, read))
    fitting = F.filter(pairs, lambda pair: _fits(pair["source"], pair["value"], dtype))
    return F.get(fitting, F.lit(0))["value"]


def _whole(text: Column, shape: DataType) -> Column:
    """A list with the parsed text, empty where the text is not of this shape."""
    record = StructType([StructField("value", shape), StructField("corrupt", StringType())])
    parsed = F.from_json(F.concat(F.lit('{"value":'), text, F.lit("}")), record, _OPTIONS)
    return F.filter(F.array(parsed), lambda element: element["corrupt"].isNull())


def _has_names_once(value: Column, dtype: DataType) -> Column:
    """Whether no map in a value has a name twice: Spark keeps both, and each reader has its own one of them."""
    match dtype:
        case ArrayType():
            return _all_once(value, dtype.elementType)
        case MapType():
            names = F.map_keys(value)
            once = F.coalesce(F.size(F.array_distinct(names)) == F.size(names), F.lit(True))
            return once & _all_once(F.map_values(value), dtype.valueType)
        case StructType():
            fields = [_has_names_once(value[field.name], field.dataType) for field in dtype]
            return reduce(and_, fields, F.lit(True))
        case _:
            return F.lit(True)


def _all_once(values: Column, dtype: DataType) -> Column:
    if not _holds(dtype, MapType):
        return F.lit(True)
    return F.coalesce(F.forall(values, lambda value: _has_names_once(value, dtype)), F.lit(True))


def _with_texts(dtype: DataType) -> DataType:
    """The same shape with text in every place that holds a single value."""
    match dtype:
        case ArrayType():
            return ArrayType(_with_texts(dtype.elementType))
        case MapType():
            return MapType(dtype.keyType, _with_texts(dtype.valueType))
        case StructType():
            return StructType([StructField(field.name, _with_texts(field.dataType)) for field in dtype])
        case _:
            return StringType()


def _sources(value: Column, digits: Column) -> Column:
    return F.struct(value.alias("source"), F.coalesce(digits, value).alias("digits"))


def _pair(source: Column, digits: Column, dtype: DataType, read: Read) -> Column:
    return F.struct(source.alias("source"), _typed(source, digits, dtype, read).alias("value"))


def _typed(source: Column, digits: Column, dtype: DataType, read: Read) -> Column:
    """The values by their types; of decimals the digits are read, and of all else the source."""
    match dtype:
        case ArrayType():
            element = dtype.elementType
            return F.zip_with(source, digits, lambda one, same: _typed(one, same, element, read))
        case MapType():
            kind = dtype.valueType
            return F.map_zip_with(source, digits, lambda _, one, same: _typed(one, same, kind, read))
        case StructType():
            fields = [_typed(source[f.name], digits[f.name], f.dataType, read).alias(f.name) for f in dtype]
            return F.when(source.isNotNull(), F.struct(*fields))
        case _:
            return read(digits if isinstance(dtype, DecimalType) else source, dtype)


def _fits(source: Column, value: Column, dtype: DataType) -> Column:
    """Whether each single value that has a source has a value, too."""
    match dtype:
        case ArrayType():
            return _all_fit(source, value, dtype.elementType)
        case MapType():
            return _all_fit(F.map_values(source), F.map_values(value), dtype.valueType)
        case StructType():
            fields = [_fits(source[f.name], value[f.name], f.dataType) for f in dtype]
            return reduce(and_, fields, F.lit(True))
        case _:
            return source.isNull() | value.isNotNull()


def _all_fit(sources: Column, values: Column, dtype: DataType) -> Column:
    each = F.zip_with(sources, values, lambda source, value: _fits(source, value, dtype))
    return F.coalesce(F.forall(each, lambda fits: fits), F.lit(True))
