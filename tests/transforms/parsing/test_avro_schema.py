"""Schemas of Avro: what Spark decodes by, and what is said of the rows."""

import json

from lakejoin.transforms.parsing.avro_schema import is_record, row_schema, uninterpreted

DECIMAL = {
    "type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 12, "connect.parameters": {"scale": "2"},
    "connect.name": "org.apache.kafka.connect.data.Decimal",
}  # fmt: skip
ROW = {
    "type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", DECIMAL]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "sizes", "type": {"type": "array", "items": ["null", {"type": "int", "logicalType": "date"}]}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["a"]}},
        {"name": "either", "type": ["null", "string", "long"]},
    ],
}  # fmt: skip
EVENT = {
    "type": "record", "name": "Envelope", "namespace": "shop", "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
    ],
}  # fmt: skip
SAID = [
    {"field": "id", "type": "int64"},
    {
        "field": "price",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2"},
    },
    {"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
    {
        "field": "sizes",
        "type": "array",
        "items": {"type": "int32", "name": "org.apache.kafka.connect.data.Date"},
    },
    {"field": "kind", "type": "string"},
    {"field": "either", "type": "union"},
]


def test_values_are_decoded_as_they_are_encoded() -> None:
    """No logical type is left, at any depth; everything else stays."""
    found = json.dumps(uninterpreted(EVENT))

    assert "logicalType" not in found
    assert json.loads(found)["fields"][0]["type"][1]["fields"][1]["type"][1]["scale"] == 2


def test_rows_are_described_as_kafka_connect_does() -> None:
    """Of an event the row after it, whose type was named before; of a flat row its columns; of a value nothing."""
    assert json.loads(row_schema(EVENT) or "") == {
        "fields": [{"field": "after", "type": "struct", "fields": SAID}]
    }
    assert json.loads(row_schema(ROW) or "") == {"fields": SAID}
    assert row_schema("long") is None
    assert [is_record(schema) for schema in (ROW, "long", ["null", ROW])] == [True, False, False]
