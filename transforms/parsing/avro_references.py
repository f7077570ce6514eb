"""Makes a schema of Avro complete in itself: what it refers to in other schemas stands in it, where it comes first.

A registry may keep the types of a schema apart, each as a schema of its own. (Avro specification 1.12, "Names";
Confluent: "Schema references".)
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_NAMED = ("record", "enum", "fixed", "error")
Types = Mapping[str, Mapping[str, Any]]
"""Types by their full names; each has its namespace."""


def completed(schema: Any, others: Iterable[Any]) -> Any:
    """A schema with the types that it names, out of others; what none of them has stays a name."""
    types = {name: found for other in others for name, found in _types(other, "")}
    return _filled(schema, "", types, set())


def name_of(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The full name of a type that stands in a namespace, and the namespace for what is in it."""
    name: str = schema["name"]
    own: str = name.rpartition(".")[0] or schema.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}", own


def _types(schema: Any, namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """All types that a schema says, by their full names."""
    match schema:
        case list():
            for part in schema:
                yield from _types(part, namespace)
        case dict():
            if schema.get("type") in _NAMED:
                name, namespace = name_of(schema, namespace)
                # an empty namespace keeps it from that of the place where it is put
                yield name, {**schema, "namespace": namespace}
            for part in (schema.get("type"), schema.get("items"), schema.get("values")):
                yield from _types(part, namespace)
            for field in schema.get("fields", ()):
                yield from _types(field["type"], namespace)


def _filled(schema: Any, namespace: str, types: Types, there: set[str]) -> Any:
    """`there`: names of types that stand before, or around."""
    match schema:
        case list():
            return [_filled(part, namespace, types, there) for part in schema]
        case str():
            names = [f"{namespace}.{schema}", schema] if "." not in schema else [schema]
            name = next((name for name in names if name in there or name in types), None)
            if name is None or name in there:
                return schema
            return _filled(types[name], "", types, there)
        case dict():
            if schema.get("type") in _NAMED:
                name, namespace = name_of(schema, namespace)
                if name in there:
                    return name
                there.add(name)
            members = {
                member: _filled(schema[member], namespace, types, there)
                for member in ("type", "items", "values")
                if member in schema and schema[member] not in _NAMED
            }
            if "fields" in schema:
                members["fields"] = [
                    {**field, "type": _filled(field["type"], namespace, types, there)}
                    for field in schema["fields"]
                ]
            return {**schema, **members}
    return schema
