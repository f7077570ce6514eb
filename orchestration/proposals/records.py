"""Takes records of JSON apart: what row, key and schema each has.

The forms are those that `transforms.parsing.record_forms` reads.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lakejoin.orchestration.proposals.connect_types import event_types, row_types
from lakejoin.transforms.parsing.source_position import MEMBERS

Row = Mapping[str, Any]
_DEEPEST = 6
"""How often a record may be in a list of one or in a string."""


@dataclass(frozen=True)
class Record:
    """What one record says."""

    row: Row
    """By the names of the source; texts, numbers and so on as the file has them. Empty where no row is left."""
    is_event: bool = False
    """Debezium's envelope is around the row."""
    is_new: bool = True
    """As far as can be told the row was not there before."""
    key: tuple[str, ...] = ()
    """The columns that the key of the record has."""
    table: str = ""
    """The table of the database, with its schema or database before a point; empty where it is not said."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The types of columns that a schema beside the row says."""
    is_placed: bool = False
    """The event says where it stands in the log of its database."""
    is_dumped: bool = False
    """The record is the value of one that was dumped with its key or topic."""


def record_of(found: Any) -> Record | None:
    """Take what stands on a line apart, as `json.loads` has it; None for what holds no record."""
    found = opened(found)
    if not isinstance(found, dict):
        return None
    held = next((name for name in ("value", "payload") if name in found and "schema" not in found), None)
    is_dumped = held is not None and ("topic" in found or found.keys() <= {held, "offset", "key"})
    value: Any = opened(found[held]) if is_dumped else found
    key = found.get("key") if is_dumped else None
    schema = None
    if isinstance(value, dict) and value.keys() == {"schema", "payload"}:
        schema, value = value["schema"], opened(value["payload"])
    value = _of_cloud_event(value)
    if not isinstance(value, dict):
        return None
    if "op" in value and ("after" in value or "before" in value):
        return _event(value, schema, key)
    return Record(value, types=row_types(schema), is_dumped=is_dumped)


def opened(found: Any) -> Any:
    """What is in a string of JSON, or in a list of one; anything else as it is."""
    for _ in range(_DEEPEST):
        if isinstance(found, list) and len(found) == 1:
            (found,) = found
        elif isinstance(found, str) and found.lstrip()[:1] in {"{", "[", '"'}:
            try:
                found = json.loads(found)
            except (ValueError, RecursionError):
                return found
        else:
            break
    return found


def _of_cloud_event(value: Any) -> Any:
    """The envelope that CloudEvents take apart, put together again."""
    if not isinstance(value, dict) or "iodebeziumop" not in value:
        return value
    data = opened(value.get("data"))
    if isinstance(data, dict) and data.keys() == {"schema", "payload"}:
        data = data["payload"]
    said = {
        name: value.get(f"iodebezium{name.replace('_', '').lower()}")
        for name in (*MEMBERS, "db", "schema", "table")
    }
    return {"op": value["iodebeziumop"], "source": said, **(data if isinstance(data, dict) else {})}


def _event(value: Row, schema: Any, key: Any) -> Record:
    source = value.get("source")
    said = source if isinstance(source, dict) else {}
    row = opened(value.get("after"))
    row = {name: plain(member) for name, member in row.items()} if isinstance(row, dict) else {}
    return Record(
        row,
        is_event=True,
        is_new=value["op"] in {"c", "r"},
        key=_key_names(key, row),
        table=_table(said),
        types=event_types(schema),
        is_placed=any(said.get(name) is not None for name in ("lsn", "file", "commit_lsn", "scn", "ord")),
    )


def _table(source: Mapping[str, Any]) -> str:
    name = source.get("table") or source.get("collection")
    within = source.get("schema") or source.get("db")
    return ".".join(str(part) for part in (within, name) if part) if name else ""


def _key_names(key: Any, row: Row) -> tuple[str, ...]:
    key = opened(key)
    if isinstance(key, dict) and key.keys() == {"schema", "payload"}:
        key = opened(key["payload"])
    if not isinstance(key, dict):
        return ()
    # MongoDB's connector calls `_id` so in the key
    return tuple("_id" if name == "id" and "id" not in row and "_id" in row else name for name in key)


def plain(value: Any) -> Any:
    """What a value of MongoDB's extended JSON stands for; any other as it is."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((name, inner),) = value.items()
    match name:
        case "$oid" | "$uuid" | "$symbol" | "$numberDecimal":
            return str(inner)
        case "$numberLong" | "$numberInt":
            return int(inner)
        case "$numberDouble":
            return float(inner)
        case "$date":
            inner = plain(inner)
            return (
                f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=inner):%Y-%m-%dT%H:%M:%S}Z"
                if isinstance(inner, int)
                else inner
            )
    return value
