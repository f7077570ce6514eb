"""Models a declared column in the file: its type alone, or with how the source calls it and writes its values."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.values import ColumnType
from lakejoin.transforms.parsing.options import Encoding

_ENCODINGS: tuple[tuple[type[DataType] | tuple[type[DataType], ...], tuple[Encoding, ...]], ...] = (
    (NumericType, ("string", "precise")),
    (DateType, ("days", "micros", "millis", "nanos")),
    ((TimestampType, TimestampNTZType), ("micros", "millis", "nanos")),
    (BinaryType, ("base64", "base64-url-safe", "hex")),
)
"""In how many ways a source may write values of a type."""


class Column(Frozen):
    """A declared column."""

    type: ColumnType
    """Its Spark SQL type."""
    encoding: Encoding | None = Field(default=None, alias="as")
    """How the source writes its values, where one text has two meanings. Numbers in quotes: `string` for digits,
    `precise` for the base64 of the unscaled number, as Debezium's `decimal.handling.mode` has it. Whole numbers in a
    timestamp: `micros`, `millis` or `nanos`, in the place of the source's `time`; in a date also `days` (the default).
    Binary: `base64` (the default), `base64-url-safe` or `hex`."""
    source_name: Annotated[str, Field(min_length=1)] | None = Field(default=None, alias="from")
    """What the source calls it, if not by its own name; capitals count."""

    @property
    def plain(self) -> "Column":
        """The same by its own name, its values written as anybody would."""
        return Column(type=self.type)

    @property
    def data_type(self) -> DataType:
        """The type as Spark has it."""
        return parse_type(self.type)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """A type, or a mapping."""
        mapping = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [mapping["properties"]["type"], mapping]}


def encodings_of(dtype: DataType) -> tuple[Encoding, ...]:
    """In which ways the values of a type may be written; none where there is but one."""
    match dtype:
        case ArrayType():
            return encodings_of(dtype.elementType)
        case MapType():
            return encodings_of(dtype.valueType)
        case StructType():
            return tuple(dict.fromkeys(way for field in dtype for way in encodings_of(field.dataType)))
    return next((ways for kinds, ways in _ENCODINGS if isinstance(dtype, kinds)), ())


def _mapping(value: Any) -> Any:
    """A type that stands alone as the mapping that it is short for."""
    return value if isinstance(value, dict | Column) else {"type": value}


DeclaredColumn = Annotated[Column, BeforeValidator(_mapping)]
"""A column as the file has it."""
