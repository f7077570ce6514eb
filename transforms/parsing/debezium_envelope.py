"""Finds the members of a Debezium event: `{"offset","key","value","headers"}`, or its value alone.

Event, key and value may each be wrapped in `{"schema","payload"}`, as Kafka Connect's JsonConverter writes them with
schemas. A key of one column may be its value alone, and any key the text of its JSON. (Debezium documentation,
PostgreSQL connector: "Data change events", "Transaction metadata"; "Schema change topic", `heartbeat.interval.ms`.)
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.transforms.model.schemas import POSITION_TYPE
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.connect_schema import SCHEMA
from lakejoin.transforms.parsing.json_lines import texts
from lakejoin.transforms.parsing.record_forms import decoded, nothing_as
from lakejoin.transforms.parsing.row_ops import is_of
from lakejoin.transforms.parsing.source_position import SOURCE

SEQUENCE_NAMES = ("lsn", "tx_id", "ts_ms", "offset", SOURCE)
"""Sequence fields that need no declared column."""
ORIGIN = ("schema", "db", "table", "collection")
"""What the source of an event calls its table by: a database has schemas or not, MongoDB has collections."""
ORDER = ("connector", "ts_ms")
"""What the source of an event says of what its positions are worth."""
_PAYLOAD = "payload"
_MONGO_KEY = "id"
"""What MongoDB's connector calls the `_id` of a document in the record's key."""
_VALUES = ("value.payload", "value", _PAYLOAD)
"""Where the value of an event is, if it is not the line itself."""
_EMPTY = r"^\s*+\{\s*+\}\s*+$"
_CLOCKS = ("ts_ms", "ts_us", "ts_ns")
_TRANSACTION = ("status", "id", "event_count", "data_collections")


def event_type(table: TableSpec, source: Iterable[str] = (), *, with_schema: bool) -> StructType:
    """Type of an event with all values as text: what is declared, and what says what happened to it.

    `source`: more of what it says of its source. `with_schema`: with what its schema says of the columns.
    """
    source = dict.fromkeys(["lsn", "txId", *source])
    about = [*texts(["op", "ts_ms"]), StructField("source", texts(source))]
    beside = [StructField("schema", SCHEMA)] if with_schema else []
    event = _event_type(table, table.columns.names, about, beside)
    return event.add("offset", StringType())


def row_type(table: TableSpec, names: Iterable[str]) -> StructType:
    """Type of an event with nothing but these columns of its rows and key, as text."""
    return _event_type(table, names, [], [])


def is_in_before(table: TableSpec, name: str) -> bool:
    """Whether the row before the event is asked for a column: a delete has no other row."""
    return name in (*table.key, *table.sequence.names, table.event_time)


def member(event: Column, name: str) -> Column:
    """A member of the value, wherever the value is: `op`, `before`, `after`, `source`, `ts_ms`."""
    value = event["value"]
    return F.coalesce(value[_PAYLOAD][name], value[name], event[_PAYLOAD][name], event[name])


def key(event: Column, table: TableSpec) -> Column:
    """The columns of the record's key, which is text, as texts by the names that the source has for them.

    A key that is called `payload` is not looked for in `{"schema","payload"}`.
    """
    text = event["key"]
    if not _has_payload(table):
        wrapped = F.from_json(text, texts([_PAYLOAD]))[_PAYLOAD]
        text = F.coalesce(F.when(text.contains('"payload"'), wrapped), text)
    names = [table.name_in_source(name) for name in table.key]
    found = F.from_json(text, texts([*names, *([_MONGO_KEY] if "_id" in names else [])]))
    if "_id" in names:
        found = found.withField("_id", F.coalesce(found["_id"], found[_MONGO_KEY]))
    if len(names) > 1:
        return found
    alone = F.struct(decoded(text).alias(names[0]))
    return F.when(F.ltrim(text).startswith("{"), F.struct(found[names[0]].alias(names[0]))).otherwise(alone)


def schema(event: Column) -> Column:
    """The schema of the value, null where there is none beside it."""
    return F.coalesce(event["value"]["schema"], event["schema"])


def anywhere(value: StructType, beside: Iterable[StructField] = ()) -> StructType:
    """Type of an event whose value, of this type, is wherever `member` looks for it. `beside`: what is next to it."""
    wrapped = StructType([*value, StructField(_PAYLOAD, value), *beside])
    return StructType([StructField("value", wrapped), *wrapped])


def text_after(line: Column) -> Column:
    """The row after an event as JSON, null where it has none."""
    return member(F.from_json(line, anywhere(texts(["after"]))), "after")


def origin(event: Column) -> tuple[Column, Column]:
    """The table of the database that an event happened to, and the same with its schema or database before it."""
    source = member(event, "source")
    name = F.coalesce(source["table"], source["collection"])
    return name, F.concat_ws(".", F.coalesce(source["schema"], source["db"]), name)


def is_tombstone_of(line: Column, tables: Sequence[str]) -> Column:
    """Whether a tombstone says that it is of one of these tables: by the name of its key's schema, or by its topic."""
    key = F.get_json_object(line, "$.key.schema.name")
    of_key = F.nullif(F.regexp_extract(key, r"^(.+)\.Key$", 1), F.lit(""))
    name = F.coalesce(of_key, F.get_json_object(line, "$.topic"))
    whole = F.regexp_extract(name, r"([^.]+\.[^.]+)$", 1)
    found = (whole != "") & is_of(F.regexp_extract(whole, r"([^.]+)$", 1), whole, tables)
    return F.coalesce(found, F.lit(False))


def has_null_value(event: Column, line: Column) -> Column:
    """Whether the value is null, in words: a line without a value is none, nor is one that holds anything else."""
    value, names = event["value"], F.json_object_keys(line)
    members = F.json_object_keys(F.get_json_object(line, "$.value"))
    wrapped = F.array_contains(members, _PAYLOAD) & value[_PAYLOAD].isNull()
    alone = _has_only(members, "schema", _PAYLOAD)
    printed = _has(names, "key", _PAYLOAD) & event[_PAYLOAD].isNull()
    is_null = F.array_contains(names, "value") | printed
    return F.when(value.isNull(), is_null).otherwise(wrapped & alone)


def ignored_as(event: Column, line: Column, broken: Column) -> Column:
    """What a line is that holds no event of a row, and no error: Debezium writes more to its topics. Null for others.

    Tombstones without their key, heartbeats, boundaries of transactions, changes of a schema, empty lines.
    """
    value = F.coalesce(*[F.get_json_object(line, f"$.{place}") for place in _VALUES], line)
    names, own = F.json_object_keys(value), F.json_object_keys(line)
    without_key = _has(own, _PAYLOAD) & _has_only(own, "schema", _PAYLOAD) & event[_PAYLOAD].isNull()
    is_boundary = F.get_json_object(value, "$.status").isin("BEGIN", "END")
    is_heartbeat = _has(names, "ts_ms") & _has_only(names, *_CLOCKS)
    is_boundary &= _has(names, *_TRANSACTION)
    is_schema_change = _has(names, "source", "databaseName", "ddl")
    found = {
        "tombstone": without_key, "heartbeat": is_heartbeat, "transaction": is_boundary,
        "schema_change": is_schema_change,
    }  # fmt: skip
    kinds = [F.when(~broken & is_kind, kind) for kind, is_kind in found.items()]
    return F.coalesce(nothing_as(line), F.when(line.rlike(_EMPTY), "empty"), *kinds)


def _has(names: Column, *wanted: str) -> Column:
    return reduce(and_, [F.array_contains(names, name) for name in wanted])


def _has_only(names: Column, *allowed: str) -> Column:
    return F.size(F.array_except(names, F.array(*map(F.lit, allowed)))) == 0


def order(event: Column, name: str) -> Column:
    """One of `SEQUENCE_NAMES` but `SOURCE`."""
    if name == "offset":
        return event["offset"]
    if name == "ts_ms":
        return member(event, "ts_ms")
    return member(event, "source")["txId" if name == "tx_id" else name]


def envelope_sequence(table: TableSpec) -> list[str]:
    """Sequence fields of a table that are no columns. Raises `ValueError` for one that no event has."""
    if table.sequence == POSITION_TYPE:
        return []
    names = [name for name in table.sequence.names if name not in table.columns.names]
    for name in names:
        if name not in SEQUENCE_NAMES:
            raise ValueError(f"{table.name}: sequence {name} is neither a column nor one of {SEQUENCE_NAMES}")
    return names


def _event_type(
    table: TableSpec, names: Iterable[str], about: Iterable[StructField], beside: Iterable[StructField]
) -> StructType:
    row = texts(names)
    old = StructType([field for field in row if is_in_before(table, field.name)])
    value = StructType([*_unless_empty("before", old), StructField("after", row), *about])
    return StructType([StructField("key", StringType()), *anywhere(value, beside)])


def _has_payload(table: TableSpec) -> bool:
    """Whether a column of the key is called `payload`, here or in the source; Spark does not tell capitals apart."""
    return _PAYLOAD in {name.lower() for name in (*table.key, *map(table.name_in_source, table.key))}


def _unless_empty(name: str, dtype: StructType) -> list[StructField]:
    return [StructField(name, dtype)] if dtype.fields else []
