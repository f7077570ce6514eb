"""Debezium events, line by line: what each does to its key, when, in which order, why it is quarantined."""

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DERIVED,
    DETAIL,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIME,
    UNAVAILABLE,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.debezium import take_apart
from lakejoin.transforms.parsing.options import ParseOptions, records_schema
from lakejoin.transforms.parsing.validation import finish_records

pytestmark = pytest.mark.spark

DAY = date(2013, 1, 1)
NOON = datetime(2013, 1, 1, 12)  # noqa: DTZ001 - as Spark's row holds it, in UTC
NOON_TEXT = "2013-01-01T12:00:00.000000Z"
CLOCK = datetime(2026, 11, 21, 2, 22, 13, 729000)  # noqa: DTZ001
CLOCK_MS = 1795227733729
UNAVAILABLE_VALUE = "__debezium_unavailable_value"


def table(columns: str, key: Sequence[str], sequence: str = "", event_time: str | None = None) -> TableSpec:
    """A table with columns and sequence as one declares them in SQL."""
    order = StructType.fromDDL(sequence) if sequence else POSITION_TYPE
    return TableSpec("planes", StructType.fromDDL(columns), tuple(key), order, event_time)


def planes() -> TableSpec:
    """A table with a column of every kind that events hold in their own way."""
    columns = "id bigint, name string, price decimal(12,2), photo binary, tags array<string>, at timestamp"
    return table(columns, ["id"], "lsn bigint", "at")


def event(op: str | None, after: object = None, before: object = None, **more: Any) -> dict[str, Any]:
    """The value of an event, with what Debezium tells about its source."""
    about = {"source": {"lsn": 7, "txId": 3, "table": "planes"}, "ts_ms": CLOCK_MS}
    return {"op": op, "after": after, "before": before, **about, **more}


def record(value: object, key: object = None, offset: int = 5) -> dict[str, Any]:
    """An event as Kafka holds it."""
    return {"offset": offset, "key": key, "value": value, "headers": {"a": "b"}}


def enveloped(payload: object) -> dict[str, Any]:
    """What Kafka Connect writes with schemas."""
    return {"schema": {"type": "struct", "fields": [{"field": "op", "after": 1}]}, "payload": payload}


def parse(
    spark: SparkSession, spec: TableSpec, lines: Sequence[object], options: ParseOptions | None = None
) -> list[list[Row]]:
    """Records of each line, all parsed in one frame; an object stands for its compact JSON."""
    texts = [line if isinstance(line, bytes | str) else compact(line) for line in lines]
    binary = [text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text for text in texts]
    rows = [(DAY, "x.jsonl", n, bytearray(text)) for n, text in enumerate(binary, start=1)]
    frame = spark.createDataFrame(rows, "date DATE, file STRING, line BIGINT, text BINARY")
    numbered = frame.select(
        F.struct("date", "file", "line").alias(POSITION),
        F.lit(False).alias(CONTEXT),
        F.col("text").cast("string").alias(RAW),
    )
    records = finish_records(take_apart(numbered, spec, options or ParseOptions("debezium")), spec)
    assert records.schema.simpleString() == records_schema(spec).simpleString()
    found: list[list[Row]] = [[] for _ in lines]
    for row in sorted(records.collect(), key=lambda row: row[DERIVED]):
        found[row[POSITION]["line"] - 1].append(row)
    return found


def compact(line: object) -> str:
    """JSON without spaces, as Debezium writes it."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def only(rows: list[Row]) -> Row:
    """The one record of a line."""
    assert len(rows) == 1
    return rows[0]


def test_every_form_of_an_event_is_the_same_record(spark: SparkSession) -> None:
    """With or without offset and key around it, with or without schemas at any of the places."""
    row = {"id": 1, "name": 'Ä\n"\\', "price": "12.50", "at": NOON_TEXT, "extra": {"not": "declared"}}
    value, key = event("c", row), {"id": 1}
    forms = [
        value,
        enveloped(value),
        record(value, key),
        record(value),
        record(enveloped(value), key),
        record(enveloped(value), enveloped(key)),
        {"key": enveloped(key), "value": value},
        json.dumps(record(value, key), indent=None),
        compact(record(value, key)) + "\r",
        f"  {compact(value)}  ",
    ]

    for form, rows in zip(forms, parse(spark, planes(), forms), strict=True):
        found = only(rows)
        assert found[REASON] is None, form
        assert (found["id"], found["name"], found["price"]) == (1, 'Ä\n"\\', Decimal("12.50"))
        assert (found[OP], found[SEQUENCE], found[TIME]) == ("upsert", Row(lsn=7), NOON)
        assert (found["photo"], found["tags"], found["at"]) == (None, None, NOON)
        assert (found[DERIVED], found[CONTEXT], found[RAW], found[UNAVAILABLE]) == (False, False, None, None)


def test_event_in_a_string_or_a_list_is_read(spark: SparkSession) -> None:
    """As dumps of topics hold it: a string in a string, kcat's members, numbers with all digits (kcat#222)."""
    price = "1234567890.10"
    after = f'{{"id":1,"name":"a \\"b\\" {{c","price":{price}}}'
    value = f'{{"op":"c","after":{after},"source":{{"lsn":7}},"ts_ms":{CLOCK_MS}}}'
    schema = enveloped(None)["schema"]
    kcat = {
        "topic": "t",
        "partition": 0,
        "offset": 5,
        "tstype": "create",
        "ts": 17,
        "broker": 0,
        "headers": ["a", "{"],
    }
    wrapped = f'{{"schema":{compact(schema)},"payload":{value}}}'
    forms = [
        f"[{value}]",
        f" [ {value} ] ",
        compact(value),
        compact(compact(value)),
        compact(wrapped),
        f'{{"key":{{"id":1}},"value":{compact(value)}}}',
        f'{{"key":"{{\\"id\\":1}}","value":{compact(wrapped)},"headers":null}}',
        f'{{"headers":[{{"a":"}}"}}],"value":{compact(compact(value))},"key":null}}',
        compact({**kcat, "key": '{"id":1}', "payload": value}),
        json.dumps({**kcat, "key": '"1"', "payload": wrapped}),
        compact(compact({"key": "1", "value": value})),
    ]

    for form, rows in zip(forms, parse(spark, planes(), forms), strict=True):
        found = only(rows)
        assert (found[REASON], found[DETAIL]) == (None, None), form
        assert (found["id"], found["name"], found["price"]) == (1, 'a "b" {c', Decimal(price)), form
        assert (found[OP], found[SEQUENCE]) == ("upsert", Row(lsn=7))


def test_text_that_looks_like_an_event_stays_text(spark: SparkSession) -> None:
    """Columns called as the envelope's members, and rows that hold JSON, are taken out of no string."""
    spec = table("id int, value string, payload string, after string", ["id"], "lsn bigint")
    texts = {"value": '{"a": 1.0}', "payload": '{"op":"d"}', "after": '"{}"'}

    row = only(parse(spark, spec, [compact(event("c", {"id": 1, **texts}))])[0])

    assert (row[REASON], {name: row[name] for name in texts}) == (None, texts)


def test_key_may_be_its_value_alone(spark: SparkSession) -> None:
    """A number, a text, JSON in a string, with a schema around it; of two columns it is an object (paimon#5945)."""
    keys = [
        '"a"', '"{\\"code\\":\\"a\\"}"', '{"code":"a"}', '{"schema":{"type":"string"},"payload":"a"}',
        '{"schema":null,"payload":{"code":"a"}}', '"\\"a\\""', '"{\\"schema\\":null,\\"payload\\":\\"a\\"}"',
    ]  # fmt: skip
    spec, numbers = table("code string", ["code"]), table("no decimal(30,2)", ["no"])
    composite = table("code string, no int", ["code", "no"])

    texts = parse(spark, spec, [f'{{"key":{key},"value":null}}' for key in keys])
    deletes = parse(spark, spec, [f'{{"key":{key},"value":{compact(event("d"))}}}' for key in keys])
    found = parse(spark, numbers, [f'{{"key":{key},"value":null}}' for key in ("7", '"7"', '{"payload":7}')])
    refused = parse(
        spark, composite, ['{"key":"a","value":null}', '{"key":{"code":"a","no":1},"value":null}']
    )

    assert [(only(rows)[OP], only(rows)["code"]) for rows in texts] == [("tombstone", "a")] * len(keys)
    assert [(only(rows)[OP], only(rows)["code"]) for rows in deletes] == [("delete", "a")] * len(keys)
    assert [only(rows)["no"] for rows in found] == [Decimal(7)] * 3
    assert [only(rows)[REASON] for rows in refused] == ["null_key", None]


def test_what_is_no_event_of_a_row_is_ignored(spark: SparkSession) -> None:
    """Tombstones alone (hudi#8519), heartbeats (airbyte#41647), ends of transactions (FLINK-38691), new schemas."""
    boundary = {
        "status": "BEGIN",
        "id": "571:53195829",
        "event_count": None,
        "data_collections": None,
        "ts_ms": 17,
    }
    change = {"source": {"db": "inv"}, "ts_ms": 17, "databaseName": "inv", "ddl": "CREATE TABLE t (a int)"}
    beats = [{"ts_ms": 17}, enveloped({"ts_ms": 17, "ts_us": 17}), record({"ts_ms": 17}, {"serverName": "x"})]
    lines = [
        "", "  ", "null", " null ", "{}", "{ }", '{"schema":null,"payload":null}', *map(compact, beats),
        compact(boundary), compact(enveloped({**boundary, "status": "END", "event_count": 2})),
        compact(record(boundary, {"id": "571"})), compact(change), compact(record(enveloped(change))),
    ]  # fmt: skip

    found = [only(rows) for rows in parse(spark, planes(), lines)]

    assert [(row[OP], row[REASON], row[RAW]) for row in found] == [("ignored", None, None)] * len(lines)
    assert [row[DETAIL] for row in found] == [
        "empty", "empty", "tombstone", "tombstone", "empty", "empty", "tombstone", *["heartbeat"] * 3,
        *["transaction"] * 3, *["schema_change"] * 2,
    ]  # fmt: skip


def test_kcat_s_record_without_payload_is_a_tombstone(spark: SparkSession) -> None:
    """It has its key beside it, as an object, a text or a value alone."""
    lines = [
        f'{{"topic":"t","offset":5,"key":{key},"payload":null}}'
        for key in ('{"id":1}', '"{\\"id\\":1}"', "1")
    ]

    assert [(only(rows)[OP], only(rows)["id"]) for rows in parse(spark, planes(), lines)] == [
        ("tombstone", 1)
    ] * 3


def test_tombstone_of_another_table_deletes_nothing(spark: SparkSession) -> None:
    """It has no source: its key's schema or its topic say whose it is; where nobody does, the delete before it did."""
    names = ("p.public.planes", "p.public.orders", "p.archive.planes")
    schemas = [{"schema": {"type": "struct", "name": f"{name}.Key"}, "payload": {"id": 1}} for name in names]
    lines = [
        *(compact({"key": key, "value": None}) for key in schemas),
        *(f'{{"topic":"{name}","key":"{{\\"id\\":1}}","payload":null}}' for name in names),
        '{"key":{"id":1},"value":null}',
    ]

    lines.append(compact(event("c", {"id": 1}, source={"schema": "public", "table": "orders"})))
    found = [
        only(rows)
        for rows in parse(spark, planes(), lines, ParseOptions("debezium", tables=("public.planes",)))
    ]

    assert [row[OP] for row in found] == [*["tombstone", "ignored", "ignored"] * 2, "ignored", "ignored"]
    assert [row[DETAIL] for row in found] == [
        *[None, "tombstone", "tombstone"] * 2, "tombstone", "other_table",
    ]  # fmt: skip


def test_cloud_event_is_read(spark: SparkSession) -> None:
    """What happened stands in its attributes, the rows in `data`, with a schema or without."""
    about = {
        "id": "name:t;lsn:7;txId:3", "source": "/debezium/postgresql/t", "specversion": "1.0",
        "type": "io.debezium.connector.postgresql.DataChangeEvent", "datacontenttype": "application/json",
        "iodebeziumop": "u", "iodebeziumtable": "planes", "iodebeziumlsn": "7", "iodebeziumtxid": "3",
        "iodebeziumtsms": str(CLOCK_MS),
    }  # fmt: skip
    rows = '{"before":{"id":2},"after":{"id":1,"price":1234567890.10,"name":"}"}}'
    data = [rows, f'{{"schema":{{"fields":[]}},"payload":{rows}}}']
    lines = [f'{compact(about)[:-1]},"data":{rows},"iodebeziumdb":"x"}}' for rows in data]

    for upsert, delete in parse(spark, planes(), [*lines, f'{{"data":{rows},{compact(about)[1:]}']):
        assert (upsert[OP], upsert["id"], upsert["price"]) == ("upsert", 1, Decimal("1234567890.10"))
        assert (upsert["name"], upsert[SEQUENCE], upsert[TIME]) == ("}", Row(lsn=7), CLOCK)
        assert (delete[OP], delete["id"], delete[DERIVED]) == ("delete", 2, True)


def test_op_says_what_an_event_does(spark: SparkSession) -> None:
    """r, c, u take the row after; d and a null value know only a key; t and m know none."""
    row, key = {"id": 1, "name": "new"}, {"id": 1}
    cases = [
        (record(event("r", row), key), "upsert", 1, "new"),
        (record(event("c", row), key), "upsert", 1, "new"),
        (record(event("u", row, {"id": 1, "name": "old"}), key), "upsert", 1, "new"),
        (record(event("d", None, {"id": 1, "name": "old"}), key), "delete", 1, None),
        (event("d", None, {"id": 1, "name": "old"}), "delete", 1, None),
        (record(event("d", None, {"id": 2}), enveloped(key)), "delete", 1, None),
        (record(None, key), "tombstone", 1, None),
        (record(enveloped(None), enveloped(key)), "tombstone", 1, None),
        (record({"schema": None, "payload": None}, key), "tombstone", 1, None),
        (event("t"), "truncate", None, None),
        (event("m", message={"prefix": "x"}), "ignored", None, None),
    ]

    found = [only(rows) for rows in parse(spark, planes(), [line for line, *_ in cases])]

    assert [(row[OP], row["id"], row["name"]) for row in found] == [tuple(case[1:]) for case in cases]
    assert {row[REASON] for row in found} == {None}


def test_sequence_comes_from_the_envelope(spark: SparkSession) -> None:
    """The source's lsn and transaction, the event's own time, the record's offset; whole or not at all."""
    spec = table("id int", ["id"], "lsn bigint, tx_id bigint, ts_ms bigint, offset bigint")
    key = {"id": 1}

    upsert, tombstone, truncate = (
        only(rows)
        for rows in parse(spark, spec, [record(event("c", key)), record(None, key), record(event("t"))])
    )

    assert upsert[SEQUENCE] == Row(lsn=7, tx_id=3, ts_ms=CLOCK_MS, offset=5)
    assert (tombstone[SEQUENCE], tombstone[REASON]) == (None, None)
    assert truncate[SEQUENCE] == upsert[SEQUENCE]


def test_declared_columns_order_changes(spark: SparkSession) -> None:
    """A declared column goes before an envelope's name; a delete has the one of the row before it."""
    spec = table("id int, lsn string, changed timestamp", ["id"], "lsn string, changed timestamp")
    row = {"id": 1, "lsn": "A", "changed": NOON_TEXT}

    upsert, delete = (
        only(rows) for rows in parse(spark, spec, [event("c", row), event("d", None, {**row, "lsn": "B"})])
    )

    assert upsert[SEQUENCE] == Row(lsn="A", changed=NOON)
    assert (delete[SEQUENCE], delete["changed"]) == (Row(lsn="B", changed=NOON), None)


def test_position_orders_changes_without_a_sequence(spark: SparkSession) -> None:
    """Where nothing else is declared, a record comes after what stands above it."""
    upsert, tombstone = (
        only(rows)
        for rows in parse(spark, table("id int", ["id"]), [event("c", {"id": 1}), record(None, {"id": 1})])
    )

    assert upsert[SEQUENCE] == upsert[POSITION] == Row(date=DAY, file="x.jsonl", line=1)
    assert tombstone[SEQUENCE] == Row(date=DAY, file="x.jsonl", line=2)


def test_unknown_sequence_is_refused(spark: SparkSession) -> None:
    """A name that is neither a column nor in the envelope cannot order anything."""
    with pytest.raises(ValueError, match="sequence scn is neither a column"):
        parse(spark, table("id int", ["id"], "scn bigint"), [])


def test_time_is_the_event_s_own_where_there_is_one(spark: SparkSession) -> None:
    """A delete has the time of the row before it; without one, the time at which Debezium saw the event."""
    later = "2013-01-01T13:00:00Z"
    lines = [
        event("u", {"id": 1, "at": later}, {"id": 1, "at": NOON_TEXT}),
        event("d", None, {"id": 1, "at": NOON_TEXT}),
        record(event("d"), {"id": 1}),
        event("d", None, {"id": 1, "at": UNAVAILABLE_VALUE}),
        event("u", {"id": 1, "at": None}),
        record(None, {"id": 1}),
    ]

    times = [only(rows)[TIME] for rows in parse(spark, planes(), lines)]

    assert times == [NOON.replace(hour=13), NOON, CLOCK, CLOCK, CLOCK, None]
    assert only(parse(spark, table("id int", ["id"]), [event("c", {"id": 1})])[0])[TIME] is None


def test_update_that_changes_the_key_deletes_the_old_one(spark: SparkSession) -> None:
    """Two records at one position, of which the delete is derived; every column of a composite key counts."""
    spec = table("region string, no int, name string, at timestamp", ["region", "no"], "lsn bigint", "at")
    after = {"region": "EU", "no": 2, "name": "x", "at": NOON_TEXT}
    lines = [
        event("u", after, {"region": "EU", "no": 1, "name": "old", "at": "2012-01-01T00:00:00Z"}),
        event("u", after, {"region": "EU", "no": 2}),
        event("u", after, {"region": "EU", "no": "2"}),
        event("u", after, {"region": "US"}),
        event("u", after, None),
        event("c", after, {"region": "EU", "no": 1}),
        event("u", after, {"region": "EU", "no": "one"}),
    ]

    found = parse(spark, spec, lines)

    upsert, delete = found[0]
    assert (upsert[OP], upsert["no"], upsert["name"], upsert[DERIVED]) == ("upsert", 2, "x", False)
    assert (delete[OP], delete["no"], delete["name"], delete[DERIVED]) == ("delete", 1, None, True)
    assert (delete["at"], delete[TIME], delete[SEQUENCE]) == (None, NOON, Row(lsn=7))
    assert delete[POSITION] == upsert[POSITION]
    assert [len(rows) for rows in found] == [2, 1, 1, 2, 1, 1, 1]
    assert (found[3][1]["region"], found[3][1]["no"]) == ("US", 2)
    bad = only(found[6])
    assert (bad[REASON], bad[DETAIL]) == ("type_mismatch", 'before.no: "one" is no int')


def test_value_that_was_not_sent_is_listed(spark: SparkSession) -> None:
    """PostgreSQL leaves out large values that did not change; their placeholder is never taken for one."""
    left_out = {"id": 1, "name": UNAVAILABLE_VALUE, "price": UNAVAILABLE_VALUE, "tags": [UNAVAILABLE_VALUE]}
    in_base64 = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="
    lines = [
        event("u", left_out),
        event("u", {"id": 1, "photo": in_base64}),
        event("u", {"id": 1, "name": f"about {UNAVAILABLE_VALUE}"}),
        event("d", None, {"id": 1, "name": UNAVAILABLE_VALUE}),
        event("u", {"id": "x", "name": UNAVAILABLE_VALUE}),
        json.dumps(event("u", {"id": 1, "sizes": [*UNAVAILABLE_VALUE.encode()]})),
        event("u", {"id": 1, "about": {UNAVAILABLE_VALUE: UNAVAILABLE_VALUE}, "tags": [UNAVAILABLE_VALUE]}),
        event("u", {"id": 1, "tags": ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"], "about": {"a": "b"}}),
        event("u", {"id": 1, "tags": [in_base64], "name": compact({UNAVAILABLE_VALUE: UNAVAILABLE_VALUE})}),
        event("u", {"id": 1, "name": UNAVAILABLE_VALUE.encode().hex(), "sizes": [95, 95, 100]}),
    ]
    columns = (
        "id bigint, name string, price decimal(12,2), photo binary, tags array<string>, sizes array<bigint>"
    )
    spec = table(f"{columns}, about map<string,string>", ["id"], "lsn bigint")

    found = [only(rows) for rows in parse(spark, spec, lines)]

    names = [row[UNAVAILABLE] for row in found]
    assert names[:5] == [["name", "price", "tags"], ["photo"], None, None, None]
    assert names[5:] == [["sizes"], ["tags", "about"], ["tags"], ["name", "tags"], ["name"]]
    assert all(row[name] is None for row in found for name in row[UNAVAILABLE] or ())
    assert [row[REASON] for row in found] == [None, None, None, None, "type_mismatch", *[None] * 5]
    assert (found[7]["about"], found[9]["sizes"]) == ({"a": "b"}, [95, 95, 100])
    assert json.loads(found[0][RAW])["after"] == left_out
    assert found[2][RAW] is None


@pytest.mark.bad_input(27)
def test_numbers_keep_their_digits(spark: SparkSession) -> None:
    """A decimal is exact whether it came as text or as a JSON number, with spaces around it or without."""
    lists = "lists map<string,array<struct<a: decimal(20,2), b: string, c: double>>>"
    spec = table(f"id decimal(20,3), price decimal(20,2), count bigint, all decimal(38,0), {lists}", ["id"])
    many = "123456789012345678.91"
    numbers = ["1.5", "12345678901234567890.5", "1e-30", "12345678901234567891e0", "-150e-1", "9" * 38 + ".0"]
    lines = [
        f'{{"op":"c","after":{{"id":1.001,"price":{many},"count":9007199254740993}}}}',
        f'{{"op": "c", "after": {{"id": "1.001", "price": "{many}"}}}}',
        '{"op":"c","after":{"id":1,"price":1.5E+3}}',
        '{"op":"c","after":{"id":1,"price":1.00000000000000000001}}',
        '{"op":"c","after":{"id":1,"price":1.5,"count":1.0}}',
        '{"op":"d","before":{"id":12345678901234567.125}}',
        '{"op":"u","before":{"id":12345678901234567.125},"after":{"id":12345678901234567.250}}',
        '{"offset":1,"key":{"id":12345678901234567.125},"value":null}',
        *[f'{{"op":"c","after":{{"id":1,"all":{number}}}}}' for number in numbers],
        f'{{"op":"c","after":{{"id":1,"lists":{{"x":[{{"a":{many},"b":1.10,"c":0.5}},null,{{"a":"{many}"}}]}}}}}}',
        '{"op":"c","after":{"id":1,"lists":{"x":[{"a":12345678901234567.001}]}}}',
    ]

    found = parse(spark, spec, lines)

    long_key = Decimal("12345678901234567.125")
    assert (found[0][0]["id"], found[0][0]["price"]) == (Decimal("1.001"), Decimal(many))
    assert found[0][0]["count"] == 9007199254740993
    assert found[1][0]["price"] == Decimal(many)
    assert found[2][0]["price"] == Decimal(1500)
    assert [only(rows)[REASON] for rows in found[2:5]] == [None, "type_mismatch", None]
    assert [row["id"] for row in found[5] + found[7]] == [long_key, long_key]
    assert [row["id"] for row in found[6]] == [Decimal("12345678901234567.250"), long_key]
    assert [only(rows)[REASON] for rows in found[8:14]] == [*["type_mismatch"] * 3, None, None, None]
    assert [only(rows)["all"] for rows in found[11:14]] == [12345678901234567891, -15, 10**38 - 1]
    first, last = Row(a=Decimal(many), b="1.1", c=0.5), Row(a=Decimal(many), b=None, c=None)
    assert [row["lists"] for row in found[14]] == [{"x": [first, None, last]}]
    assert only(found[15])[REASON] == "type_mismatch"


def test_map_with_a_name_twice_is_a_mismatch(spark: SparkSession) -> None:
    """Whatever its values are, and however deep it lies; the same name in another map is another one."""
    maps = "texts map<string,string>, counts map<string,int>"
    spec = table(f"id int, {maps}, deep array<struct<a: map<string,map<string,string>>, b: int>>", ["id"])
    values = [
        ('"texts":{"x":"1","y":"2"},"counts":{"x":1,"y":2}', None),
        ('"texts":{"x":"1","x":"2"}', "texts"),
        ('"texts":{"x":"1","y":"2","x":"1"}', "texts"),
        ('"counts":{"x":1,"x":2}', "counts"),
        ('"counts":{"x":1,"x":null}', "counts"),
        ('"deep":[{"a":{"x":{"x":"1"},"y":{"x":"1"}}},null,{"a":null},{"a":{"x":null}}]', None),
        ('"deep":[{"b":1},{"a":{"x":{"y":"1"},"z":{"y":"1","y":"1"}}}]', "deep"),
    ]

    found = parse(spark, spec, [f'{{"op":"c","after":{{"id":1,{value}}}}}' for value, _ in values])

    details = [only(rows)[DETAIL] for rows in found]
    assert [detail and detail.partition(":")[0] for detail in details] == [column for _, column in values]
    assert (only(found[0])["texts"], only(found[0])["counts"]) == ({"x": "1", "y": "2"}, {"x": 1, "y": 2})
    assert only(found[5])["deep"] is not None


BAD_LINES: list[tuple[str | bytes, str, str]] = [
    ("nil", "parse_error", 'begins with "nil"; expected an object'),
    ("[]", "parse_error", 'begins with "[]"'),
    ('"text"', "parse_error", 'begins with "text"'),
    ('{"op":"c","after":{"id":1', "parse_error", 'is cut off: it ends with "{"op":"c","after":{"id":1"'),
    ('{"op":"c","after":{"id":1}} x', "parse_error", 'followed by something else behind its object: " x"'),
    ('{"op":"c","after":{"id":1}}}', "parse_error", "followed by something else"),
    ('{"op":"c","after":{"id":1}},"a":{}', "parse_error", 'something else behind its object: ","a":{}"'),
    (
        '{"op":"c","after":{"id":1}},{"op":"c","after":{"id":1}}',
        "parse_error",
        "several records, the second one at",
    ),
    ('{"op":"c","after":{"id":1}}{"op":"c","after":{"id":1}}', "parse_error", "second one at character 28"),
    ("{'op':'c','after':{'id':1}}", "parse_error", "is no valid JSON"),
    ('{"op":"c","after":{"id":NaN}}', "parse_error", "is no valid JSON"),
    ('{"op":"c","after":{"id":1,"name":"a\0b"}}', "parse_error", "is no valid JSON"),
    ('{"op":"c","after":"text"}', "parse_error", 'has no object in `after`: "text"'),
    ('{"op":"c","after":[{"id":1}]}', "parse_error", 'no object in `after`: "[{"id":1}]"'),
    ('{"value":{"op":"c","after":{"id":1},"source":7}}', "parse_error", 'no object in `value.source`: "7"'),
    (b'{"op":"c","after":{"id":1,"name":"\xff"}}', "invalid_utf8", "bytes in base64: eyJvc"),
    ('{"op":"c","after":null}', "parse_error", "without a row `after`"),
    ('{"op":"u"}', "parse_error", "without a row `after`"),
    ('{"op":"x","after":{"id":1}}', "unknown_op", 'op "x", expected r, c, u, d, t or m'),
    ('{"op":"C","after":{"id":1}}', "unknown_op", 'op "C"'),
    ('{"after":{"id":1}}', "unknown_op", "no op"),
    ('[{"op":"c","after":{"id":1}}', "parse_error", 'begins a list: "[{"op"'),
    (
        '[{"op":"c","after":{"id":1}},{"op":"c","after":{"id":2}}]',
        "parse_error",
        "several records, the second one at",
    ),
    ('"{\\"op\\":\\"c\\"}" {}', "parse_error", 'begins with ""{'),
    ('{"ts_ms":1700000000000,"id":1}', "unknown_op", "no op"),
    ('{"ts_ms":1700000000000} x', "parse_error", "followed by something else"),
    ('{"status":"BEGIN","id":"571"}', "unknown_op", "no op"),
    ('{"payload":null,"id":1}', "unknown_op", "no op"),
    ('{"offset":1,"key":"{\\"no\\":1}","payload":null}', "null_key", "id is null"),
    ('{"offset":1,"key":{"id":1}}', "unknown_op", "no op"),
    ('{"offset":1,"key":{"id":1},"value":{"x":null}}', "unknown_op", "no op"),
    ('{"key":{"id":1},"value":{"id":1,"note":"x","payload":null}}', "unknown_op", "no op"),
    ('{"key":{"id":1},"value":{"schema":{"payload":null}}}', "unknown_op", "no op"),
    ('{"key":{"id":1},"note":{"value":null}}', "unknown_op", "no op"),
    ('{"offset":1,"key":null,"value":null}', "null_key", "id is null"),
    (compact(event("c", {"name": "x"})), "null_key", "id is null"),
    (compact(event("d", None, {"id": None})), "null_key", "id is null"),
    (compact(event("d")), "null_key", "id is null"),
    (compact(event("c", {"id": "x"})), "type_mismatch", 'id: "x" is no bigint'),
    (compact(event("d", None, {"id": True})), "type_mismatch", 'id: "true" is no bigint'),
    (compact(event("c", {"id": {"a": 1}})), "type_mismatch", 'id: "{"a":1}" is no bigint'),
    (
        compact(event("c", {"id": 1, "price": "1.005", "at": "noon"})),
        "type_mismatch",
        'price: "1.005" is no decimal(12,2); at: "noon" is no timestamp',
    ),
    ('{"op":"c","after":{"id":1,"price":0.%s1}}' % ("0" * 40), "type_mismatch", 'price: "1.0E-41" is no'),
    (compact(event("c", {"id": 1, "tags": "a"})), "type_mismatch", 'tags: "a" is no array<string>'),
    (compact(event("c", {"id": 1, "at": "2013-01-01T12:00:00"})), "bad_timestamp", "names no zone"),
    (compact(event("d", None, {"id": 1, "at": "noon"})), "bad_timestamp", 'at: "noon" is no timestamp'),
    (compact(event("c", {"id": 1}, source={"lsn": None})), "null_sequence", "lsn is null"),
    (compact(event("u", {"id": 1}, source=None)), "null_sequence", "lsn is null"),
    (compact(event("c", {"id": 1}, source={"lsn": "x"})), "type_mismatch", 'lsn: "x" is no bigint'),
]


@pytest.mark.bad_input(1)
@pytest.mark.bad_input(2)
@pytest.mark.bad_input(4)
@pytest.mark.bad_input(5)
def test_bad_line_is_quarantined_with_reason_and_text(spark: SparkSession) -> None:
    """Each gives one record that does nothing, says what is wrong, and keeps its text."""
    found = [only(rows) for rows in parse(spark, planes(), [line for line, _, _ in BAD_LINES])]

    for (line, reason, detail), row in zip(BAD_LINES, found, strict=True):
        assert (row[REASON], row[OP]) == (reason, None), line
        assert detail in row[DETAIL], line
        assert row[RAW] == (line if isinstance(line, str) else line.decode(errors="replace"))


def test_delete_that_has_nothing_but_its_key_stands_at_its_place(spark: SparkSession) -> None:
    """As a tombstone does: it has no row that could order it (HUDI-7610, hudi#5036); half an order is none."""
    spec = table("id int, version int, at timestamp", ["id"], "version int, at timestamp")
    lines = [
        event("d", None, {"id": 1}), record(event("d"), {"id": 1}), event("u", {"id": 1}),
        event("d", None, {"version": 2}),
        event("d", None, {"id": 1, "version": 2}), event("d", None, {"id": 1, "version": 2, "at": NOON_TEXT}),
    ]  # fmt: skip

    found = [only(rows) for rows in parse(spark, spec, lines)]

    assert [(row[OP], row[REASON]) for row in found] == [
        ("tombstone", None), ("tombstone", None), (None, "null_sequence"), (None, "null_key"), (None, "null_sequence"),
        ("delete", None),
    ]  # fmt: skip


def test_truncate_and_messages_need_no_sequence(spark: SparkSession) -> None:
    """Quarantine would hide that the source was emptied."""
    found = [
        only(rows) for rows in parse(spark, planes(), [event("t", source=None), event("m", source=None)])
    ]

    assert [(row[OP], row[REASON], row[SEQUENCE], row[DETAIL]) for row in found] == [
        ("truncate", None, None, None),
        ("ignored", None, None, "message"),
    ]


def test_last_of_equal_members_counts(spark: SparkSession) -> None:
    """JSON leaves it open; Spark's reader takes the last, as most do."""
    found = parse(spark, planes(), ['{"op":"d","op":"c","source":{"lsn":1},"after":{"id":1,"id":2}}'])

    assert (only(found[0])[OP], only(found[0])["id"]) == ("upsert", 2)


@pytest.mark.bad_input(31)
@pytest.mark.parametrize("key", ["payload", "Payload"])
def test_any_name_may_be_declared(spark: SparkSession, key: str) -> None:
    """Names with dots, quotes and backticks, and the envelope's own, are columns like others."""
    spec = table(
        f'{key} string, `a.b` int, `c``d` int, `e"f` decimal(20,2), op string, `value` string, after string',
        [key],
    )
    row = {key: "k", "a.b": 1, "c`d": 2, "op": "o", "value": "v", "after": "w"}
    text = compact(record(event("c", row), {key: "k"})).replace(
        '"op":"o"', '"e\\"f":123456789012345678.25,"op":"o"'
    )

    upsert, tombstone = (only(rows) for rows in parse(spark, spec, [text, record(None, {key: "k"})]))

    assert [*upsert][:7] == ["k", 1, 2, Decimal("123456789012345678.25"), "o", "v", "w"]
    assert (tombstone[OP], tombstone[key]) == ("tombstone", "k")


def test_context_line_makes_no_derived_record(spark: SparkSession) -> None:
    """The line before a range only tells what it does; its other half was counted in the batch before."""
    line = compact(event("u", {"id": 2}, {"id": 1}))
    frame = spark.createDataFrame([(line,)], "text STRING").select(
        F.lit(None).cast(POSITION_TYPE).alias(POSITION), F.lit(True).alias(CONTEXT), F.col("text").alias(RAW)
    )

    spec = planes()
    found = finish_records(take_apart(frame, spec, ParseOptions("debezium")), spec).collect()

    assert [(row[OP], row["id"], row[CONTEXT], row[DERIVED]) for row in found] == [("upsert", 2, True, False)]


def test_plan_parses_json_once_and_calls_no_python(spark: SparkSession) -> None:
    """One pass of Spark's own functions; only decimals may need a second look, row by row."""
    lines = spark.createDataFrame(
        [(None, False, "{}")],
        f"{POSITION} STRUCT<date DATE, file STRING, line BIGINT>, {CONTEXT} BOOLEAN, {RAW} STRING",
    )
    without_decimals = table("id bigint, name string, at timestamp", ["id"], "lsn bigint", "at")

    # an event is looked for in four places
    for spec, places in ((without_decimals, 4), (planes(), 8)):
        plan = executed_plan(finish_records(take_apart(lines, spec, ParseOptions("debezium")), spec))
        assert plan.count("(after,StructType(StructField(") == places
        assert plan.count('"iodebeziumop"') == 1
        assert "Python" not in plan
        assert "Exchange" not in plan


def executed_plan(frame: DataFrame) -> str:
    """The physical plan as text, whole."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
