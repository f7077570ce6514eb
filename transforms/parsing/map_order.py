"""Puts the entries of maps in the order of their keys, so that equal maps are equal to every expression."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakejoin.transforms.model.expressions import or_null
from lakejoin.transforms.model.hashing import sorted_entries


def with_sorted_maps(value: Column, dtype: DataType) -> Column:
    """The value with every map in it in the order of its keys; null where a map has a key twice."""
    return or_null(_sorted(value, dtype)) if _holds_map(dtype) else value


def _holds_map(dtype: DataType) -> bool:
    match dtype:
        case MapType():
            return True
        case ArrayType():
            return _holds_map(dtype.elementType)
        case StructType():
            return any(_holds_map(field.dataType) for field in dtype)
        case _:
            return False


def _sorted(value: Column, dtype: DataType) -> Column:
    if not _holds_map(dtype):
        return value
    if isinstance(dtype, StructType):
        fields = [_sorted(value.getField(f.name), f.dataType).alias(f.name) for f in dtype]
        return F.when(value.isNotNull(), F.struct(*fields))
    if isinstance(dtype, ArrayType):
        element = dtype.elementType
        return F.transform(value, lambda item: _sorted(item, element))
    assert isinstance(dtype, MapType)
    of_value = dtype.valueType
    return F.map_from_entries(sorted_entries(value, lambda of_entry: _sorted(of_entry, of_value)))
