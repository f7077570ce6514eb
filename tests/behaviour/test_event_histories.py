"""The history of a join by event time: beside a few lines of Python over all records that were accepted so far."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from faults.shop import arrive, make_chosen, run
from orchestration.checks.check_lake import check_lake
from orchestration.config import Pipeline
from orchestration.lake_state.fold_progress import finished_state
from orchestration.lake_state.published_snapshot import published_snapshot
from orchestration.maintenance.folds import fold
from storage.lake.journal import Journal
from storage.lake.layout import Lake, versions_of
from storage.state.pinned_state import State
from transforms.foreign_key_join.history import IS_CURRENT
from transforms.model.schemas import VALID_FROM, VALID_TO, is_internal

pytestmark = pytest.mark.spark

RETENTION = timedelta(hours=30)
TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", absent: clear}
    columns: {id: bigint, customer: string, item: string, amount: int, note: string, at: timestamp}
    key: [id]
    event_time: at
    versioned: {history_retention: 30 hours}
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl", absent: clear}
    columns: {name: string, country: string, seq: bigint, at: timestamp}
    key: [name]
    sequence: [seq]
    event_time: at
    versioned: {history_retention: 40 hours}
  items:
    source: {format: jsonl, path: "items/{date}.jsonl", absent: clear}
    columns: {code: string, price: int, at: timestamp}
    key: [code]
    event_time: at
    versioned: {history_retention: 30 hours}
joins:
  whole:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    history: {as_of: event_time}
  narrow:
    left: orders
    right: customers
    foreign_key: [lower(customer)]
    how: left
    prefix: c_
    select: [{order: id}, amount, c_country]
    where: amount <> 2
    history: {as_of: event_time, is_current: true}
  pairs:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    result_key: combined
    select: [id, right_name, amount, right_country]
    history: {as_of: event_time}
  star:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [customer], how: left}
      item: {table: items, foreign_key: [item], how: inner}
    select: [id, amount, customer_country, item_price]
    history: {as_of: event_time}
"""
KEYS = {"orders": "id", "customers": "name", "items": "code"}
RETENTIONS = {
    "orders": timedelta(hours=30),
    "customers": timedelta(hours=40),
    "items": timedelta(hours=30),
}
SIDES = {"star": ("orders", "customers", "items")}
Row = dict[str, Any]


@dataclass
class Versions:
    """What a table knows: of each key and time the row (none: it was deleted) that came last in order."""

    table: str
    known: dict[Any, dict[datetime, tuple[tuple[int, int], Row | None]]] = field(default_factory=dict)
    clock: datetime | None = None
    count: int = 0

    def take(self, record: Row) -> None:
        """Accept a record, unless it has expired."""
        self.count += 1
        time = datetime.fromisoformat(record["at"])
        if (bound := self.bound) is not None and time < bound:
            return
        self.clock = max(self.clock or time, time)
        row = None if record["op"] == "d" else {n: v for n, v in record.items() if n != "op"} | {"at": time}
        at = self.known.setdefault(record[KEYS[self.table]], {})
        order = (record.get("seq", 0), self.count)
        if time not in at or at[time][0] <= order:
            at[time] = (order, row)

    @property
    def bound(self) -> datetime | None:
        """The time before which a record has expired."""
        return None if self.clock is None else self.clock - RETENTIONS[self.table]

    def at(self, key: Any, time: datetime) -> Row | None:
        """The row of a key at a time."""
        times = [since for since in self.known.get(key, {}) if since <= time]
        return self.known[key][max(times)][1] if times else None


def _joined(name: str, tables: Mapping[str, Versions], key: int, time: datetime) -> Row | None:
    """The row that a join has of a left key at a time."""
    order = tables["orders"].at(key, time)
    if order is None:
        return None
    customer = tables["customers"].at(order["customer"], time)
    item = tables["items"].at(order["item"], time)
    match name:
        case "whole":
            right = customer and {f"right_{n}": value for n, value in customer.items()}
            return right and order | right
        case "narrow":
            country = customer and customer["country"]
            row = {"order": key, "amount": order["amount"], "c_country": country}
            return row if order["amount"] != 2 else None
        case "pairs":
            return customer and {
                "id": key, "right_name": customer["name"], "amount": order["amount"],
                "right_country": customer["country"],
            }  # fmt: skip
        case _:
            return item and {
                "id": key, "amount": order["amount"], "customer_country": customer and customer["country"],
                "item_price": item["price"],
            }  # fmt: skip


Version = tuple[Row, datetime, datetime | None]


def expected(name: str, tables: Mapping[str, Versions]) -> list[Version]:
    """What was true when: looked at whenever anything changed."""
    times = sorted({time for table in tables.values() for of in table.known.values() for time in of})
    found: list[Version] = []
    for key in tables["orders"].known:
        was: tuple[Row, datetime] | None = None
        for time in times:
            row = _joined(name, tables, key, time)
            if was is not None and row != was[0]:
                found.append((*was, time))
                was = None
            if row and was is None:
                was = (row, time)
        found += [(*was, None)] if was else []
    return found


def texts(versions: Iterable[Version]) -> list[str]:
    """Rows with their times, in order."""
    return sorted(str((sorted(row.items()), since, until)) for row, since, until in versions)


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def state_of(pipeline: Pipeline, spark: SparkSession) -> State:
    """The lake as its last batch left it."""
    lake = Lake(pipeline.lake)
    return State(spark, lake, published_snapshot(Journal(lake)))


def history(pipeline: Pipeline, spark: SparkSession, name: str) -> list[Version]:
    """The rows of a history with their times."""
    found = []
    for row in state_of(pipeline, spark).history(pipeline.keyed_spec(name)).collect():
        values = {n: _utc(value) for n, value in row.asDict().items()}
        assert values.get(IS_CURRENT, values[VALID_TO] is None) == (values[VALID_TO] is None)
        own = {VALID_FROM, VALID_TO, IS_CURRENT}
        shown = {n: value for n, value in values.items() if n not in own and not is_internal(n)}
        found.append((shown, values[VALID_FROM], values[VALID_TO]))
    return found


def _records(chance: random.Random, table: str, day: int, most: int) -> list[Row]:
    """Some changes of a table around a day: few keys and values, so that many change nothing; some come late."""
    found: list[Row] = []
    for _ in range(chance.randrange(most)):
        row: Row
        if table == "orders":
            row = {"id": chance.randrange(4), "customer": chance.choice(["a", "b", "z", None])}
            row |= {"item": chance.choice(["p", "q", None]), "amount": chance.randrange(1, 4)}
            row |= {"note": chance.choice("xy")}
        elif table == "customers":
            row = {"name": chance.choice("ab"), "country": chance.choice(["de", "fr"])}
            row |= {"seq": chance.randrange(2)}
        else:
            row = {"code": chance.choice("pq"), "price": chance.randrange(3)}
        time = datetime(2024, 1, day, 12, tzinfo=UTC) - timedelta(hours=chance.randrange(-11, 45))
        found.append({"op": chance.choice("uuuud"), **row, "at": time.isoformat()})
    return found


def settled(pipeline: Pipeline, name: str) -> datetime | None:
    """Until when the last batch says that a history is settled."""
    last = Journal(Lake(pipeline.lake)).last
    return last.clocks.get(f"histories/{name}") if last else None


def before(versions: Iterable[Version], time: datetime | None) -> list[str]:
    """What was true before a time."""
    return texts(
        (row, since, None if until is None or until >= time else until)
        for row, since, until in versions
        if time is not None and since < time
    )


def fold_versions_of(pipeline: Pipeline, spark: SparkSession, *tables: str) -> None:
    """Fold the histories of tables, which forgets what nobody reads."""
    lake = Lake(pipeline.lake)
    for table in tables:
        snapshot = finished_state(pipeline, lake, Journal(lake), datetime.now(UTC))
        fold(pipeline, spark, lake, Journal(lake), snapshot, versions_of(table))


@pytest.mark.parametrize(
    ("seed", "days", "names", "folds"),
    [
        (1, 3, ("whole", "narrow"), 0.0),
        *[
            pytest.param(seed, 7, ("whole", "narrow", "pairs", "star"), share, marks=pytest.mark.slow)
            for seed, share in ((2, 0.0), (3, 0.5), (4, 1.0), (5, 0.5), (6, 0.3))
        ],
    ],
)
def test_history_says_what_was_true_when(
    seed: int, days: int, names: tuple[str, ...], folds: float, tmp_path: Path, spark: SparkSession
) -> None:
    """After each batch, whatever came late and whatever folds have forgotten; and what was settled stays."""
    chance, tables = random.Random(seed), {name: Versions(name) for name in KEYS}
    pipeline = make_chosen(tmp_path, TEXT, names)
    was: dict[str, tuple[list[Version], datetime | None]] = {}
    for day in range(1, days + 1):
        came = {table: _records(chance, table, day, 7) for table in KEYS}
        for table, records in came.items():
            for record in records:
                tables[table].take(record)
        arrive(tmp_path, day, KEYS, came)
        run(pipeline, spark)
        for name in names:
            found = history(pipeline, spark, name)
            assert texts(found) == texts(expected(name, tables)), (seed, day, name)
            if name in was:
                assert before(found, was[name][1]) == before(*was[name]), (seed, day, name)
            sides = SIDES.get(name, ("orders", "customers"))
            bounds = [tables[side].bound for side in sides]
            assert settled(pipeline, name) == (None if None in bounds else min(filter(None, bounds)))
            was[name] = (found, settled(pipeline, name))
        fold_versions_of(pipeline, spark, *[table for table in KEYS if chance.random() < folds])
    assert check_lake(pipeline, spark, batches=None).passed
