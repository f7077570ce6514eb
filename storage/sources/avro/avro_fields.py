"""Takes the schema of Avro records apart: which fields there are, and what a reader of some of them has to know.

A type that has a name is written out where it stands first, and called by its name from then on. Whoever leaves a field
out may leave that first place out. (Avro 1.12: "Names".)
"""

from collections.abc import Container, Mapping
from typing import Any

_NAMED = ("record", "error", "enum", "fixed")
_PLAIN = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_HOLDING = {"array": ("items",), "map": ("values",)}
_KEPT = ("size", "symbols", "default", "logicalType", "precision", "scale")
_NANOS = {"timestamp-nanos": True, "local-timestamp-nanos": False}

_Types = dict[str, tuple[Mapping[str, Any], str]]
"""Types that have names, by these; each with the namespace within it."""


def field_names(schema: Mapping[str, Any]) -> list[str]:
    """Names of the fields of a record."""
    return [field["name"] for field in schema["fields"]]


def reader_schema(schema: Mapping[str, Any], wanted: Container[str]) -> dict[str, Any]:
    """The schema of a record with some of its fields only, each of which is read as it was written."""
    types: _Types = {}
    _collect(schema, "", types)
    name, namespace = _named(schema, "")
    done = {name}
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": field["name"], "type": _written_out(field["type"], namespace, types, done)}
            for field in schema["fields"]
            if field["name"] in wanted
        ],
    }


def nanoseconds(kind: Any) -> bool | None:
    """Of a field that counts nanoseconds: whether they are an instant's; None for another, null or not."""
    if isinstance(kind, list):
        kind = next((part for part in kind if part != "null"), None)
    return _NANOS.get(kind.get("logicalType", "")) if isinstance(kind, dict) else None


def _named(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The whole name of a type, and the namespace within it."""
    name = schema["name"]
    if "." not in name:
        around = schema.get("namespace", namespace)
        name = f"{around}.{name}" if around else name
    return name, name.rpartition(".")[0]


def _collect(schema: Any, namespace: str, types: _Types) -> None:
    """Find the types that have names."""
    if isinstance(schema, list):
        for part in schema:
            _collect(part, namespace, types)
    if not isinstance(schema, dict):
        return
    kind = schema["type"]
    if not isinstance(kind, str):
        _collect(kind, namespace, types)
    elif kind in _NAMED:
        name, namespace = _named(schema, namespace)
        types[name] = (schema, namespace)
    for field in schema.get("fields", ()):
        _collect(field["type"], namespace, types)
    for member in ("items", "values"):
        _collect(schema.get(member), namespace, types)


def _written_out(schema: Any, namespace: str, types: _Types, done: set[str]) -> Any:
    """A type with those in it that have names, each written out where it stands first."""
    match schema:
        case list():
            return [_written_out(part, namespace, types, done) for part in schema]
        case str():
            name = f"{namespace}.{schema}" if f"{namespace}.{schema}" in types else schema
            return _of_name(name, types, done) if name in types else schema
    kind = schema["type"]
    if isinstance(kind, str) and kind in _NAMED:
        return _of_name(_named(schema, namespace)[0], types, done)
    if not isinstance(kind, str) or kind not in (*_HOLDING, *_PLAIN):
        return _written_out(kind, namespace, types, done)
    inner = {name: _written_out(schema[name], namespace, types, done) for name in _HOLDING.get(kind, ())}
    return {"type": kind, **_said(schema), **inner}


def _of_name(name: str, types: _Types, done: set[str]) -> Any:
    if name in done:
        return name
    done.add(name)
    schema, namespace = types[name]
    fields = [
        {"name": field["name"], "type": _written_out(field["type"], namespace, types, done)}
        for field in schema.get("fields", ())
    ]
    said = {"type": schema["type"], "name": name, **_said(schema)}
    return {**said, "fields": fields} if schema["type"] in {"record", "error"} else said


def _said(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in _KEPT if key in schema}
