"""What is proposed for samples, without files and without Spark."""

from typing import Any

import pytest

from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.proposals.joins import Join
from lakejoin.orchestration.proposals.keys import singular
from lakejoin.orchestration.proposals.names import column_name, table_name
from lakejoin.orchestration.proposals.yaml_text import flow, template, text_of
from sample_files import event, proposed

ORDERS = [
    {"op": "c", "id": n, "customer_id": n % 3 + 1, "updated_at": f"2026-11-0{n}T00:00:00Z"}
    for n in range(1, 7)
]
CUSTOMERS = [{"op": "c", "id": n, "name": f"n{n}"} for n in range(1, 4)]


def declared(files: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of a proposal by their names, once its text has been found valid."""
    found = proposed(files)
    load_text(text_of(found, "# editor", "shop"), "lakejoin.yaml")
    return {table.name: table for table in found.tables}


def test_plain_rows_have_key_order_and_join() -> None:
    """The key is unique and named so, the order has a name, the join is that of a name and values."""
    found = proposed({"orders/2026-11-01.jsonl": ORDERS, "customers.jsonl": CUSTOMERS})

    customers, orders = found.tables
    assert (orders.source, orders.key, orders.sequence) == (
        {"format": "jsonl", "path": "orders/{date}.jsonl"},
        ("id",),
        ("updated_at",),
    )
    assert {name: column.type for name, column in orders.columns.items()} == {
        "id": "bigint", "customer_id": "bigint", "updated_at": "timestamp",
    }  # fmt: skip
    assert (customers.key, customers.sequence) == (("id",), ())
    (join,) = found.joins
    assert (join.left, join.right, join.foreign_key, join.name) == (
        "orders", "customers", ("customer_id",), "orders_with_customers",
    )  # fmt: skip
    assert join.note == ("3 of 3 values of orders.customer_id in the sample (100%) are keys of customers")
    text = text_of(found, "# editor", "shop")
    assert "guessed by its name" in text
    assert f"# {join.note}\n" in text
    assert load_text(text, "lakejoin.yaml").joins.keys() == {"orders_with_customers"}


def test_events_of_several_tables_in_one_dump_are_a_table_each() -> None:
    """Each reads its own events, and is called as the database calls it."""
    events = [event("orders", {"id": 1, "customer_id": 1}), event("customers", {"id": 1, "name": "ann"})]
    dump = [
        {"topic": "t", "partition": 0, "offset": n, "key": {"id": 1}, "payload": e}
        for n, e in enumerate(events)
    ]

    tables = declared({"dump.jsonl": dump})

    assert {name: table.source["tables"] for name, table in tables.items()} == {
        "orders": ["public.orders"], "customers": ["public.customers"],
    }  # fmt: skip
    assert {(table.key, table.sequence) for table in tables.values()} == {(("id",), "source")}


def test_times_of_one_unit_are_said_once() -> None:
    """Of several units each column says its own, micros among them; microseconds are the default."""
    millis, micros = 1793520000000, 1793520000000000

    def one(**values: int) -> Any:
        return declared({"a.jsonl": [event("a", {"id": n, **values}) for n in (1, 2)]})["a"]

    assert one(at=millis).source["time"] == "millis"
    assert "time" not in one(at=micros).source
    assert one(at=millis).columns["at"].encoding is None
    both = one(at=millis, then=micros)
    assert ("time" in both.source, both.columns["at"].encoding, both.columns["then"].encoding) == (
        False, "millis", "micros",
    )  # fmt: skip


def test_full_load_and_changes_of_dms_are_one_table() -> None:
    """Whatever their names, and although the load has no column that says what happened."""
    load = [{"id": "1", "changed": "2026-11-27 08:00:00"}, {"id": "2", "changed": "2026-11-27 08:00:00"}]
    changes = [
        {"Op": "U", "id": "1", "changed": "2026-11-27 09:14:02"},
        {"Op": "D", "id": "2", "changed": "2026-11-27 09:15:02"},
    ]

    both = declared({"dms/people/LOAD00000001.csv": load, "dms/people/20261127-091500000.csv": changes})
    alone = declared({"dms/people/LOAD00000001.csv": load})

    for tables in (both, alone):
        assert tables["people"].source == {
            "format": "csv",
            "path": "dms/people/*.csv",
            "op": "dms",
            "timezone": "UTC",
        }
        assert (tables["people"].key, tables["people"].sequence, list(tables["people"].columns)) == (
            ("id",), ("changed",), ["id", "changed"],
        )  # fmt: skip


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"dms/people/LOAD00000001.csv": [{"id": "1"}, {"id": "2"}]}, "nothing orders its changes"),
        ({"a.jsonl": [{"op": "c", "n": 1.5}, {"op": "c", "n": 1.5}]}, "no column is unique"),
        ({"a.jsonl": [event("a", None, "d")]}, "no record of the sample has a row"),
        (
            {"in/eu.csv": [{"id": "1"}], "in/us.csv": [{"id": "1"}], "in/a/x.jsonl": [{"op": "c", "id": 1}]},
            "",
        ),
    ],
)
def test_what_misses_something_is_left_out_with_the_reason(files: dict[str, Any], reason: str) -> None:
    """Nothing is declared that would be wrong or refused."""
    found = proposed(files)

    if reason:
        assert found.tables == []
        assert reason in " ".join(found.left_out)
    else:
        assert (len(found.tables), found.left_out) == (3, [])


@pytest.mark.parametrize(
    ("row", "op"),
    [
        ({"__op": "c", "__deleted": "false", "id": 1, "__lsn": 5}, "debezium-unwrapped"),
        ({"type": "insert", "database": "shop", "table": "c", "ts": 1, "data": {"id": 1}}, "maxwell"),
        ({"type": "INSERT", "database": "shop", "table": "c", "data": [{"id": "1"}], "isDdl": False}, "canal"),
        ({"op_type": "I", "table": "SHOP.C", "pos": "001", "after": {"id": 1}}, "goldengate"),
        ({"_ab_cdc_deleted_at": None, "_ab_cdc_lsn": 5, "id": 1}, "airbyte"),
        ({"_fivetran_deleted": False, "_fivetran_synced": "2026-11-27 08:00:00", "id": 1}, "fivetran"),
        (
            {"source_metadata": {"change_type": "INSERT", "schema": "s", "table": "c"}, "payload": {"id": 1},
             "source_timestamp": "2026-11-27T08:00:00", "read_timestamp": "2026-11-27T08:00:00"},
            "datastream",
        ),
        ({"op": "c", "id": 1}, None),
        ({"id": 1}, {"column": "op", "default": "upsert"}),
        ({"op": "buy", "id": 1}, {"column": "_op", "default": "upsert"}),
    ],
)  # fmt: skip
def test_op_is_told_by_the_rows(row: dict[str, Any], op: Any) -> None:
    """Those of known tools are their presets; the file is valid and knows the row's id."""
    (table,) = declared({"c.jsonl": [row]}).values()

    assert table.source.get("op") == op
    assert table.key == ("id",)
    assert table.columns["id"].type == "bigint"


def test_updates_that_bring_a_part_keep_the_rest() -> None:
    """An insert that lacks a column says nothing."""
    whole, part = {"op": "c", "id": 1, "a": 1}, {"op": "u", "id": 1}

    assert declared({"a.jsonl": [whole, part]})["a"].source["absent"] == "keep"
    assert "absent" not in declared({"a.jsonl": [whole, {**part, "op": "c", "id": 2}]})["a"].source


def test_files_are_read_by_number_where_names_would_order_them_otherwise() -> None:
    """Only where nothing else orders their changes."""
    files = {f"a_{n}.jsonl": [{"op": "c", "id": n}] for n in (9, 10)}

    assert declared(files)["a"].source["file_order"] == "number"
    ordered = {name: [{**rows[0], "version": 1}] for name, rows in files.items()}
    assert "file_order" not in declared(ordered)["a"].source


def test_key_of_two_columns_is_found() -> None:
    """No column is unique alone; a table that has both refers to it by both."""
    lines = [{"op": "c", "order_id": n // 2, "line_no": n % 2, "sku": "x"} for n in range(4)]
    parcels = [{"op": "c", "parcel_id": n, "order_id": n // 2, "line_no": n % 2} for n in range(4)]

    found = proposed({"lines.jsonl": lines, "parcels.jsonl": parcels})

    assert {table.name: table.key for table in found.tables} == {
        "lines": ("order_id", "line_no"), "parcels": ("parcel_id",),
    }  # fmt: skip
    assert [(join.left, join.right, join.foreign_key) for join in found.joins] == [
        ("parcels", "lines", ("order_id", "line_no"))
    ]


def test_lines_of_an_order_have_its_key_and_their_own() -> None:
    """The second column is called as what is within something often is."""
    lines = [{"op": "c", "order_id": n // 2, "quantity": 1, "line": n % 2} for n in range(4)]

    assert declared({"items.jsonl": lines})["items"].key == ("order_id", "line")


def test_rows_without_envelope_are_in_the_order_of_the_log() -> None:
    """Reads of an incremental snapshot have no place in it, and are older."""
    rows = [
        {"__op": "c", "__lsn": 5, "id": 1, "changed": "2026-11-27"},
        {"__op": "r", "__lsn": None, "id": 2},
    ]

    table = declared({"a.jsonl": rows})["a"]

    assert (table.sequence, table.source["snapshots"]) == (("__lsn",), "oldest")
    assert "snapshots" not in declared({"a.jsonl": rows[:1]})["a"].source


def test_numbers_that_happen_to_be_keys_make_no_join() -> None:
    """Of small numbers a name must speak for it; texts of which three are keys need none."""
    planes = [{"op": "c", "id": n, "code": f"N{n}"} for n in range(5)]
    flights = [{"op": "c", "flight_id": n, "seats": n, "tail": f"N{n}"} for n in range(5)]
    codes = [{"op": "c", "code": f"N{n}"} for n in range(5)]

    assert proposed({"planes.jsonl": planes, "flights.jsonl": flights}).joins == []
    (join,) = proposed({"codes.jsonl": codes, "flights.jsonl": flights}).joins
    assert isinstance(join, Join)
    assert (join.left, join.right, join.foreign_key) == ("flights", "codes", ("tail",))


def test_two_references_to_one_table_are_two_joins() -> None:
    """With names and prefixes of their own."""
    airports = [{"op": "c", "airport": name} for name in ("EWR", "JFK", "LGA")]
    flights = [
        {"op": "c", "id": n, "origin": ("EWR", "JFK", "LGA")[n], "dest": ("LGA", "EWR", "JFK")[n]}
        for n in range(3)
    ]

    found = proposed({"airports.jsonl": airports, "flights.jsonl": flights})

    assert {join.name: join.prefix for join in found.joins} == {
        "flights_with_airports_by_origin": "origin_", "flights_with_airports_by_dest": "dest_",
    }  # fmt: skip
    load_text(text_of(found, "# editor", "shop"), "lakejoin.yaml")


@pytest.mark.parametrize(
    "name", ["with space", "a.b", "on", "null", "_lj_x", "ein ä", "x\x1b[2J", "a: b", "{", "Id"]
)
def test_every_name_of_a_column_is_declared(name: str) -> None:
    """Also those that YAML or Delta Lake would take for something else, and what acts on a terminal is escaped."""
    found = proposed({"a.jsonl": [{"op": "c", "key": 1, name: "x"}, {"op": "c", "key": 2, name: "x"}]})
    text = text_of(found, "# editor", "shop")

    table = load_text(text, "lakejoin.yaml").tables["a"]
    assert "\x1b" not in text
    written = table.spec.written.get(column_name(name, set()), name)
    assert written.strip("`") == name


def test_tables_have_names_of_their_own() -> None:
    """Two folders may have files of the same name."""
    found = proposed({"a/orders.jsonl": ORDERS, "b/orders.jsonl": ORDERS[:2]})

    assert [table.name for table in found.tables] == ["orders", "orders_2"]
    assert [table_name(text) for text in ("2013 Flights", "quarantine", "", "Öl")] == [
        "t_2013_flights", "t_quarantine", "table_1", "l",
    ]  # fmt: skip


def test_words_and_values() -> None:
    """One of several things, and values on one line."""
    assert [singular(word) for word in ("planes", "cities", "addresses", "status", "weather")] == [
        "plane", "city", "address", "status", "weather",
    ]  # fmt: skip
    assert flow("on") == "'on'"
    assert flow({"a": "b: c"}) == "{a: 'b: c'}"


def test_template_is_valid() -> None:
    """And says what to change."""
    text = template("# editor", "lakejoin.yaml", "shop")

    pipeline = load_text(text, "lakejoin.yaml")
    assert (list(pipeline.tables), list(pipeline.joins)) == (
        ["orders", "customers"],
        ["orders_with_customers"],
    )
    assert "Put your own tables in the place of these two" in text
