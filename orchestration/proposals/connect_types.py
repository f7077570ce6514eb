"""Says which type a column has whose schema Kafka Connect put beside its record.

`transforms.parsing.connect_schema` reads the values by the same names.
"""

from collections.abc import Mapping
from typing import Any

_TYPES = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "float32": "float",
    "double": "double", "float64": "double", "boolean": "boolean", "string": "string", "bytes": "binary",
}  # fmt: skip
_CONNECT, _TIME, _DATA = "org.apache.kafka.connect.data.", "io.debezium.time.", "io.debezium.data."
_NAMED = {
    **dict.fromkeys((f"{_CONNECT}Date", f"{_TIME}Date", f"{_TIME}IsoDate"), "date"),
    **dict.fromkeys(
        (f"{_CONNECT}Timestamp", *(f"{_TIME}{unit}Timestamp" for unit in ("", "Micro", "Nano", "Iso"))),
        "timestamp_ntz",
    ),
    f"{_TIME}ZonedTimestamp": "timestamp",
    f"{_CONNECT}Time": "bigint",
    f"{_TIME}Time": "bigint",
    f"{_DATA}VariableScaleDecimal": "decimal(38,10)",
}
_DIGITS = 38


def event_types(schema: Any) -> dict[str, str]:
    """The types of a row's columns by the schema of its event; none where nothing is said."""
    rows = {field.get("field"): field for field in _fields(schema)}
    return row_types(rows.get("after") or rows.get("before"))


def row_types(schema: Any) -> dict[str, str]:
    """The types of columns by the schema of their row."""
    return {str(field["field"]): type_of(field) for field in _fields(schema) if "field" in field}


def type_of(schema: Mapping[str, Any]) -> str:
    """The type that a schema of Kafka Connect stands for, as one declares it.

    >>> type_of(
    ...     {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    ... )
    'decimal(38,2)'
    """
    name, kind = str(schema.get("name", "")), str(schema.get("type", ""))
    if name == f"{_CONNECT}Decimal":
        said = schema.get("parameters") or {}
        scale = min(max(int(said.get("scale", 0)), 0), _DIGITS)
        precision = min(max(int(said.get("connect.decimal.precision", _DIGITS)), scale, 1), _DIGITS)
        return f"decimal({precision},{scale})"
    if name in _NAMED:
        return _NAMED[name]
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"array<{type_of(schema['items'])}>"
    if kind == "struct":
        members = [f"`{field['field']}`: {type_of(field)}" for field in _fields(schema) if "field" in field]
        return f"struct<{', '.join(members)}>" if members else "string"
    return _TYPES.get(kind, "string")


def _fields(schema: Any) -> list[Mapping[str, Any]]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    return [field for field in fields if isinstance(field, dict)] if isinstance(fields, list) else []
