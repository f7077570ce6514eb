"""Records of JSON, in all their forms."""

import json
from typing import Any

import pytest

from lakejoin.orchestration.proposals.records import Record, record_of

ROW = {"id": 1, "name": "ann"}
EVENT = {"before": None, "after": ROW, "source": {"schema": "public", "table": "people", "lsn": 5}, "op": "c"}
SCHEMA = {
    "type": "struct",
    "fields": [
        {
            "field": "after",
            "type": "struct",
            "fields": [{"field": "id", "type": "int32"}, {"field": "name", "type": "string"}],
        }
    ],
}
KCAT = {"topic": "t", "partition": 0, "offset": 1, "ts": 1}


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (EVENT, ()),
        (json.dumps(EVENT), ()),
        ([EVENT], ()),
        ({"schema": SCHEMA, "payload": EVENT}, ()),
        ({"offset": 1, "key": {"id": 1}, "value": EVENT}, ("id",)),
        ({**KCAT, "key": '{"id":1}', "payload": json.dumps(EVENT)}, ("id",)),
        ({**KCAT, "key": {"schema": {}, "payload": {"id": 1}}, "payload": {"schema": {}, "payload": EVENT}}, ("id",)),
        ({"iodebeziumop": "c", "iodebeziumlsn": "5", "iodebeziumschema": "public", "iodebeziumtable": "people",
          "data": {"before": None, "after": ROW}}, ()),
    ],
)  # fmt: skip
def test_event_is_found_in_every_form(line: Any, key: tuple[str, ...]) -> None:
    """Whatever is around it, row, table and key are the same."""
    found = record_of(line)

    assert found is not None
    assert (found.row, found.is_event, found.is_new, found.table, found.is_placed) == (
        ROW,
        True,
        True,
        "public.people",
        True,
    )
    assert found.key == key


def test_schema_says_types() -> None:
    """Of the row within the event."""
    found = record_of({"schema": SCHEMA, "payload": EVENT})

    assert found is not None
    assert found.types == {"id": "int", "name": "string"}


def test_documents_are_text() -> None:
    """MongoDB's rows, whose key has another name."""
    after = json.dumps({"_id": {"$oid": "a1"}, "n": {"$numberLong": "7"}, "at": {"$date": 0}, "in": {"a": 1}})
    event = {"op": "u", "after": after, "source": {"db": "shop", "collection": "people", "ord": 1}}

    found = record_of({"key": {"id": '{"$oid":"a1"}'}, "value": event})

    assert found is not None
    assert found.row == {"_id": "a1", "n": 7, "at": "1970-01-01T00:00:00Z", "in": {"a": 1}}
    assert (found.key, found.table, found.is_new) == (("_id",), "shop.people", False)


def test_what_is_no_record_is_none() -> None:
    """Tombstones, texts, numbers; a delete is an event without a row, and kcat's rows are marked."""
    assert [record_of(line) for line in (None, 7, "text", [1, 2], {**KCAT, "key": "1", "payload": None})] == [
        None
    ] * 5
    assert record_of(ROW) == Record(ROW)
    deleted = record_of({**EVENT, "op": "d", "before": ROW, "after": None})
    assert deleted is not None
    assert (deleted.row, deleted.is_event) == ({}, True)
    for line in ({**KCAT, "payload": json.dumps(ROW)}, {"key": "1", "value": ROW}):
        dumped = record_of(line)
        assert dumped is not None
        assert (dumped.row, dumped.is_dumped) == (ROW, True)
    plain = record_of({"key": 1, "value": 2, "other": 3})
    assert plain is not None
    assert not plain.is_dumped
