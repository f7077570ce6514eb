"""Values whose event says how they are written: by the schema beside it, or in the value itself."""

import base64
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lakejoin.transforms.model.schemas import DETAIL, OP, REASON, UNAVAILABLE
from lakejoin.transforms.parsing.options import ParseOptions
from tests.transforms.parsing.test_debezium import compact, event, only, parse, table

pytestmark = pytest.mark.spark

CONNECT, TIME = "org.apache.kafka.connect.data", "io.debezium.time"
NOON = datetime(2024, 6, 15, 12, 34, 56, 123456)  # noqa: DTZ001 - as Spark's row holds it, in UTC
MICROS = 1718454896123456


def decimal(scale: int) -> dict[str, Any]:
    """The schema of a number of so many digits behind the point."""
    return {"type": "bytes", "name": f"{CONNECT}.Decimal", "version": 1, "parameters": {"scale": str(scale)}}


def named(name: str, kind: str = "int64") -> dict[str, Any]:
    """The schema of a value with a meaning of its own."""
    return {"type": kind, "name": name, "version": 1, "optional": True}


def with_schema(fields: Mapping[str, Mapping[str, Any]], value: Mapping[str, Any]) -> str:
    """An event beside the schema of its rows."""
    rows = [{"field": name, **said} for name, said in fields.items()]
    places = [{"field": place, "type": "struct", "fields": rows} for place in ("before", "after")]
    schema = {"type": "struct", "fields": [*places, {"field": "op", "type": "string"}], "name": "t.Envelope"}
    return compact({"schema": schema, "payload": value})


def read(
    spark: SparkSession, columns: str, fields: Mapping[str, Mapping[str, Any]], row: Mapping[str, Any]
) -> Row:
    """The record of an insert."""
    spec = table(f"id int, {columns}", ["id"], "lsn bigint")
    return only(parse(spark, spec, [with_schema(fields, event("c", {"id": 1, **row}))])[0])


@pytest.mark.parametrize("text", ["MDk=", "1234", "12E3", "2000", "AfQ=", "/w==", "gAA="])
def test_base64_of_a_number_is_never_its_digits(spark: SparkSession, text: str) -> None:
    """Texts that are base64 and numbers, read as decimals, doubles, whole numbers and text (risingwave#10628)."""
    number = int.from_bytes(base64.b64decode(text), signed=True)
    fields = {name: decimal(2) for name in "abt"} | {"n": decimal(0)}

    row = read(spark, "a decimal(12,2), b double, t string, n bigint", fields, dict.fromkeys("abtn", text))

    assert row[REASON] is None
    assert (row["a"], row["b"]) == (Decimal(number) / 100, number / 100)
    assert (row["t"], row["n"]) == (str(Decimal(number).scaleb(-2)), number)


def test_scales_of_numbers(spark: SparkSession) -> None:
    """Zero, more than there are digits, below zero; a scale of its own; 38 digits, and one more."""
    many = base64.b64encode((10**38 - 1).to_bytes(16)).decode()
    fields = {
        "a": decimal(4),
        "b": decimal(-3),
        "c": decimal(0),
        "v": named("io.debezium.data.VariableScaleDecimal"),
    }
    row = {"a": "BQ==", "b": "BQ==", "c": many, "v": {"scale": 3, "value": "MDk="}}
    columns = "a decimal(12,4), b decimal(12,2), c decimal(38,0), v decimal(12,3)"

    found = read(spark, columns, fields, row)
    too_long = base64.b64encode((10**38).to_bytes(16)).decode()
    refused = read(spark, columns, fields, {"c": too_long})
    rounded = read(spark, "a decimal(12,2)", {"a": decimal(4)}, {"a": "BQ=="})

    assert [found[name] for name in "abcv"] == [Decimal("0.0005"), 5000, 10**38 - 1, Decimal("12.345")]
    assert (refused[REASON], refused[DETAIL]) == (
        "type_mismatch",
        f'c: "base64 {too_long}" is no decimal(38,0)',
    )
    assert (rounded[REASON], rounded[DETAIL]) == ("type_mismatch", 'a: "0.0005" is no decimal(12,2)')


def test_number_with_its_own_scale_needs_no_schema(spark: SparkSession) -> None:
    """As Oracle's NUMBER comes, with one event beside it that has a plain number."""
    spec = table("ID bigint, AMOUNT decimal(12,2)", ["ID"], "lsn bigint")
    lines = [
        event("c", {"ID": 1.0, "AMOUNT": {"scale": 2, "value": "AfQ="}}),
        event("c", {"ID": 2, "AMOUNT": 5}),
    ]

    found = [only(rows) for rows in parse(spark, spec, lines)]

    assert [(row["ID"], row["AMOUNT"], row[REASON]) for row in found] == [(1, 5, None), (2, 5, None)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{TIME}.Timestamp", MICROS // 1000), (f"{CONNECT}.Timestamp", MICROS // 1000),
        (f"{TIME}.MicroTimestamp", MICROS), (f"{TIME}.NanoTimestamp", MICROS * 1000 + 999),
    ],
)  # fmt: skip
def test_time_has_the_unit_of_its_schema(spark: SparkSession, name: str, value: int) -> None:
    """In a column with a zone and in one without, in a list, whatever unit the source declares (debezium/dbz#2187)."""
    fields = dict.fromkeys("ab", named(name)) | {"l": {"type": "array", "items": named(name)}}
    spec = table("id int, a timestamp, b timestamp_ntz, l array<timestamp>", ["id"], "lsn bigint")
    line = with_schema(fields, event("c", {"id": 1, "a": value, "b": value, "l": [value, None]}))
    expected = NOON if value > MICROS // 1000 else NOON.replace(microsecond=123000)

    for options in (ParseOptions("debezium"), ParseOptions("debezium", time="nanos")):
        row = only(parse(spark, spec, [line], options)[0])
        assert (row[REASON], row["a"], row["b"], row["l"]) == (None, expected, expected, [expected, None])


def test_times_and_dates_of_one_row(spark: SparkSession) -> None:
    """MySQL's `datetime` beside `datetime(6)`; dates in days, and in milliseconds (Oracle); text as it is."""
    midnight = 1718409600000
    fields = {
        "a": named(f"{TIME}.Timestamp"), "b": named(f"{TIME}.MicroTimestamp"), "d": named(f"{TIME}.Date", "int32"),
        "e": named(f"{TIME}.Timestamp"), "f": named(f"{TIME}.Date", "int32"), "n": {"type": "int64"},
        "z": named(f"{TIME}.ZonedTimestamp", "string"), "i": named(f"{TIME}.IsoTimestamp", "string"),
    }  # fmt: skip
    row = {
        "a": MICROS // 1000, "b": MICROS, "d": 19889, "e": midnight, "f": 19889, "z": "2024-06-15T12:34:56.123456Z",
        "i": "2024-06-15T12:34:56.123456Z", "n": MICROS,
    }  # fmt: skip
    columns = (
        "a timestamp, b timestamp, d date, e date, f timestamp, z timestamp, i timestamp_ntz, n timestamp"
    )

    found = read(spark, columns, fields, row)
    refused = read(
        spark, "e date, c timestamp, z timestamp_ntz", fields | {"c": named(f"{TIME}.MicroTime")},
        {"e": midnight + 1, "c": 5, "z": row["z"]},
    )  # fmt: skip

    assert (found[REASON], found["a"], found["b"]) == (None, NOON.replace(microsecond=123000), NOON)
    assert (found["d"], found["e"]) == (date(2024, 6, 15), date(2024, 6, 15))
    assert found["f"] == NOON.replace(hour=0, minute=0, second=0, microsecond=0)
    assert (found["z"], found["i"], found["n"]) == (NOON, NOON, NOON)
    assert refused[DETAIL] == (
        'e: "2024-06-15 00:00:00.001" is no date; '
        'c: "5 of a day" is no timestamp, or names no zone while `source.timezone` is not set; '
        'z: "2024-06-15T12:34:56.123456Z of a zone" is no timestamp_ntz'
    )


def test_schema_goes_before_what_is_declared(spark: SparkSession) -> None:
    """What a column says of its encoding is for events without a schema."""
    spec = table("id int, a decimal(12,2), b binary", ["id"], "lsn bigint")
    options = ParseOptions("debezium", encodings={"a": "precise", "b": "hex"})
    row = {"id": 1, "a": "1234", "b": "beef"}
    binary = {"a": decimal(2), "b": {"type": "bytes"}}
    lines = [
        with_schema(binary, event("c", row)),
        with_schema({"a": {"type": "string"}}, event("c", row)),
        event("c", row),
    ]

    found = [only(rows) for rows in parse(spark, spec, lines, options)]

    number = Decimal(int.from_bytes(base64.b64decode("1234"), signed=True)) / 100
    assert [row["a"] for row in found] == [number, 1234, number]
    assert [bytes(row["b"]) for row in found] == [base64.b64decode("beef"), b"\xbe\xef", b"\xbe\xef"]


def test_keys_go_by_the_schema(spark: SparkSession) -> None:
    """After a change, before it, and in a delete."""
    spec = table("id decimal(12,2), name string", ["id"], "lsn bigint")
    fields = {"id": decimal(2), "name": {"type": "string"}}
    lines = [
        with_schema(fields, event("u", {"id": "1234"}, {"id": "1234"})),
        with_schema(fields, event("u", {"id": "1234"}, {"id": "2000"})),
        with_schema(fields, event("d", None, {"id": "2000"})),
    ]
    one, other = (
        Decimal(int.from_bytes(base64.b64decode(text), signed=True)) / 100 for text in ("1234", "2000")
    )

    same, moved, deleted = parse(spark, spec, lines)

    assert [(row[OP], row["id"]) for row in same] == [("upsert", one)]
    assert [(row[OP], row["id"]) for row in moved] == [("upsert", one), ("delete", other)]
    assert [(row[OP], row["id"]) for row in deleted] == [("delete", other)]


def test_mongodb_s_documents_are_read(spark: SparkSession) -> None:
    """Rows are text, values say their type, and the record's key calls `_id` otherwise (risingwave#9243)."""
    columns = "_id string, name string, n bigint, price decimal(12,2), at timestamp, day date, photo binary"
    spec = table(f"{columns}, tags string", ["_id"], "ts_ms bigint")
    document = {
        "_id": {"$oid": "596e275826f08b2730779e1f"}, "name": "Anne \"A\" {$", "n": {"$numberLong": "9007199254740993"},
        "price": {"$numberDecimal": "1.10"}, "at": {"$date": MICROS // 1000}, "photo": {"$binary": {"base64": "3q0="}},
        "day": {"$date": {"$numberLong": "1718409600000"}}, "tags": {"$a": 1},
    }  # fmt: skip
    key = {"id": compact({"$oid": "596e275826f08b2730779e1f"})}
    in_text = {**document, "at": {"$date": "2024-06-15T12:34:56.123Z"}}
    lines = [
        event("c", json_text(document)), event("u", json_text(in_text)),
        {"key": key, "value": event("d")}, {"key": {"id": "7"}, "value": None},
    ]  # fmt: skip

    found = [only(rows) for rows in parse(spark, spec, lines)]

    for row in found[:2]:
        assert (row[REASON], row[DETAIL]) == (None, None)
        assert (row["_id"], row["name"], row["n"]) == (
            "596e275826f08b2730779e1f",
            'Anne "A" {$',
            9007199254740993,
        )
        assert (row["price"], row["at"]) == (Decimal("1.10"), NOON.replace(microsecond=123000))
        assert (row["day"], bytes(row["photo"]), row["tags"]) == (date(2024, 6, 15), b"\xde\xad", '{"$a":1}')
    assert [(row[OP], row["_id"]) for row in found[2:]] == [
        ("delete", "596e275826f08b2730779e1f"),
        ("tombstone", "7"),
    ]


def test_mongodb_s_update_without_its_document_keeps_what_it_does_not_name(spark: SparkSession) -> None:
    """It names what it set and what it removed; what became of a part of a field, nobody knows (airbyte#32165)."""
    spec = table(
        "_id string, name string, price decimal(12,2), tags string, city string", ["_id"], "ts_ms bigint"
    )
    key = {"id": compact({"$oid": "59"})}

    def update(
        updated: object, removed: object = None, truncated: object = None, after: object = None
    ) -> object:
        fields = None if updated is None else json_text(updated)
        said = {"removedFields": removed, "updatedFields": fields, "truncatedArrays": truncated}
        return {"key": key, "value": {**event("u", after), "updateDescription": said}}

    lines = [
        update({"name": 'Bo "{"', "price": {"$numberDecimal": "1.10"}}),
        update({"city": None}, ["tags", "other"]),
        {"key": key, "value": {"schema": None, "payload": update({"name": "Cy"})["value"]}},
        update({"note.x": 1}, truncated=[{"field": "others", "newSize": 1}]),
        update({"name": "Di"}, after=json_text({"_id": {"$oid": "59"}, "name": "Di"})),
        update({"tags.0": "a", "name": "Ed"}), update({}, ["city.zip"]),
        update(None, truncated=[{"field": "tags", "newSize": 1}]),
    ]  # fmt: skip

    found = [only(rows) for rows in parse(spark, spec, lines)]

    shown = [
        (row["_id"], row["name"], row["price"], row["tags"], row[UNAVAILABLE])
        for row in found[:5]
        if (row[OP], row[REASON], row[DETAIL]) == ("upsert", None, None)
    ]
    assert shown == [
        ("59", 'Bo "{"', Decimal("1.10"), None, ["tags", "city"]),
        ("59", None, None, None, ["name", "price"]),
        ("59", "Cy", None, None, ["price", "tags", "city"]),
        ("59", None, None, None, ["name", "price", "tags", "city"]),
        ("59", "Di", None, None, None),
    ]
    told = [(row[REASON], row[DETAIL].partition(";")[0]) for row in found[5:]]
    changed = "says of an update only that it changed"
    assert told == [("parse_error", f"{changed} {part}") for part in ("tags.0", "city.zip", "tags")]


def json_text(document: object) -> str:
    """A row as MongoDB's connector has it, with spaces."""
    return compact(document).replace(":", ": ", 1)
