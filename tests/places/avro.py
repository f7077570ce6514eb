"""Writes values in Avro, as producers do that put the number of a schema before them."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any


def optional(name: str, kind: object) -> dict[str, object]:
    """A field that may be null."""
    return {"name": name, "type": ["null", kind], "default": None}


def avro_event(name: str, row: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of an event of Debezium's: the second row refers to the type of the first."""
    before = {"type": "record", "name": name, "fields": list(row)}
    fields = [optional("before", before), optional("after", name), {"name": "op", "type": "string"}]
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "of.shop",
        "fields": [*fields, optional("ts_ms", "long")],
    }


def numbered(number: int, written: bytes) -> bytes:
    """A value behind the number of its schema."""
    return b"\0" + number.to_bytes(4, "big") + written


def encoded(schema: Any, value: Any, known: dict[str, Any] | None = None) -> bytes:
    """A value by a schema. `known`: records that were named before."""
    known = {} if known is None else known
    match schema:
        case [*choices]:
            place = 0 if value is None else 1
            known.update({one["name"]: one for one in choices if isinstance(one, dict) and "name" in one})
            return _long(place) + encoded(choices[place], value, known)
        case {"type": "record"}:
            # a field that its schema has is written, whatever the value has beside
            return b"".join(encoded(field["type"], value[field["name"]], known) for field in schema["fields"])
        case {"type": "array"}:
            items = b"".join(encoded(schema["items"], item, known) for item in value)
            return (_long(len(value)) + items if value else b"") + _long(0)
        case {"type": kind}:
            return encoded(kind, value, known)
    return encoded(known[schema], value, known) if schema in known else _plain(schema, value)


def _plain(kind: str, value: Any) -> bytes:
    match kind:
        case "null":
            return b""
        case "int" | "long":
            return _long(value)
        case "double":
            return struct.pack("<d", value)
        case "string":
            return encoded("bytes", value.encode())
        case _:
            return _long(len(value)) + bytes(value)


def _long(number: int) -> bytes:
    rest, found = (number << 1) ^ (number >> 63), b""
    while rest > 0x7F:
        found, rest = found + bytes([rest & 0x7F | 0x80]), rest >> 7
    return found + bytes([rest])
