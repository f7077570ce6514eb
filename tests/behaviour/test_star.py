"""What a star makes of its right sides: beside the answer of a few lines of Python, and beside the chain of joins."""

import random
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import arrive, make_chosen, result, run
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changelog_of
from lakejoin.transforms.model.schemas import is_internal
from reference.changed_rows import ChangedRows, Row

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", absent: clear}
    columns: {id: bigint, customer: string, item: string, gift: string, amount: int}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl", absent: clear}
    columns: {name: string, country: string, seen: int}
    key: [name]
  items:
    source: {format: jsonl, path: "items/{date}.jsonl", absent: clear}
    columns: {code: string, price: int}
    key: [code]
joins:
  star:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [customer], how: inner}
      item: {table: items, foreign_key: [item], how: inner}
      gift: {table: items, foreign_key: [gift], how: left, prefix: "present_"}
    changelog: true
  all_left:
    left: orders
    rights:
      who: {table: customers, foreign_key: [customer], how: left}
      what: {table: items, foreign_key: [item], how: left}
    resolution: highwater
  narrow:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [customer], how: left}
      item: {table: items, foreign_key: [lower(item)], how: inner}
    select: [{order: id}, customer_country, {total: amount * item_price}]
    where: customer_country is null or customer_country <> 'de'
  alone:
    left: orders
    rights: {customer: {table: customers, foreign_key: [customer], how: inner}}
    changelog: true
  first: {left: orders, right: customers, foreign_key: [customer], how: inner, prefix: customer_, changelog: true}
  second: {left: first, right: items, foreign_key: [item], how: inner, prefix: item_}
  third: {left: second, right: items, foreign_key: [gift], how: left, prefix: present_, changelog: true}
  over_star: {left: narrow, right: customers, foreign_key: [customer_country], how: left, prefix: c_}
  over_join:
    left: first
    rights:
      item: {table: items, foreign_key: [item], how: inner}
      gift: {table: items, foreign_key: [gift], how: left, prefix: "present_"}
"""
COLUMNS = {"customers": ("name", "country", "seen"), "items": ("code", "price")}
KEYS = {"orders": "id", "customers": "name", "items": "code"}


class Model(ChangedRows):
    """The tables as they are, and what the joins of these are."""

    def answers(self) -> dict[str, list[Row]]:
        """The rows of each join."""
        of_star = [
            (order, self._rows["customers"].get(order["customer"]), self._rows["items"].get(order["item"]),
             self._rows["items"].get(order["gift"]))
            for order in self._rows["orders"].values()
        ]  # fmt: skip
        star = [
            {**order, **_named("customer_", "customers", customer), **_named("item_", "items", item),
             **_named("present_", "items", gift)}
            for order, customer, item, gift in of_star if customer and item
        ]  # fmt: skip
        alone = [
            {**order, **_named("customer_", "customers", customer)}
            for order, customer, *_ in of_star
            if customer
        ]
        narrow = [
            {"order": order["id"], "customer_country": country, "total": order["amount"] * item["price"]}
            for order, customer, item, _ in of_star if item
            for country in [(customer or {}).get("country")] if country != "de"
        ]  # fmt: skip
        return {
            "star": star, "third": star, "over_join": star, "alone": alone, "first": alone, "narrow": narrow,
            "all_left": [
                {**order, **_named("who_", "customers", customer), **_named("what_", "items", item)}
                for order, customer, item, _ in of_star
            ],
            "over_star": [
                {**row, **_named("c_", "customers", self._rows["customers"].get(row["customer_country"]))}
                for row in narrow
            ],
        }  # fmt: skip


def _named(prefix: str, table: str, row: Row | None) -> Row:
    return {prefix + name: (row or {}).get(name) for name in COLUMNS[table]}


def _records(chance: random.Random, table: str) -> list[Row]:
    """Some changes of a table: few keys and few values, so that they meet."""
    found: list[Row] = []
    for _ in range(chance.randrange(1, 6)):
        if table == "orders":
            row = {"id": chance.randrange(5), "customer": chance.choice(["a", "b", "z", None])}
            row |= {name: chance.choice(["p", "q", "y", None]) for name in ("item", "gift")}
            row |= {"amount": chance.randrange(3)}
        elif table == "customers":
            row = {"name": chance.choice("ab"), "country": chance.choice(["de", "fr", "a", None])}
            row |= {"seen": chance.randrange(2)}
        else:
            row = {"code": chance.choice("pq"), "price": chance.randrange(3)}
        found.append({"op": chance.choice("uuud"), **row})
    return found


def _sorted(rows: Iterable[Row]) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.parametrize(
    ("seed", "days", "joins"),
    [
        (1, 2, ("star", "narrow")),
        *[pytest.param(seed, 5, (), marks=pytest.mark.slow) for seed in range(2, 6)],
    ],
)
def test_each_row_has_its_right_rows(
    seed: int, days: int, joins: tuple[str, ...], tmp_path: Path, spark: SparkSession
) -> None:
    """All sides change at once; the rules hold over all rows and over those that the last batch touched."""
    chance, model = random.Random(seed), Model(KEYS)
    pipeline = make_chosen(tmp_path, TEXT, joins)
    for day in range(1, days + 1):
        records = {table: _records(chance, table) for table in KEYS}
        for table, lines in records.items():
            model.change(table, lines)
        arrive(tmp_path, day, KEYS, records)
        run(pipeline, spark)
        for join, answer in model.answers().items():
            if join in pipeline.joins:
                assert _sorted(result(pipeline, spark, join)) == _sorted(answer), (seed, day, join)
    assert check_lake(pipeline, spark, batches=1).passed
    assert check_lake(pipeline, spark, batches=None).passed


def _changelog(pipeline: Pipeline, spark: SparkSession, join: str, *, all_of_it: bool) -> list[str]:
    """Each emission by its batch, of which it is left out where it changed nothing."""
    table = spark.read.format("delta").load(Lake(pipeline.lake).path(changelog_of(join)))
    rows = [row.asDict() for row in table.collect()]
    shown = ("_lj_batch", "_lj_tombstone")
    return _sorted(
        {name: value for name, value in row.items() if not is_internal(name) or name in shown}
        for row in rows
        if all_of_it or not row["redundant"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 6))
def test_changelog_is_that_of_the_chain(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Where one side changes at a time, a star emits what its chain does; of one right side all, redundant ones too."""
    chance, batches = random.Random(seed), 14
    pipeline = make_chosen(tmp_path, TEXT, ("star", "alone", "first", "second", "third"))
    changed = [*KEYS, *chance.choices([*KEYS, "orders"], k=batches - len(KEYS))]
    for day, table in enumerate(changed, start=1):
        arrive(tmp_path, day, KEYS, {table: _records(chance, table)})
        run(pipeline, spark)

    assert len(Journal(Lake(pipeline.lake)).published) == batches
    for star, chain, all_of_it in (("star", "third", False), ("alone", "first", True)):
        found, expected = (_changelog(pipeline, spark, join, all_of_it=all_of_it) for join in (star, chain))
        assert found == expected, (seed, star)
        assert found
