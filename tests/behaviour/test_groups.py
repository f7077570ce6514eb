"""What groups make of their rows: beside the answer of a few lines of Python, after each batch."""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.shop import arrive, make_chosen, make_pipeline, result, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.runs.retry_quarantine import known, retry
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from reference.changed_rows import ChangedRows, Row

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", absent: clear}
    columns: {id: bigint, customer: string, item: string, amount: int, price: "decimal(10,2)", weight: double}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl", absent: clear}
    columns: {name: string, country: string}
    key: [name]
joins:
  named: {left: orders, right: customers, foreign_key: [customer], how: left, prefix: c_}
  greeted: {left: by_customer, right: customers, foreign_key: [customer], how: left, prefix: c_}
  shared:
    left: orders
    right: by_customer
    foreign_key: [customer]
    how: inner
    prefix: all_
    result_key: combined
    select: [{who: all_customer}, id, all_orders, all_heavy]
    history: true
  placed:
    left: orders
    rights:
      whole: {table: sums, foreign_key: [customer], how: left}
      kind: {table: by_item, foreign_key: [lower(item), amount > 1], how: inner}
      home: {table: customers, foreign_key: [customer], how: left}
    select: [id, whole_total, kind_most, home_country]
    changelog: true
groups:
  by_customer:
    of: orders
    by: [customer]
    select: {orders: count(*), total: sum(amount), worth: sum(price), mean: avg(amount), heavy: sum(weight)}
    changelog: true
  by_item:
    of: orders
    by: [{kind: lower(item)}, {large: amount > 1}]
    select:
      least: min(amount)
      most: max(price)
      customers: count(distinct customer)
      some: any(id)
      first: first(id, order by amount)
      last: first(id, order by amount desc)
      latest: last(id, order by amount, price)
      all: collect(id, order by price desc)
      rows: collect(struct(id, amount), order by amount)
      amounts: map(customer, amount, order by id)
    having: most > 1 or customers > 1
  by_country:
    of: named
    by: [c_country]
    select: {orders: count(id), ids: collect(id)}
  sums:
    of: orders
    by: [customer]
    select: {orders: count(*), total: sum(amount), worth: sum(price), mean: avg(amount), priced: count(price)}
  sums_of_join:
    of: named
    by: [c_country]
    select: {n: count(*), total: sum(amount + 1)}
    changelog: true
  of_groups:
    of: by_country
    by: [orders]
    select: {countries: collect(c_country), n: count(*)}
"""
KEYS = {"orders": "id", "customers": "name"}


class Model(ChangedRows):
    """The tables as they are, and what the groups of these are."""

    def answers(self) -> dict[str, list[Row]]:
        """The rows of each result."""
        orders, customers = list(self._rows["orders"].values()), self._rows["customers"]
        by_customer = [
            {"customer": customer, "orders": len(rows), "total": _sum(rows, "amount"),
             "worth": _sum(rows, "price"), "mean": _mean(rows, "amount"), "heavy": _sum(rows, "weight")}
            for (customer,), rows in _grouped(orders, lambda row: (row["customer"],)).items()
        ]  # fmt: skip
        by_item = [
            _of_item(kind, large, rows)
            for (kind, large), rows in _grouped(
                orders,
                lambda row: (_lower(row["item"]), None if row["amount"] is None else row["amount"] > 1),
            ).items()
        ]
        countries = _grouped(orders, lambda row: (customers.get(row["customer"], {}).get("country"),))
        by_country = [
            {"c_country": country, "orders": len(rows), "ids": sorted(row["id"] for row in rows)}
            for (country,), rows in countries.items()
        ]
        of_groups = _grouped(by_country, lambda row: (row["orders"],))
        return {
            "by_customer": by_customer,
            "by_item": [row for row in by_item if (row["most"] or 0) > 1 or row["customers"] > 1],
            "by_country": by_country,
            "sums": [
                {**{name: row[name] for name in ("customer", "orders", "total", "worth", "mean")}, "priced": priced}
                for row in by_customer
                for priced in [sum(r["price"] is not None for r in orders if r["customer"] == row["customer"])]
            ],
            "sums_of_join": [
                {"c_country": country, "n": len(rows), "total": sum(amounts) + len(amounts) if amounts else None}
                for (country,), rows in countries.items()
                for amounts in [[row["amount"] for row in rows if row["amount"] is not None]]
            ],
            "of_groups": [
                {"orders": orders, "n": len(rows),
                 "countries": sorted(row["c_country"] for row in rows if row["c_country"] is not None)}
                for (orders,), rows in of_groups.items()
            ],
            "shared": [
                {"who": row["customer"], "id": row["id"], "all_orders": group["orders"], "all_heavy": group["heavy"]}
                for row in orders if row["customer"] is not None
                for group in by_customer if group["customer"] == row["customer"]
            ],
            "placed": [
                {"id": row["id"], "whole_total": whole.get(row["customer"]), "kind_most": kind["most"],
                 "home_country": customers.get(row["customer"], {}).get("country")}
                for row in orders if row["item"] is not None and row["amount"] is not None
                for whole in [{g["customer"]: g["total"] for g in by_customer if g["customer"] is not None}]
                for kind in by_item if (kind["most"] or 0) > 1 or kind["customers"] > 1
                if (kind["kind"], kind["large"]) == (_lower(row["item"]), row["amount"] > 1)
            ],
            "greeted": [
                {**row, **{f"c_{name}": customers.get(row["customer"], {}).get(name) for name in ("name", "country")}}
                for row in by_customer
            ],
        }  # fmt: skip


def _of_item(kind: str | None, large: bool | None, rows: list[Row]) -> Row:
    by_amount = sorted(rows, key=lambda row: (_nulls_first(row["amount"]), row["id"]))
    by_both = sorted(rows, key=lambda row: (*map(_nulls_first, (row["amount"], row["price"])), row["id"]))
    by_price = sorted(rows, key=lambda row: (_nulls_first(row["price"]), row["id"]), reverse=True)
    amounts = [row["amount"] for row in rows if row["amount"] is not None]
    return {
        "kind": kind,
        "large": large,
        "least": min(amounts, default=None),
        "most": max((Decimal(row["price"]) for row in rows if row["price"] is not None), default=None),
        "customers": len({row["customer"] for row in rows} - {None}),
        "some": min(row["id"] for row in rows),
        "first": by_amount[0]["id"],
        "last": by_amount[-1]["id"],
        "latest": by_both[-1]["id"],
        "all": [row["id"] for row in by_price],
        "rows": [{"id": row["id"], "amount": row["amount"]} for row in by_amount],
        "amounts": {
            row["customer"]: row["amount"]
            for row in sorted(rows, key=lambda row: row["id"])
            if row["customer"]
        },
    }


def _grouped(rows: Iterable[Row], key: Callable[[Row], tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Row]]:
    found = defaultdict[tuple[Any, ...], list[Row]](list)
    for row in rows:
        found[key(row)].append(row)
    return found


def _lower(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _nulls_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, 0 if value is None else Decimal(value))


def _sum(rows: Iterable[Row], name: str) -> Any:
    values = [row[name] for row in rows if row[name] is not None]
    if name == "price":
        return sum(map(Decimal, values)) if values else None
    return sum(sorted(values)) if values else None


def _mean(rows: Iterable[Row], name: str) -> float | None:
    values = [row[name] for row in rows if row[name] is not None]
    return sum(values) / len(values) if values else None


def _records(chance: random.Random, table: str) -> list[Row]:
    """Some changes of a table: few keys and few values, so that they meet."""
    found: list[Row] = []
    for _ in range(chance.randrange(1, 7)):
        if table == "orders":
            row = {"id": chance.randrange(8), "customer": chance.choice(["a", "b", "z", None])}
            row |= {"item": chance.choice(["p", "P", "q", None]), "amount": chance.choice([0, 1, 2, 3, None])}
            row |= {"price": chance.choice(["0.50", "1.25", "2.00", None])}
            row |= {"weight": chance.choice([0.1, 0.2, 0.3, 1e16, None])}
        else:
            row = {"name": chance.choice("ab"), "country": chance.choice(["de", "fr", None])}
        found.append({"op": chance.choice("uuud"), **row})
    return found


def _plain(value: Any) -> Any:
    """A value as a text that is the same for equal rows."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, Mapping):
        return sorted((str(key), _plain(inner)) for key, inner in value.items())
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value.normalize()) if isinstance(value, Decimal) else repr(value)


def _sorted(rows: Iterable[Row]) -> list[str]:
    return sorted(str(_plain(row)) for row in rows)


@pytest.mark.parametrize(
    ("seed", "days", "names"),
    [
        (1, 2, ("by_item", "sums", "placed")),
        *[pytest.param(seed, 6, (), marks=pytest.mark.slow) for seed in range(2, 6)],
    ],
)
def test_groups_are_those_of_their_rows_after_each_batch(
    seed: int, days: int, names: tuple[str, ...], tmp_path: Path, spark: SparkSession
) -> None:
    """Of a table, of a join, of groups; with null keys, conditions, deletes, moves; joins over groups and with them."""
    chance, model = random.Random(seed), Model(KEYS)
    pipeline = make_chosen(tmp_path, TEXT, names)
    for day in range(1, days + 1):
        tables = [table for table in KEYS if day == 1 or chance.random() < 0.7] or ["orders"]
        records = {table: _records(chance, table) for table in tables}
        arrive(tmp_path, day, KEYS, records)
        for table, changed in records.items():
            model.change(table, changed)

        assert run(pipeline, spark) == 1

        for name, expected in model.answers().items():
            if name in pipeline.joins:
                assert _sorted(result(pipeline, spark, name)) == _sorted(expected), (seed, day, name)
        if day > 2:
            checked = check_lake(pipeline, spark, batches=1)
            assert checked.passed, checked.results
    checked = check_lake(pipeline, spark, batches=None)
    assert checked.passed, checked.results


SMALL_TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", absent: clear}
    columns: {id: bigint, customer: string, amount: bigint, text: string}
    key: [id]
joins: {}
groups:
  by_customer:
    of: orders
    by: [customer]
    select: SELECT
"""
ORDERS = {
    1: [("u", 1, "a", 10, "1"), ("u", 2, "a", 20, "2"), ("u", 3, None, 30, "3"), ("u", 4, "b", None, "4")],
    2: [("u", 1, None, 11, "1"), ("d", 4, None, None, None), ("u", 5, "c", 50, "5")],
    3: [("u", 6, "c", 60, "6"), ("u", 2, "a", 20, "2"), ("d", 3, None, None, None)],
}
AFTER = [("a", 20, [2]), ("c", 110, [5, 6]), (None, 11, [1])]
SELECT = "{total: sum(amount), ids: collect(id)}"
ADJUSTED = "{total: sum(amount), n: count(*)}"
"""Of which each batch looks at no rows but those that change."""


def _small(
    folder: Path, days: Iterable[int], select: str = SELECT, orders: Mapping[int, Any] = ORDERS
) -> Pipeline:
    for day in days:
        names = ("op", "id", "customer", "amount", "text")
        lines = [dict(zip(names, row, strict=True)) for row in orders[day]]
        write_lines(folder / "orders" / f"2024-01-{day:02}.jsonl", lines)
    return make_pipeline(folder, SMALL_TEXT.replace("SELECT", select))


def _rows(pipeline: Pipeline, spark: SparkSession) -> list[tuple[Any, ...]]:
    found = [tuple(row.values()) for row in result(pipeline, spark, "by_customer")]
    return sorted(found, key=lambda row: (row[0] is None, row[0]))


@pytest.mark.parametrize("select", [SELECT, ADJUSTED], ids=["computed", "adjusted"])
@pytest.mark.parametrize(
    "way", ["small", "large", *[pytest.param(w, marks=pytest.mark.slow) for w in ("folded", "at once")]]
)
def test_groups_are_the_same_whichever_way_they_are_made(
    way: str, select: str, tmp_path: Path, spark: SparkSession
) -> None:
    """In memory and in files, from the log and from what was folded, day by day and all days in one batch."""
    small = -1 if way == "large" else 200_000
    behind = 1 if way == "folded" else 64
    with (
        mock.patch("lakejoin.storage.spark.kept_frames.SMALL", small),
        mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", behind),
    ):
        if way == "at once":
            assert run(_small(tmp_path, ORDERS, select), spark, batch_by="all") == 1
        else:
            for day in ORDERS:
                assert run(_small(tmp_path, [day], select), spark) == 1

    pipeline = _small(tmp_path, (), select)
    expected = AFTER if select == SELECT else [(name, total, len(ids)) for name, total, ids in AFTER]
    assert _rows(pipeline, spark) == expected
    assert check_lake(pipeline, spark, batches=None).passed
    has_log = Lake(pipeline.lake).snapshot("joins/by_customer/subscription_log") is not None
    assert has_log == (select == SELECT)


def test_groups_that_are_declared_later_begin_with_the_rows_there_are(
    tmp_path: Path, spark: SparkSession
) -> None:
    """So do those that are declared otherwise, once they are computed anew."""
    pipeline = _small(tmp_path, [1, 2])
    without = make_pipeline(tmp_path, SMALL_TEXT[: SMALL_TEXT.index("groups:")])
    assert run(without, spark) == 2
    assert run(_small(tmp_path, [3]), spark) >= 1
    assert _rows(pipeline, spark) == AFTER

    other = _small(tmp_path, (), "{most: max(amount)}")
    with pytest.raises(ConfigurationChanged, match=r"groups\.by_customer\.select.*--rebuild by_customer"):
        run(other, spark)
    run(other, spark, rebuild=["by_customer"])

    assert _rows(other, spark) == [("a", 20), ("c", 60), (None, 11)]
    assert check_lake(other, spark, batches=None).passed


def test_record_that_an_aggregate_cannot_be_computed_for_is_quarantined_and_healed(
    tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch goes on; a sum that is too great is null and told."""
    select = "{numbers: sum(cast(text as int)), total: sum(amount)}"
    orders = {
        1: [
            ("u", 1, "a", 1, "10"),
            ("u", 2, "a", 2, "x"),
            ("u", 3, "b", 2**62, "3"),
            ("u", 4, "b", 2**62, "4"),
        ]
    }
    pipeline = _small(tmp_path, [1], select, orders)

    assert run(pipeline, spark) == 1

    assert _rows(pipeline, spark) == [("a", 10, 1), ("b", 7, None)]
    (batch,) = Journal(Lake(pipeline.lake)).published
    assert batch.tables["orders"]["quarantined"] == 1
    assert batch.joins["by_customer"]["uncomputed"] == 1
    assert "by_customer: what is selected" in caplog.text
    (bad,) = spark.read.format("delta").load(Lake(pipeline.lake).path("quarantine")).collect()
    assert bad["detail"].startswith("numbers of by_customer: cast(text as int) cannot be computed from ")

    mended = _small(tmp_path, (), select.replace("cast", "try_cast"))
    run(mended, spark, rebuild=["by_customer"])
    list(retry(mended, lambda: spark, known(mended, ())))

    assert _rows(mended, spark) == [("a", 10, 3), ("b", 7, None)]


def test_groups_are_shown_and_counted(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `show`, with the store of what rows are in which group, and by `status`."""
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)
    path = str(_small(tmp_path, [1]).path)

    def said(*arguments: str) -> str:
        found = CliRunner().invoke(app, list(arguments))
        assert found.exit_code == 0, found.output
        return found.stdout

    assert "groups by_customer: orders by customer, computed from their rows" in said("validate", path)
    ran = said("run", path)
    assert "Changes by groups" in ran
    assert "Answers by join" not in ran
    shown = said("show", path, "by_customer", "--format", "csv")
    assert shown.splitlines() == ["customer,total,ids", "\\N,30,[3]", 'a,30,"[1,2]"', "b,\\N,[4]"]
    store = said("show", path, "by_customer.subscription_store", "--format", "jsonl")
    assert [json.loads(line)["primary_key"] for line in store.splitlines()] == [3, 1, 2, 4]
    assert "Changes by groups" in said("status", path)


@pytest.mark.parametrize("dtype", ["decimal(28,20)", "decimal(18,8)", "bigint"])
def test_adjusted_sum_is_exact_to_its_last_digit(dtype: str, tmp_path: Path, spark: SparkSession) -> None:
    """Of what came nothing stays behind when the last row goes, and of what stays nothing is rounded."""
    text = SMALL_TEXT.replace("SELECT", "{total: sum(amount)}").replace(
        "amount: bigint", f'amount: "{dtype}"'
    )
    scale = {"decimal(28,20)": 20, "decimal(18,8)": 8, "bigint": 0}[dtype]
    least = str(Decimal(5).scaleb(-scale))
    days = [
        [
            {"op": "u", "id": 1, "customer": "a", "amount": least},
            {"op": "u", "id": 2, "customer": "b", "amount": least},
        ],
        [{"op": "u", "id": 3, "customer": "b", "amount": least}, {"op": "d", "id": 1}],
    ]
    for day, lines in enumerate(days, start=1):
        write_lines(tmp_path / "orders" / f"2024-01-{day:02}.jsonl", lines)
        pipeline = make_pipeline(tmp_path, text)
        assert run(pipeline, spark) == 1

    assert _rows(pipeline, spark) == [("b", Decimal(10).scaleb(-scale))]
    assert check_lake(pipeline, spark, batches=None).passed
