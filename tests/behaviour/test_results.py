"""What `select` and `where` make of a join: each result beside the answer of a few lines of Python."""

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey
from pyspark.sql import SparkSession

from faults.shop import arrive, make_chosen, make_pipeline, result, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.show.stores import stored_tables
from lakejoin.orchestration.show.tables import find_view
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import is_internal
from reference.changed_rows import ChangedRows, Row

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", absent: clear}
    columns: {id: bigint, customer: string, amount: int, note: string}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl", absent: clear}
    columns: {name: string, country: string, rate: int, seen: int}
    key: [name]
  countries:
    source: {format: jsonl, path: "countries/{date}.jsonl", absent: clear}
    columns: {code: string, tax: int}
    key: [code]
joins:
  everything: {left: orders, right: customers, foreign_key: [customer], how: left, select: ["*"]}
  narrow:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    prefix: c_
    select: [{order: id}, amount, c_country]
    changelog: true
  charged:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    prefix: c_
    select: ["* except (note, c_seen, c_name)", {charge: "cast(amount / c_rate as int)", upper: upper(c_country)}]
  abroad:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    prefix: c_
    select: [id, c_name]
    where: c_country is null or c_country <> 'de'
  large: {left: orders, right: customers, foreign_key: [customer], how: inner, where: amount > right_rate}
  by_customer:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    result_key: combined
    select: [amount, {order: id}, {who: right_name}]
    where: amount > 2
  taxed:
    left: narrow
    right: countries
    foreign_key: [c_country]
    how: left
    prefix: in_
    select: [order, {gross: amount + in_tax}]
"""
KEYS = {"orders": "id", "customers": "name", "countries": "code"}
Pair = Callable[[Row, Row | None], Row | None]
_NONE: Row = dict.fromkeys(("name", "country", "rate", "seen"))


def _whole(order: Row, customer: Row | None) -> Row:
    return {**order, **{f"right_{name}": value for name, value in (customer or _NONE).items()}}


def _charged(order: Row, customer: Row | None) -> Row | None:
    if customer is None:
        return None
    rate, amount, country = customer["rate"], order["amount"], customer["country"]
    charge = None if not rate or amount is None else int(amount / rate)
    kept = {name: order[name] for name in ("id", "customer", "amount")}
    upper = None if country is None else country.upper()
    return {**kept, "c_country": country, "c_rate": rate, "charge": charge, "upper": upper}


def _abroad(order: Row, customer: Row | None) -> Row | None:
    found = customer or _NONE
    return None if found["country"] == "de" else {"id": order["id"], "c_name": found["name"]}


def _exceeds(amount: int | None, least: int | None) -> bool:
    return amount is not None and least is not None and amount > least


ANSWERS: Mapping[str, Pair] = {
    "everything": _whole,
    "narrow": lambda order, customer: {
        "order": order["id"], "amount": order["amount"], "c_country": (customer or _NONE)["country"]
    },
    "charged": _charged,
    "abroad": _abroad,
    "large": lambda order, customer: (
        _whole(order, customer) if customer and _exceeds(order["amount"], customer["rate"]) else None
    ),
    "by_customer": lambda order, customer: (
        {"amount": order["amount"], "order": order["id"], "who": customer["name"]}
        if customer and _exceeds(order["amount"], 2)
        else None
    ),
}  # fmt: skip


def _random_records(chance: random.Random) -> dict[str, list[Row]]:
    """Some changes of each table: few keys and few values, so that they meet."""

    def customer() -> Row:
        row = {"name": chance.choice("abc"), "country": chance.choice(["de", "fr", None])}
        return {"op": chance.choice("uuud"), **row, "rate": chance.randrange(3), "seen": chance.randrange(9)}

    def order() -> Row:
        row = {"id": chance.randrange(5), "customer": chance.choice(["a", "b", "c", "z", None])}
        return {
            "op": chance.choice("uuuud"),
            **row,
            "amount": chance.choice([None, 1, 3, 5]),
            "note": chance.choice("xyz"),
        }

    def country() -> Row:
        return {"op": chance.choice("uuud"), "code": chance.choice(["de", "fr"]), "tax": chance.randrange(2)}

    makers = {"orders": order, "customers": customer, "countries": country}
    return {table: [make() for _ in range(chance.randrange(6))] for table, make in makers.items()}


class Model(ChangedRows):
    """The three tables as they are, and what the joins of these are."""

    def answer(self, join: str) -> list[Row]:
        """The rows of a join."""
        if join == "taxed":
            taxes = {code: row["tax"] for code, row in self._rows["countries"].items()}
            return [
                {"order": row["order"], "gross": _sum(row["amount"], taxes.get(row["c_country"]))}
                for row in self.answer("narrow")
            ]
        orders, customers = self._rows["orders"].values(), self._rows["customers"]
        found = [ANSWERS[join](order, customers.get(order["customer"])) for order in orders]
        return [row for row in found if row is not None]


def _sum(amount: int | None, tax: int | None) -> int | None:
    return None if amount is None or tax is None else amount + tax


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.parametrize(
    ("seed", "days", "joins"),
    [
        (1, 2, ("charged", "by_customer", "narrow", "taxed")),
        *[pytest.param(seed, 4, (), marks=pytest.mark.slow) for seed in range(2, 6)],
    ],
)
def test_each_result_is_that_of_its_rows(
    seed: int, days: int, joins: tuple[str, ...], tmp_path: Path, spark: SparkSession
) -> None:
    """Selected columns in their order, expressions, conditions; over tables, a join, and by both keys."""
    chance, model = random.Random(seed), Model(KEYS)
    pipeline = make_chosen(tmp_path, TEXT, joins)
    for day in range(1, days + 1):
        records = _random_records(chance)
        for table, lines in records.items():
            model.change(table, lines)
        arrive(tmp_path, day, KEYS, records)
        run(pipeline, spark)
        for join in pipeline.joins:
            assert _sorted(result(pipeline, spark, join)) == _sorted(model.answer(join)), (seed, day, join)
    assert check_lake(pipeline, spark, batches=None).passed
    assert check_lake(pipeline, spark, batches=1).passed


def test_change_of_what_is_not_selected_writes_no_result(tmp_path: Path, spark: SparkSession) -> None:
    """Neither message nor answer nor commit; a join that selects the column has all three."""
    customer = {"op": "u", "name": "a", "country": "de", "rate": 2, "seen": 1}
    order = {"op": "u", "id": 1, "customer": "a", "amount": 4, "note": "x"}
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", [customer])
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [order])
    write_lines(tmp_path / "countries" / "2024-01-01.jsonl", [{"op": "u", "code": "de", "tax": 1}])
    pipeline = make_chosen(tmp_path, TEXT, ("everything", "narrow", "by_customer", "taxed"))
    run(pipeline, spark)
    write_lines(tmp_path / "customers" / "2024-01-02.jsonl", [{**customer, "seen": 2}])
    write_lines(tmp_path / "orders" / "2024-01-02.jsonl", [{**order, "note": "y"}])

    run(pipeline, spark)

    lake = Lake(pipeline.lake)
    counts = {join: found["emissions"] for join, found in Journal(lake).published[-1].joins.items()}
    assert counts == {"everything": 1, "narrow": 0, "by_customer": 0, "taxed": 0}
    snapshots = {join: lake.snapshot(joined_of(join)) for join in counts}
    assert {join: found and found.version for join, found in snapshots.items()} == counts
    assert check_lake(pipeline, spark, batches=1).passed


def test_dagster_tells_what_each_column_is_made_of(tmp_path: Path) -> None:
    """As column lineage, over joins, and in the descriptions of the columns; types are those of the result."""
    pipeline = make_pipeline(tmp_path, TEXT)
    for table in pipeline.tables:
        (tmp_path / table).mkdir()
    graph = pipeline_definitions(
        EmbeddedPipeline(pipeline), datetime(2024, 1, 20, tzinfo=UTC)
    ).resolve_asset_graph()

    def metadata(join: str) -> Mapping[str, Any]:
        return graph.get(AssetKey(["shop", join])).metadata

    lineage = metadata("charged")["dagster/column_lineage"].deps_by_column
    assert [(dep.asset_key.path, dep.column_name) for dep in lineage["charge"]] == [
        (["shop", "customers"], "rate"), (["shop", "orders"], "amount")
    ]  # fmt: skip
    over_join = metadata("taxed")["dagster/column_lineage"].deps_by_column
    assert [(dep.asset_key.path, dep.column_name) for dep in over_join["gross"]] == [
        (["shop", "countries"], "tax"), (["shop", "narrow"], "amount")
    ]  # fmt: skip
    columns = {column.name: column for column in metadata("charged")["dagster/column_schema"].columns}
    assert [name for name in columns if not is_internal(name)] == [
        "id", "customer", "amount", "c_country", "c_rate", "charge", "upper"
    ]  # fmt: skip
    assert (columns["charge"].type, columns["charge"].description) == (
        "int",
        "From orders.amount, customers.rate",
    )


STREAM = """\
name: desk
lake: ./lake
tables:
  prices:
    source: {format: jsonl, path: "prices/{date}.jsonl"}
    columns: {item: string, price: int, shelf: string, at: timestamp}
    key: [item]
    event_time: at
    versioned: {history_retention: 10 days}
streams:
  sales:
    source: {format: jsonl, path: "sales/{date}.jsonl"}
    columns: {id: bigint, item: string, pieces: int, clerk: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  sold:
    stream: sales
    table: prices
    foreign_key: [item]
    how: left
    prefix: p_
    grace: 1 hour
    select: [{sale: id}, p_price, {paid: pieces * p_price}, {each: "cast(pieces / cast(p_shelf as int) as int)"}]
    where: pieces > 0
"""


def test_join_of_a_stream_selects_and_has_a_condition(tmp_path: Path, spark: SparkSession) -> None:
    """Of what is released; a record that does not meet the condition is not lost. The key has another name."""

    def at(minute: int) -> str:
        return f"2024-01-01T12:{minute:02}:00Z"

    prices = [("pen", 3, "1", 0), ("ink", 5, "0", 0), ("pen", 4, "2", 30)]
    sales = [(1, "pen", 2, 10), (2, "pen", 0, 11), (3, "ink", 1, 12), (4, "cap", 1, 13), (5, "pen", 2, 40)]
    write_lines(tmp_path / "prices" / "2024-01-01.jsonl", [
        {"op": "u", "item": item, "price": price, "shelf": shelf, "at": at(minute)}
        for item, price, shelf, minute in prices
    ])  # fmt: skip
    write_lines(tmp_path / "sales" / "2024-01-01.jsonl", [
        {"op": "c", "id": number, "item": item, "pieces": pieces, "clerk": "c", "at": at(minute)}
        for number, item, pieces, minute in sales
    ])  # fmt: skip
    pipeline = make_pipeline(tmp_path, STREAM)
    run(pipeline, spark)
    run(pipeline, spark, flush=True)

    rows = sorted((tuple(row.values()) for row in result(pipeline, spark, "sold")), key=lambda row: row[0])
    assert rows == [(1, 3, 6, 2), (3, 5, 5, None), (4, None, None, None), (5, 4, 8, 1)]
    lake = Lake(pipeline.lake)
    counts = Journal(lake).published[-1].joins["sold"]
    assert (counts["released"], counts["emissions"], counts["uncomputed"]) == (5, 4, 1)
    assert check_lake(pipeline, spark, batches=None).passed
    view = find_view(pipeline, "sold")(State(spark, lake, published_snapshot(Journal(lake))))
    assert [row["paid"] for row in view.of_key("5").rows.collect()] == [8]
    stored = stored_tables(pipeline)["sold"]
    assert stored.ordered.key.names == ["sale"]
