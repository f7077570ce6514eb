"""Translates schemas of Avro: into what Spark decodes without interpreting, and into what Kafka Connect says of rows.

Kafka Connect's converter notes in an Avro schema what it was made from (`connect.name`, `connect.parameters`). A schema
without that says it by logical types. The values are left as they are encoded, and read as in JSON that has its schema
beside it (`transforms.parsing.connect_schema`). (Avro specification 1.12; Confluent's `AvroData`.)
"""

import json
from collections.abc import Mapping
from typing import Any

from lakejoin.transforms.parsing.avro_references import name_of

_CONNECT, _TIME = "org.apache.kafka.connect.data", "io.debezium.time"
_TYPES = {"int": "int32", "long": "int64", "record": "struct", "enum": "string", "fixed": "bytes"}
"""What Kafka Connect calls a type where it has another name for it."""
_LOGICAL = {
    "decimal": f"{_CONNECT}.Decimal", "date": f"{_CONNECT}.Date", "timestamp-millis": f"{_CONNECT}.Timestamp",
    "timestamp-micros": f"{_TIME}.MicroTimestamp", "timestamp-nanos": f"{_TIME}.NanoTimestamp",
    "local-timestamp-millis": f"{_TIME}.Timestamp", "local-timestamp-micros": f"{_TIME}.MicroTimestamp",
    "local-timestamp-nanos": f"{_TIME}.NanoTimestamp", "time-millis": f"{_TIME}.Time",
    "time-micros": f"{_TIME}.MicroTime",
}  # fmt: skip
_NAMED = ("record", "enum", "fixed")
_ROWS = ("before", "after")


def uninterpreted(schema: Any) -> Any:
    """A schema by which values are decoded as they are encoded: bytes of a decimal, a count of milliseconds."""
    match schema:
        case dict():
            return {key: uninterpreted(value) for key, value in schema.items() if key != "logicalType"}
        case list():
            return [uninterpreted(part) for part in schema]
    return schema


def row_schema(schema: Any) -> str | None:
    """What Kafka Connect says of a row, or of the rows of an event, as JSON; None for what is no record.

    Only what the parsers look at: it stands beside every value.
    """
    said = _said(schema, {}, "")
    if said.get("type") != "struct":
        return None
    rows = [field for field in said["fields"] if field.get("type") == "struct" and field["field"] in _ROWS]
    return json.dumps({"fields": rows[-1:] or said["fields"]}, separators=(",", ":"))


def is_record(schema: Any) -> bool:
    """Whether a value has members."""
    return isinstance(schema, dict) and schema.get("type") == "record"


def may_be_null(schema: Any) -> bool:
    """Whether null is a value of a type."""
    return "null" in (schema if isinstance(schema, list) else [schema])


def _said(schema: Any, known: dict[str, Mapping[str, Any]], namespace: str) -> dict[str, Any]:
    """A type as Kafka Connect has it. `known`: those that were named before, which a name stands for."""
    if isinstance(schema, list):
        some = [part for part in schema if part != "null"]
        return _said(some[0], known, namespace) if len(some) == 1 else {"type": "union"}
    if isinstance(schema, str):
        named = known.get(schema) or known.get(f"{namespace}.{schema}")
        return dict(named) if named is not None else {"type": _TYPES.get(schema, schema)}
    kind = schema["type"]
    if not isinstance(kind, str) or kind in known:
        return _said(kind, known, namespace)
    said = _own(kind, schema)
    if kind in _NAMED:
        name, namespace = name_of(schema, namespace)
        known[name] = said
    if kind == "record":
        said["fields"] = [
            {"field": field["name"], **_said(field["type"], known, namespace)} for field in schema["fields"]
        ]
    if kind == "array":
        said["items"] = _said(schema["items"], known, namespace)
    return said


def _own(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a type says of itself, without what is in it."""
    said: dict[str, Any] = {"type": _TYPES.get(kind, kind)}
    logical = schema.get("logicalType", "")
    if name := schema.get("connect.name") or _LOGICAL.get(logical):
        said["name"] = name
    scale = (schema.get("connect.parameters") or {}).get("scale", schema.get("scale"))
    if scale is not None or logical == "decimal":
        said["parameters"] = {"scale": str(scale or 0)}
    return said
