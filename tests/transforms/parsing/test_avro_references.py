"""Schemas of Avro that refer to others: what stands in them then."""

from typing import Any

from lakejoin.transforms.parsing.avro_references import completed
from lakejoin.transforms.parsing.avro_schema import row_schema

VALUE = {
    "type": "record", "name": "Value", "namespace": "shop.items", "fields": [
        {"name": "price", "type": ["null", "io.Scaled"]},
        {"name": "sizes", "type": {"type": "array", "items": ["null", "io.Scaled"]}},
    ],
}  # fmt: skip
SCALED = {
    "type": "record", "name": "io.Scaled", "fields": [{"name": "unit", "type": ["null", "Unit"]}],
    "connect.name": "io.Scaled",
}  # fmt: skip
UNIT = {"type": "enum", "name": "Unit", "namespace": "io", "symbols": ["one"]}


def envelope(*kinds: Any) -> dict[str, Any]:
    """A record in a namespace, with a field of each type."""
    fields = [{"name": f"field{place}", "type": kind} for place, kind in enumerate(kinds)]
    return {"type": "record", "name": "Envelope", "namespace": "shop.items", "fields": fields}


def types(schema: dict[str, Any]) -> list[Any]:
    """The types of the fields of a record."""
    return [field["type"] for field in schema["fields"]]


def test_type_stands_where_it_is_named_first() -> None:
    """Whatever it names stands in it; later, and in other types, its name is enough."""
    before, after, sizes = types(
        completed(
            envelope(["null", "Value"], ["null", "Value"], {"type": "map", "values": "io.Scaled"}),
            [UNIT, SCALED, VALUE],
        )
    )

    price, listed = types(before[1])
    assert types(price[1]) == [["null", UNIT]]
    assert price[1]["connect.name"] == "io.Scaled"
    assert listed == {"type": "array", "items": ["null", "io.Scaled"]}
    assert (after, sizes) == (["null", "Value"], {"type": "map", "values": "io.Scaled"})


def test_type_that_several_schemas_bring_stands_once() -> None:
    """One that stands in another that is named as well, and one that refers to itself."""
    node = {
        "type": "record",
        "name": "Node",
        "namespace": "shop.items",
        "fields": [{"name": "next", "type": "Node"}],
    }
    holder = {
        "type": "record",
        "name": "Holder",
        "namespace": "a",
        "fields": [{"name": "unit", "type": UNIT}],
    }

    unit, held, first, second = types(
        completed(envelope("io.Unit", "a.Holder", "Node", "Node"), [holder, node])
    )

    assert (unit, types(held)) == (UNIT, ["io.Unit"])
    assert (types(first), second) == (["Node"], "Node")


def test_name_is_looked_for_where_it_stands() -> None:
    """In its own namespace before that of no name; what is put elsewhere keeps its own; what nobody has stays."""
    plain = {"type": "fixed", "name": "Plain", "size": 2}
    own = {"type": "record", "name": "Own", "fields": [{"name": "is", "type": "Plain"}]}
    near = {**plain, "namespace": "shop.items", "size": 3}

    assert types(completed(envelope("Plain"), [plain, near])) == [near]
    (found,) = types(completed(envelope("Own"), [own, plain, near]))
    assert (found["namespace"], types(found)) == ("", [{**plain, "namespace": ""}])
    assert types(completed(envelope("string", "Unknown"), [plain])) == ["string", "Unknown"]


def test_completed_schema_says_what_its_rows_are() -> None:
    """As one does that never referred to others."""
    event = completed(envelope(["null", "Value"]), [VALUE, SCALED, UNIT])
    event["fields"][0]["name"] = "before"

    assert row_schema(event) == (
        '{"fields":[{"field":"before","type":"struct","fields":[{"field":"price","type":"struct","name":"io.Scaled",'
        '"fields":[{"field":"unit","type":"string"}]},{"field":"sizes","type":"array","items":{"type":"struct",'
        '"name":"io.Scaled","fields":[{"field":"unit","type":"string"}]}}]}]}'
    )
