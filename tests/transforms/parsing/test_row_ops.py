"""Rows of other tools, by presets and as one declares them: what each does, and where its columns are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DERIVED,
    DETAIL,
    OP,
    POSITION,
    POSITION_TYPE,
    REASON,
    SEQUENCE,
    UNAVAILABLE,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.flat_rows import take_rows_apart
from lakejoin.transforms.parsing.json_rows import take_apart
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.row_ops import PRESETS, Preset, RowOp, parts_of, tree_of
from lakejoin.transforms.parsing.validation import finish_records
from tests.transforms.parsing.lines import numbered
from tests.transforms.parsing.test_connect_schema import decimal

pytestmark = pytest.mark.spark


def customers(columns: str = "", written: Mapping[str, str] | None = None) -> TableSpec:
    """A table of a key and a name, with more columns."""
    declared = StructType.fromDDL(f"id int, name string{columns and ', '}{columns}")
    return TableSpec("customers", declared, ("id",), POSITION_TYPE, written=written or {})


def parse(
    spark: SparkSession, said: RowOp, lines: Sequence[object], table: TableSpec | None = None, **options: Any
) -> list[list[Row]]:
    """The records of each line; an object stands for its JSON."""
    spec = table or customers()
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    read_as = ParseOptions("jsonl", row_op=said, **options)
    records = finish_records(take_apart(numbered(spark, texts), spec, read_as), spec)
    found: list[list[Row]] = [[] for _ in lines]
    for row in sorted(records.collect(), key=lambda row: row[DERIVED]):
        found[row[POSITION]["line"] - 1].append(row)
    return found


def told(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """What the records of a line do, to which key, with which name; of one that is ignored, what it is."""
    return [
        (row[OP], row["id"], row["name"], *([row[DETAIL]] if row[OP] == "ignored" else [])) for row in rows
    ]


ANN = {"id": 1, "name": "ann"}
LINES: dict[Preset, list[tuple[object, list[tuple[Any, ...]]]]] = {
    "debezium-unwrapped": [
        ({**ANN, "__op": "c", "__deleted": "false", "__lsn": 1}, [("upsert", 1, "ann")]),
        ({**ANN, "__op": "u"}, [("upsert", 1, "ann")]),
        (ANN, [("upsert", 1, "ann")]),
        ({**ANN, "__deleted": "true", "__op": "d"}, [("delete", 1, None)]),
        ({"id": 1, "name": None, "__deleted": "true"}, [("delete", 1, None)]),
        ({**ANN, "__op": "d"}, [("delete", 1, None)]),
        ({"schema": {"type": "struct"}, "payload": {**ANN, "__op": "c"}}, [("upsert", 1, "ann")]),
        ({"payload": {**ANN, "__deleted": "true"}, "schema": {"fields": [{"field": "}"}]}}, [("delete", 1, None)]),
        ({**ANN, "payload": {"id": 7}, "__op": "c"}, [("upsert", 1, "ann")]),
        ("null", [("ignored", None, None, "tombstone")]),
        ("", [("ignored", None, None, "empty")]),
        (json.dumps(json.dumps(ANN)), [("upsert", 1, "ann")]),
        (f"[{json.dumps(ANN)}]", [("upsert", 1, "ann")]),
    ],
    "dms": [
        ({"Op": "I", **ANN}, [("upsert", 1, "ann")]),
        ({"Op": "U", **ANN}, [("upsert", 1, "ann")]),
        ({"Op": "D", **ANN}, [("delete", 1, None)]),
        (ANN, [("upsert", 1, "ann")]),
        ({"Op": "", **ANN}, [("upsert", 1, "ann")]),
    ],
    "maxwell": [
        ({"database": "shop", "table": "c", "type": "insert", "ts": 1, "xid": 2, "data": ANN}, [("upsert", 1, "ann")]),
        ({"type": "update", "data": ANN, "old": {"name": "an"}}, [("upsert", 1, "ann")]),
        ({"type": "update", "data": ANN, "old": {"id": 7}}, [("upsert", 1, "ann"), ("delete", 7, None)]),
        ({"type": "delete", "data": ANN}, [("delete", 1, None)]),
        ({"type": "bootstrap-insert", "data": ANN}, [("upsert", 1, "ann")]),
        ({"type": "bootstrap-start", "data": {}}, [("ignored", None, None, "other")]),
        ({"type": "table-alter", "old": {}, "def": {}, "sql": "alter"}, [("ignored", None, None, "schema_change")]),
    ],
    "canal": [
        ({"data": [ANN], "database": "shop", "es": 1, "isDdl": False, "old": None, "pkNames": ["id"], "sql": "",
          "sqlType": {"id": 4}, "table": "c", "ts": 2, "type": "INSERT"}, [("upsert", 1, "ann")]),
        ({"type": "UPDATE", "data": [ANN], "old": [{"name": "an"}]}, [("upsert", 1, "ann")]),
        ({"old": [{"id": "7"}], "data": [{"id": "1", "name": 'an"]['}], "type": "UPDATE"},
         [("upsert", 1, 'an"]['), ("delete", 7, None)]),
        ({"type": "DELETE", "data": [ANN], "old": None}, [("delete", 1, None)]),
        ({"data": None, "isDdl": True, "sql": "ALTER", "type": "ALTER"}, [("ignored", None, None, "schema_change")]),
    ],
    "goldengate": [
        ({"table": "S.C", "op_type": "I", "pos": "1", "after": ANN}, [("upsert", 1, "ann")]),
        ({"op_type": "U", "before": ANN, "after": {**ANN, "name": "a"}}, [("upsert", 1, "a")]),
        ({"op_type": "U", "before": {"id": 7}, "after": ANN}, [("upsert", 1, "ann"), ("delete", 7, None)]),
        ({"op_type": "D", "before": ANN}, [("delete", 1, None)]),
    ],
    "airbyte": [
        ({**ANN, "_ab_cdc_lsn": 1, "_ab_cdc_deleted_at": None}, [("upsert", 1, "ann")]),
        (ANN, [("upsert", 1, "ann")]),
        ({**ANN, "_ab_cdc_deleted_at": "2024-06-15T12:00:00Z"}, [("delete", 1, None)]),
    ],
    "fivetran": [
        ({**ANN, "_fivetran_deleted": False}, [("upsert", 1, "ann")]),
        (ANN, [("upsert", 1, "ann")]),
        ({**ANN, "_fivetran_deleted": True}, [("delete", 1, None)]),
    ],
    "datastream": [
        ({"source_metadata": {"table": "c", "change_type": "INSERT"}, "payload": ANN}, [("upsert", 1, "ann")]),
        ({"source_metadata": {"change_type": "UPDATE-INSERT"}, "payload": ANN}, [("upsert", 1, "ann")]),
        ({"source_metadata": {"change_type": "UPDATE-DELETE"}, "payload": ANN}, [("delete", 1, None)]),
        ({"source_metadata": {"change_type": "DELETE"}, "payload": ANN}, [("delete", 1, None)]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("preset", get_args(Preset))
def test_rows_of_a_tool_are_read_by_its_preset(spark: SparkSession, preset: Preset) -> None:
    """Paimon#1591, FLINK-24745, risingwave#6541, materialize#19643: lines as each tool documents them."""
    cases = LINES[preset]

    found = parse(spark, PRESETS[preset], [line for line, _ in cases])

    for (line, expected), rows in zip(cases, found, strict=True):
        assert [row[REASON] for row in rows] == [None] * len(expected), (line, rows)
        assert told(rows) == expected, line


def test_every_preset_is_one_that_can_be_declared() -> None:
    """The names that the configuration takes are those of the presets."""
    assert get_args(Preset) == tuple(PRESETS)


@pytest.mark.parametrize(
    ("said", "line", "detail"),
    [
        (PRESETS["dms"], {"Op": "X", **ANN}, 'Op "X"; expected I, U or D'),
        (PRESETS["maxwell"], {"data": ANN}, "no column `type`, or null in it; expected insert, update,"),
        (
            PRESETS["canal"],
            {"type": "TRUNCATE", "isDdl": True},
            'type "TRUNCATE"; expected INSERT, UPDATE, DELETE,',
        ),
        (PRESETS["goldengate"], {"op_type": "T"}, 'op_type "T"; expected I, U or D'),
        (PRESETS["debezium-unwrapped"], {"__op": "t"}, '__op "t"; expected c, r, u or d'),
        (RowOp("kind", ("new",), ("old",), insert=()), {"kind": "d", **ANN}, 'kind "d"; expected new or old'),
        (RowOp("kind", ("new",), ("old",), insert=()), ANN, "no column `kind`, or null in it"),
    ],
)
def test_value_that_is_not_listed_is_no_operation(
    spark: SparkSession, said: RowOp, line: object, detail: str
) -> None:
    """Not even where a missing one has a default: an unknown operation is never taken for an upsert."""
    [[row]] = parse(spark, said, [line])

    assert (row[REASON], row[OP]) == ("unknown_op", None)
    assert detail in row[DETAIL]


def test_rows_of_a_statement_in_one_record_are_told(spark: SparkSession) -> None:
    """Canal#4091, canal#3003: on a line of its own the record is one, and none of its rows is read alone."""
    [[row]] = parse(spark, PRESETS["canal"], [{"type": "INSERT", "data": [ANN, {"id": 2}], "old": None}])

    assert row[REASON] == "parse_error"
    assert 'has no object in `data`: "[{"id":1,' in row[DETAIL]
    assert "`one_per_line: false`" in row[DETAIL]


def test_columns_lie_deep_within_a_row_or_beside_it(spark: SparkSession) -> None:
    """A path of names from the row down, or from the record down; backquotes keep a dot in a name."""
    written = {"name": "who.name", "xid": "$.xid", "city": "`a.b`.city", "price": "who.price"}
    spec = customers("xid bigint, city string, price decimal(20,2)", written)
    data = '{"id":1,"who":{"name":"ann","price":12345678901234567.10},"a.b":{"city":"Oslo"},"xid":5}'
    lines = [f'{{"type":"insert","xid":7,"data":{data}}}', '{"type":"insert","data":{"id":2,"who":null}}']

    [[full], [empty]] = parse(spark, PRESETS["maxwell"], lines, spec)

    assert [full[name] for name in ("id", "name", "xid", "city", "price")] == [
        1, "ann", 7, "Oslo", Decimal("12345678901234567.10"),
    ]  # fmt: skip
    assert [empty[name] for name in ("id", "name", "xid", "city", "price")] == [2, None, None, None, None]


def test_schema_beside_an_unwrapped_row_says_how_values_are_written(spark: SparkSession) -> None:
    """As beside an event: base64 that looks like digits, in the row and in its key."""
    spec = TableSpec("t", StructType.fromDDL("id decimal(12,2), v decimal(12,2)"), ("id",), POSITION_TYPE)
    fields = [{"field": name, **decimal(2)} for name in ("id", "v")]
    payload = {"id": "MDk=", "v": "1234", "__op": "c"}
    lines = [{"schema": {"fields": fields}, "payload": payload}, {"id": "1", "v": "1234"}]

    [[known], [plain]] = parse(spark, PRESETS["debezium-unwrapped"], lines, spec)

    assert (known["id"], known["v"]) == (Decimal("123.45"), Decimal(0xD76DF8 - 0x1000000) / 100)
    assert (plain["id"], plain["v"]) == (1, 1234)


def test_update_keeps_what_it_has_no_member_for(spark: SparkSession) -> None:
    """Of the values that upsert, those of inserts bring whole rows; what a user lists may all be parts."""
    lines = [{"type": "update", "data": {"id": 1}}, {"type": "insert", "data": {"id": 1}}]
    own = [{"kind": "new", "id": 1}, {"kind": "new", "id": 1, "name": None}]

    found = parse(spark, PRESETS["maxwell"], lines, absent="keep")
    found += parse(spark, RowOp("kind", ("new",), ("old",), insert=()), own, absent="keep")

    assert [row[UNAVAILABLE] for [row] in found] == [["name"], None, ["name"], None]


def test_records_of_other_tables_are_ignored(spark: SparkSession) -> None:
    """By the name of the table, or with its database; a record that names none is one of the table."""
    lines = [
        {"database": "shop", "table": "c", "type": "insert", "data": ANN},
        {"database": "shop", "table": "o", "type": "insert", "data": {"id": "x"}},
        {"type": "delete", "data": ANN},
        '{"database":"shop","table":"o","type":"insert","data":',
    ]

    for tables in (["c"], ["shop.c"], ["*.c"]):
        found = parse(spark, PRESETS["maxwell"], lines, tables=tables)
        assert [row[OP] for [row] in found] == ["upsert", "ignored", "delete", None]
        assert [row[DETAIL] for [row] in found[:3]] == [None, "other_table", None]
        assert found[3][0][REASON] == "parse_error"


def test_typed_rows_go_by_the_same_presets(spark: SparkSession) -> None:
    """DMS in Parquet and CSV: a full load has no column `Op`."""
    values = [("D", 1, "ann"), ("I", 2, "bob"), (None, 3, "cat"), ("x", 4, "")]
    frame = spark.createDataFrame(values, "o STRING, i INT, n STRING")
    date, line = F.lit(None).cast("date").alias("date"), F.col("i").cast("bigint").alias("line")
    position = F.struct(date, F.lit("x").alias("file"), line)
    rows = frame.select(position.alias(POSITION), F.lit(False).alias(CONTEXT), "*")
    columns = {name: (F.col(column), dtype) for name, column, dtype in (("name", "n", StringType()),)}
    columns["id"] = (F.col("i"), frame.schema["i"].dataType)
    spec, options = customers(), ParseOptions("csv", row_op=PRESETS["dms"])

    def read(with_op: bool) -> list[tuple[Any, ...]]:
        of = columns | ({"Op": (F.col("o"), StringType())} if with_op else {})
        parts = take_rows_apart(rows, spec, options, of, F.col("n"))
        found = sorted(finish_records(parts, spec).collect(), key=lambda row: row[POSITION])
        return [(row[OP], row["name"]) for row in found]

    assert read(True) == [("delete", None), ("upsert", "bob"), ("upsert", "cat"), (None, None)]
    assert read(False) == [("upsert", "ann"), ("upsert", "bob"), ("upsert", "cat"), ("upsert", "")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", (False, ("a",))), ("a.b", (False, ("a", "b"))), ("$.a.b", (True, ("a", "b"))),
        ("`a.b`.c", (False, ("a.b", "c"))), ("$.", (True, ("",))), ("a..b", (False, ("a", "", "b"))),
    ],
)  # fmt: skip
def test_path_is_taken_apart(text: str, expected: tuple[bool, tuple[str, ...]]) -> None:
    """At its dots, but for those between backquotes."""
    assert parts_of(text) == expected


def test_path_that_goes_on_behind_another_is_refused() -> None:
    """A member is a text or an object."""
    assert (
        tree_of([("a", "b"), ("a", "c"), ("a", "b")]).simpleString() == "struct<a:struct<b:string,c:string>>"
    )
    with pytest.raises(ValueError, match="'a' is read as text, and 'b' within it"):
        tree_of([("a",), ("a", "b")])


def test_unwrapped_row_with_a_stand_in_leaves_its_value_as_it_was(spark: SparkSession) -> None:
    """ExtractNewRecordState keeps what PostgreSQL's connector writes for a value out of line that did not change."""
    table = customers("raw binary, numbers array<int>, words array<string>")
    placeholder = "__debezium_unavailable_value"
    row = {
        "id": 1, "name": placeholder, "raw": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        "numbers": [*placeholder.encode()], "words": [placeholder], "__op": "u",
    }  # fmt: skip
    whole = {"id": 1, "name": "ann", "raw": "AA==", "numbers": [1], "words": [], "__op": "u"}

    for absent in (None, "keep"):
        (stand_in,), (plain,) = parse(
            spark, PRESETS["debezium-unwrapped"], [row, whole], table, absent=absent
        )
        assert stand_in[UNAVAILABLE] == ["name", "raw", "numbers", "words"]
        assert [stand_in[name] for name in stand_in[UNAVAILABLE]] == [None] * 4
        assert (plain[UNAVAILABLE], plain["name"], plain["numbers"]) == (None, "ann", [1])


def test_read_of_an_incremental_snapshot_is_older_than_every_change_if_declared(spark: SparkSession) -> None:
    """It has no place in the log, and its column stays null; what has none otherwise is no row for anybody."""
    declared = StructType.fromDDL("id int, name string, __lsn bigint")
    table = replace(customers(), columns=declared, sequence=StructType.fromDDL("__lsn bigint"))
    lines = [
        {**ANN, "__op": "r", "__lsn": None},
        {**ANN, "__op": "r", "__lsn": 7},
        {**ANN, "__op": "u", "__lsn": None},
        {**ANN, "__op": "r", "__lsn": "seven"},
        {"id": 1, "__op": "d", "__deleted": "true", "__lsn": None},
    ]

    def found(**options: Any) -> list[tuple[Any, ...]]:
        rows = [row for (row,) in parse(spark, PRESETS["debezium-unwrapped"], lines, table, **options)]
        return [(row[OP], row["__lsn"], row[SEQUENCE] and row[SEQUENCE][0], row[DETAIL]) for row in rows]

    first, *others = found(snapshots="oldest")
    assert first == ("upsert", None, 0, None)
    assert others == [
        ("upsert", 7, 7, None),
        (None, None, None, "__lsn is null"),
        (None, None, None, '__lsn: "seven" is no bigint'),
        ("tombstone", None, None, None),
    ]
    for said in (None, "in_order"):
        assert found(snapshots=said) == [(None, None, None, "__lsn is null"), *others]
