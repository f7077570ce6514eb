"""A file of unit tests is read with every mistake in it, and written with what came."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from lakejoin.orchestration.config import ConfigurationError, Pipeline, load
from lakejoin.orchestration.unit_tests.declared import file_of_tests, read_tests
from lakejoin.orchestration.unit_tests.examples import example_tests
from lakejoin.orchestration.unit_tests.outcome import Difference, Outcome, compare
from lakejoin.orchestration.unit_tests.report import failure_lines, junit, update
from lakejoin.orchestration.unit_tests.scratch import can_share

SHOP = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: debezium, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, amount: "decimal(9,2)", op: string}
    key: [id]
    sequence: [lsn]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string, since: timestamp}
    key: [customer]
    event_time: since
    versioned: {history_retention: 10 days}
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, customer: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  sold: {left: orders, right: customers, foreign_key: [customer], how: left, prefix: c_}
  clicked: {stream: clicks, table: customers, foreign_key: [customer], how: left}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """Return the pipeline."""
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP)
    return load(path)


def mistakes(shop: Pipeline, text: str) -> list[str]:
    """Return what is wrong with a file of tests, each with its line and place."""
    path = file_of_tests(shop)
    path.write_text(text)
    with pytest.raises(ConfigurationError) as raised:
        read_tests(shop, path)
    return [str(problem).removeprefix(f"{path}:") for problem in raised.value.problems]


def test_every_mistake_is_told_with_its_line(shop: Pipeline) -> None:
    """Names of tables, columns, results, keys, and values that a column cannot have."""
    found = mistakes(
        shop,
        """\
one:
  given:
    order: [{id: 1}]
    orders: [{id: 1, custmer: a, _op: x, op: x, lsn: 3}]
    customers: {customer: a}
  wen: []
  expect:
    sold:
      - {id: 1, c_cty: Paris}
      - {id: 2, c_city: 5}
    sould: 1
    sold.changelog: 2
two:
  when: {orders: []}
  expect: []
three: 5
""",
    )
    results = (
        "there are: sold, clicked, orders, orders.changes, customers, customers.changes, customers.versions, clicks, "
        "clicks.records, quarantine"
    )
    assert found == [
        (
            "3: one.given.order: no table or stream 'order'; did you mean 'orders'? "
            "(there are: orders, customers, clicks)"
        ),
        (
            "4: one.given.orders[0].custmer: no column of orders 'custmer'; did you mean 'customer'? (there are: _op, "
            "id, customer, amount, op, lsn)"
        ),
        "4: one.given.orders[0]._op: expected one of c, r, u, d; found 'x'",
        "5: one.given.customers: expected a list of records, each a mapping of columns; found a mapping",
        "6: one.wen: unknown key; did you mean 'when'? (allowed: given, when, expect)",
        (
            "9: one.expect.sold[0].c_cty: no column of sold 'c_cty'; did you mean 'c_city'? (there are: id, customer, "
            "amount, op, c_customer, c_city, c_since)"
        ),
        "10: one.expect.sold[1]: names other columns than the first row: id, c_cty",
        "10: one.expect.sold[1].c_city: 5 is no string; put it in quotes",
        f"11: one.expect.sould: no result or table 'sould'; did you mean 'sold'? ({results})",
        (
            "12: one.expect[\"sold.changelog\"]: no result or table 'sold.changelog'; did you mean 'orders.changes'? "
            f"({results})"
        ),
        "14: two.when: expected a list of batches; found a mapping",
        "15: two.expect: required: rows, or how many, of a result, table or the quarantine",
        "16: three: expected a mapping with given, when and expect; found the number 5",
    ]


def test_tests_are_read_with_their_lines_and_batches(shop: Pipeline) -> None:
    """What is given is the first batch."""
    path = file_of_tests(shop)
    path.write_text(
        "# comment\none:\n  given: {orders: [{id: 1}]}\n  when: [{orders: [{id: 2}]}, {}]\n  expect: {sold: 2}\n"
        "two: {when: [{orders: [{id: 2}]}], expect: {orders: [{id: 2}]}}\n"
    )
    one, two = read_tests(shop, path)
    assert (one.name, one.number, one.line) == ("one", 1, 2)
    assert (two.name, two.number, two.line) == ("two", 2, 6)
    assert one.batches == [{"orders": ({"id": 1},)}, {"orders": ({"id": 2},)}]
    assert two.batches == [{"orders": ({"id": 2},)}]
    assert one.expected == {"sold": 2}


def test_tests_share_a_lake_where_no_clock_is_shared(shop: Pipeline) -> None:
    """Streams and versioned tables have one, also those that are only read by a result."""
    path = file_of_tests(shop)
    path.write_text(
        "a: {given: {orders: [{id: 1}]}, expect: {orders: 1}}\n"
        "b: {given: {orders: [{id: 1}]}, expect: {sold: 1}}\n"
        "c: {given: {clicks: [{id: 1}]}, expect: {clicks: 1}}\n"
    )
    assert [can_share(shop, test) for test in read_tests(shop, path)] == [True, False, False]


Rows = Sequence[Mapping[str, Any]]


def differing(expected: int | Rows, rows: Rows, shop: Pipeline) -> list[Difference | str]:
    """Return how rows of a table differ."""
    return compare(expected, rows, shop.tables["orders"].spec.columns, ["id"])


def test_rows_are_compared_whatever_their_order(shop: Pipeline) -> None:
    """As many times as they are there."""
    rows = [{"id": 1, "customer": "a"}, {"id": 2, "customer": None}]
    assert differing(rows[::-1], rows, shop) == []
    assert differing(2, rows, shop) == []
    assert differing(3, rows, shop) == ["expected 3 rows; found 2"]
    assert differing([*rows, rows[0]], rows, shop) == [Difference(rows[0], None)]


def test_rows_of_one_key_are_told_together(shop: Pipeline) -> None:
    """Others stand alone; without the key nothing says which belong together."""
    expected = [{"id": 1, "customer": "a"}, {"id": 2, "customer": "b"}]
    rows = [{"id": 1, "customer": "x"}, {"id": 3, "customer": "c"}]
    assert differing(expected, rows, shop) == [
        Difference(expected[0], rows[0]), Difference(expected[1], None), Difference(None, rows[1]),
    ]  # fmt: skip
    assert differing([{"customer": "a"}], [{"customer": "b"}], shop) == [
        Difference({"customer": "a"}, None), Difference(None, {"customer": "b"}),
    ]  # fmt: skip
    assert differing((), rows[:1], shop) == [Difference(None, rows[0])]


TESTS = """\
# Of the shop.

first:   # stays
  given:
    orders: [{id: 1}]
  expect:
    # said of it
    sold:
      - {id: 1, c_city: Rome}

      # in between
      - {id: 3, c_city: Rome}   # gone

    # the next
    orders: 2
second: {given: {orders: [{id: 1}]}, expect: {sold: 1}}
third:
  given: {orders: [{id: 1}]}
  expect:
    sold: [{id: 1,
            c_city: Rome}]
"""


def test_update_writes_what_came_and_leaves_the_rest(shop: Pipeline) -> None:
    """Comments before and behind stay; a result of which nothing was said is added."""
    path = file_of_tests(shop)
    path.write_text(TESTS)
    first, second, third = read_tests(shop, path)
    row = {"id": 1, "c_city": None}
    quarantined = {"table": "orders", "reason": "null_key", "detail": "id"}
    update(
        path,
        [
            Outcome(
                first,
                {"sold": [row], "orders": [{}, {}, {}], "quarantine": [quarantined]},
                {"sold": ["differs"], "orders": ["differs"], "quarantine": ["differs"]},
            ),
            Outcome(third, {"sold": []}, {"sold": ["differs"]}),
        ],
    )
    assert (
        path.read_text()
        == """\
# Of the shop.

first:   # stays
  given:
    orders: [{id: 1}]
  expect:
    # said of it
    quarantine:
      - {table: orders, reason: null_key, detail: id}
    sold:
      - {id: 1, c_city: null}

    # the next
    orders: 3
second: {given: {orders: [{id: 1}]}, expect: {sold: 1}}
third:
  given: {orders: [{id: 1}]}
  expect:
    sold: []
"""
    )
    assert [test.name for test in read_tests(shop, path)] == ["first", "second", "third"]
    assert second.expected == {"sold": 1}


def test_junit_has_each_test_with_what_differs(shop: Pipeline) -> None:
    """Also texts that no XML may hold."""
    path = file_of_tests(shop)
    path.write_text(
        "a: {given: {orders: [{id: 1}]}, expect: {sold: 1}}\nb: {given: {orders: [{id: 1}]}, expect: {sold: 1}}\n"
    )
    a, b = read_tests(shop, path)
    failed = Outcome(
        b, {}, {"sold": [Difference({"id": 1, "customer": "\x1b<&"}, None)]}, explained=["\x00 because"]
    )
    root = ElementTree.fromstring(junit("shop", [Outcome(a, {}, {}), failed], 1.5))
    assert root.attrib == {"name": "shop", "tests": "2", "failures": "1", "time": "1.500"}
    assert [case.get("name") for case in root] == ["a", "b"]
    (failure,) = root.iter("failure")
    assert failure.text is not None
    assert failure.text.splitlines()[:2] == ["sold", r'  expected {id: 1, customer: "\e<&"}']
    assert failure_lines(Outcome(a, {}, {}, "no such function\nfound in orders")) == [
        "no such function",
        "found in orders",
    ]


def test_examples_are_tests_of_the_pipeline(tmp_path: Path) -> None:
    """They can be read, and say a row that is joined and one that goes."""
    path = tmp_path / "lakejoin.yaml"
    path.write_text(SHOP)
    shop = load(path)
    text = example_tests(shop)
    assert text is not None
    file_of_tests(shop).write_text(text)
    one, other = read_tests(shop, file_of_tests(shop))
    assert one.expected == {"sold": ({"id": 1, "c_customer": "a"},)}
    assert other.batches[-1] == {"orders": ({"_op": "d", "id": 1},)}
    path.write_text(SHOP.replace("how: left, prefix: c_", "how: left, prefix: c_, where: amount > 1"))
    assert example_tests(load(path)) is None
