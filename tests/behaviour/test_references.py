"""Where foreign keys point, as the commands and the checks tell it, beside the answer of a few lines of Python."""

import json
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster import DagsterInstance
from pyspark.sql import SparkSession

from faults.shop import arrive, make_pipeline, run
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.show_rows import open_report
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.show.references import DANGLING, FAN_OUT, UNREFERENCED, Report
from reference.changed_rows import ChangedRows, Row

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, item: string, gift: string, size: int}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, seen: int}
    key: [name]
  items:
    source: {format: jsonl, path: "items/{date}.jsonl"}
    columns: {code: string, size: int, price: int}
    key: [code, size]
joins:
  placed: {left: orders, right: customers, foreign_key: [customer], how: inner, prefix: c_, max_dangling: 30 %}
  priced: {left: orders, right: items, foreign_key: [item, size], how: left, max_dangling: 0.3, resolution: highwater}
  over: {left: placed, right: items, foreign_key: [item, size], how: inner, max_dangling: 0.3}
  board:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [customer], how: inner, max_dangling: 0.3}
      item: {table: items, foreign_key: [item, size], how: left, max_dangling: 0}
      gift: {table: items, foreign_key: [gift, size], how: left}
  grouped: {left: orders, right: codes, foreign_key: [item], how: left, max_dangling: 0.3}
groups:
  codes: {of: items, by: [code], select: {sizes: count(*)}}
"""
KEYS = {"orders": "id", "customers": "name", "items": ("code", "size")}
Told = list[dict[str, Any]]


class Model(ChangedRows):
    """The tables as they are, and what refers to what."""

    def _references(self, join: str) -> dict[str, tuple[dict[Any, list[int]], Iterable[Any]]]:
        """Of each right side the left keys by foreign key, and the right keys."""
        customers, items, orders = self._rows["customers"], self._rows["items"], self._rows["orders"].values()
        customer = _by_key(orders, lambda row: row["customer"])
        item = _by_key(orders, lambda row: (row["item"], row["size"]))
        if join == "placed":
            return {"": (customer, customers)}
        if join == "priced":
            return {"": (item, items)}
        if join == "grouped":
            return {"": (_by_key(orders, lambda row: row["item"]), {code for code, _ in items})}
        if join == "over":
            placed = [row for row in orders if row["customer"] in customers]
            return {"": (_by_key(placed, lambda row: (row["item"], row["size"])), items)}
        gift = _by_key(orders, lambda row: (row["gift"], row["size"]))
        return {"customer": (customer, customers), "item": (item, items), "gift": (gift, items)}

    def told(self, join: str, report: Report) -> Told:
        """The rows of a report, in their order."""
        found: Told = []
        for side, (referred, right) in self._references(join).items():
            of_side = {"side": side} if side else {}
            if report is DANGLING:
                rows = [
                    {"foreign_key": key, "left_rows": len(left), "left_key": min(left)}
                    for key, left in referred.items()
                    if key not in right
                ]
            elif report is FAN_OUT:
                rows = [
                    {"right_key": key, "left_rows": len(referred[key])} for key in right if key in referred
                ]
            else:
                rows = [{"right_key": key} for key in right if key not in referred]
            found += [{**of_side, **row, report.key: _shown(row[report.key], side)} for row in rows]
        return sorted(found, key=lambda row: (-row.get("left_rows", 0), row.get("side", ""), row[report.key]))

    def counts(self, join: str) -> list[tuple[str, int, int]]:
        """Of each right side its name, the left rows that refer to anything, and those that refer to no right row."""
        return [
            (f"{join}.{side}" if side else join, sum(map(len, referred.values())),
             sum(len(left) for key, left in referred.items() if key not in right))
            for side, (referred, right) in self._references(join).items()
        ]  # fmt: skip


def _by_key(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, list[int]]:
    """The left keys of rows by foreign key; one of which a part is null refers to nothing."""
    found: dict[Any, list[int]] = {}
    for row in rows:
        value = key(row)
        if value is not None and not (isinstance(value, tuple) and None in value):
            found.setdefault(value, []).append(row["id"])
    return found


def _shown(key: Any, side: str) -> Any:
    """A key as JSON lines have it: a composite one is an array, and of a star, whose keys differ in type, its text."""
    if isinstance(key, str):
        return key
    return json.dumps(key, separators=(",", ":")) if side else list(key)


def _records(chance: random.Random, table: str) -> list[Row]:
    """Some changes of a table: few keys and values, so that rows come back, and foreign keys meet them or do not."""
    found: list[Row] = []
    for _ in range(chance.randrange(2, 8)):
        if table == "orders":
            row: Row = {
                "id": chance.randrange(9), "customer": chance.choice(["a", "b", "c", None]),
                "item": chance.choice(["p", "q", None]), "gift": chance.choice(["p", "q", "y", None]),
                "size": chance.choice([1, 2, None]),
            }  # fmt: skip
        elif table == "customers":
            row = {"name": chance.choice("abd"), "seen": chance.randrange(2)}
        else:
            row = {"code": chance.choice("pqr"), "size": chance.randrange(1, 3), "price": chance.randrange(3)}
        found.append({"op": chance.choice("uuud"), **row})
    return found


def _told(pipeline: Pipeline, join: str, report: Report, batch: int | None = None) -> Told:
    return [json.loads(line) for line in open_report(pipeline, join, report, batch).lines("jsonl", None)]


def _warned(pipeline: Pipeline) -> set[str]:
    """The joins, and right sides of a star, of which Dagster's check warns; none of them fails the run."""
    job = pipeline_definitions(EmbeddedPipeline(pipeline), datetime(2024, 2, 1, tzinfo=UTC)).resolve_job_def(
        "shop_job"
    )
    known = job.asset_layer.asset_graph.asset_check_keys
    checks = job.get_subset(
        asset_check_selection={key for key in known if key.name.endswith("dangling")}, asset_selection=set()
    )
    with DagsterInstance.ephemeral() as instance:
        done = checks.execute_in_process(instance=instance)
    assert done.success
    return {
        f"{found.asset_key.path[-1]} {found.check_name.removesuffix('dangling').rstrip('_')}".strip()
        for found in done.get_asset_check_evaluations()
        if not found.passed
    }


@pytest.mark.parametrize(
    ("seed", "days", "joins"),
    [
        (1, 2, ("board",)),
        *[
            pytest.param(seed, 5, ("placed", "priced", "over", "board"), marks=pytest.mark.slow)
            for seed in range(2, 5)
        ],
        pytest.param(5, 3, ("grouped",), marks=pytest.mark.slow),
    ],
)
def test_reports_tell_what_refers_to_what(
    seed: int, days: int, joins: tuple[str, ...], tmp_path: Path, spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """All sides change at once, deleted rows come back; each batch can still be asked for when later ones are there."""
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)
    chance, model = random.Random(seed), Model(KEYS)
    text = yaml.safe_load(TEXT)
    text["joins"] = {name: text["joins"][name] for name in joins}
    text["groups"] = text["groups"] if "grouped" in joins else {}
    pipeline = make_pipeline(tmp_path, yaml.safe_dump(text, sort_keys=False))
    expected = {}
    for day in range(1, days + 1):
        records = {table: _records(chance, table) for table in KEYS}
        for table, lines in records.items():
            model.change(table, lines)
        arrive(tmp_path, day, KEYS, records)
        run(pipeline, spark)
        for join in joins:
            for report in (DANGLING, FAN_OUT, UNREFERENCED):
                expected[day, join, report] = model.told(join, report)
    assert {report for (_, _, report), told in expected.items() if told} == {DANGLING, FAN_OUT, UNREFERENCED}
    for (day, join, report), told in expected.items():
        batch = None if day == days else day
        assert _told(pipeline, join, report, batch) == told, (seed, day, join, report.name)

    counted = [count for join in joins for count in model.counts(join) if count[0] != "board.gift"]
    checked = check_lake(pipeline, spark, batches=1)
    assert [(found.name, found.left_rows, found.dangling) for found in checked.dangling] == counted
    allowed = {"board.item": 0.0}
    exceeded = {name for name, rows, dangle in counted if dangle > allowed.get(name, 0.3) * rows}
    assert {found.name for found in checked.dangling if found.exceeds} == exceeded
    assert checked.passed == (not exceeded)
    assert _warned(pipeline) == {name.replace(".", " ") for name in exceeded}
