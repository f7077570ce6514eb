"""The history of a join by event time: beside a few lines of Python over all records that were accepted so far."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from faults.shop import arrive, make_chosen, make_pipeline, run
from faults.shop import texts as texts_of
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.cli.show_rows import Asked, open_shown
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.maintenance.ended_versions import ended_versions
from lakejoin.orchestration.maintenance.folds import fold
from lakejoin.orchestration.runs.abandon import abandon
from lakejoin.orchestration.show.key_ranges import Range
from lakejoin.orchestration.show.status import lake_status
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, versions_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.changelog.versions import intervals
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT
from lakejoin.transforms.model.schemas import BATCH, DELETED, VALID_FROM, VALID_TO, is_internal

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
    history: {as_of: event_time, is_current: true, materialized: {deletion_vectors: false}}
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


def _shop(folder: Path, *, history: str = "{as_of: event_time}", how: str = "left") -> Pipeline:
    """A pipeline with one join of orders with customers, which both remember two days."""
    text = f"""\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl", absent: clear}}
    columns: {{id: bigint, customer: string, amount: int, at: timestamp}}
    key: [id]
    event_time: at
    versioned: {{history_retention: 2 days}}
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl", absent: clear}}
    columns: {{name: string, country: string, at: timestamp}}
    key: [name]
    event_time: at
    versioned: {{history_retention: 2 days}}
joins:
  sold:
    left: orders
    right: customers
    foreign_key: [customer]
    how: {how}
    select: [id, amount, right_country]
    history: {history}
"""
    return make_pipeline(folder, text)


def _order(time: str, amount: int | None, customer: str = "a", key: int = 1) -> Row:
    op = "d" if amount is None else "u"
    return {"op": op, "id": key, "customer": customer, "amount": amount, "at": _time(time).isoformat()}


def _customer(time: str, country: str | None, name: str = "a") -> Row:
    op = "d" if country is None else "u"
    return {"op": op, "name": name, "country": country, "at": _time(time).isoformat()}


def _time(text: str) -> datetime:
    """A time of January 2024: `5` or `5 12:30`."""
    return datetime.strptime(f"2024-01-{text if ':' in text else text + ' 00:00'}", "%Y-%m-%d %H:%M").replace(
        tzinfo=UTC
    )


def _come(folder: Path, day: int, orders: Iterable[Row] = (), customers: Iterable[Row] = ()) -> None:
    arrive(folder, day, ("orders", "customers"), {"orders": orders, "customers": customers})


def _short(time: datetime | None) -> str | None:
    return None if time is None else f"{time.day}" + f" {time:%H:%M}" * (time.hour + time.minute > 0)


def spells(pipeline: Pipeline, spark: SparkSession) -> list[tuple[int, str | None, str | None, str | None]]:
    """Amount, country, since and until."""
    found = sorted(history(pipeline, spark, "sold"), key=lambda version: version[1])
    return [
        (row["amount"], row["right_country"], _short(since), _short(until)) for row, since, until in found
    ]


def _shown(pipeline: Pipeline, time: datetime) -> list[str]:
    asked = Asked("sold", Range(), None, None, time, everything=True, internal=False)
    return [line.strip() for line in open_shown(pipeline, asked).lines("csv", None)][1:]


def test_late_record_revises_what_was_true(tmp_path: Path, spark: SparkSession) -> None:
    """Of both sides, also in the middle of what had ended; one that has expired does not."""
    pipeline = _shop(tmp_path)
    _come(tmp_path, 3, [_order("2", 10), _order("3", 20)], [_customer("1", "de")])
    run(pipeline, spark)
    assert spells(pipeline, spark) == [(10, "de", "2", "3"), (20, "de", "3", None)]

    _come(tmp_path, 4, [_order("2 12:00", 15)], [_customer("2 06:00", "fr"), _customer("2 18:00", None)])
    run(pipeline, spark)
    expected = [
        (10, "de", "2", "2 06:00"), (10, "fr", "2 06:00", "2 12:00"), (15, "fr", "2 12:00", "2 18:00"),
        (15, None, "2 18:00", "3"), (20, None, "3", None),
    ]  # fmt: skip
    assert spells(pipeline, spark) == expected
    assert [_shown(pipeline, _time(time)) for time in ("2 12:00", "2 20:00", "4")] == [
        ["1,15,fr"], ["1,15,\\N"], ["1,20,\\N"],
    ]  # fmt: skip
    with pytest.raises(WrongUsage, match="before what is known of sold: its history begins 2024-01-02"):
        _shown(pipeline, _time("1 12:00"))
    assert settled(pipeline, "sold") == _time("2 18:00") - timedelta(days=2)

    _come(tmp_path, 5, [_order("5", 30), _order("2 23:59", 99)], [_customer("5", "it"), _customer("2", "us")])
    run(pipeline, spark)
    assert spells(pipeline, spark) == [*expected[:4], (20, None, "3", "5"), (30, "it", "5", None)]
    assert _short(settled(pipeline, "sold")) == "3"
    assert lake_status(pipeline, datetime.now(UTC)).settled == {"sold": _time("3")}
    assert check_lake(pipeline, spark, batches=None).passed
    assert check_lake(pipeline, spark, batches=1).passed


def test_slower_side_finds_what_was_true_then(tmp_path: Path, spark: SparkSession) -> None:
    """Though its table alone would have forgotten that long ago: a fold keeps what the history still asks for."""
    pipeline = _shop(tmp_path, how="inner")
    _come(tmp_path, 3, [_order("1", 10), _order("2", 20)], [_customer("1", "de")])
    run(pipeline, spark)
    _come(tmp_path, 9, [_order("9", 30)])
    run(pipeline, spark)
    fold_versions_of(pipeline, spark, "orders", "customers")
    _come(tmp_path, 10, (), [_customer("1 12:00", "fr"), _customer("8", "it")])
    run(pipeline, spark)
    known = [
        (10, "de", "1", "1 12:00"), (10, "fr", "1 12:00", "2"), (20, "fr", "2", "8"), (20, "it", "8", "9"),
        (30, "it", "9", None),
    ]  # fmt: skip
    assert spells(pipeline, spark) == known
    assert _short(settled(pipeline, "sold")) == "6"

    fold_versions_of(pipeline, spark, "orders", "customers")
    _come(tmp_path, 11, [_order("8 12:00", 25)], [_customer("10", None)])
    run(pipeline, spark)
    assert spells(pipeline, spark) == [
        *known[:3], (20, "it", "8", "8 12:00"), (25, "it", "8 12:00", "9"), (30, "it", "9", "10"),
    ]  # fmt: skip
    run(pipeline, spark, rebuild=("sold",))
    assert spells(pipeline, spark)[:3] == known[:3]
    assert check_lake(pipeline, spark, batches=None).passed


def test_batch_that_is_given_up_leaves_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """What it had revised is as it was, and what it had written anew goes."""
    pipeline = _shop(tmp_path, history="{as_of: event_time, is_current: true}")
    _come(tmp_path, 3, [_order("2", 10)], [_customer("1", "de")])
    run(pipeline, spark)
    was = spells(pipeline, spark)
    _come(tmp_path, 4, [_order("2 12:00", 15), _order("3", None)], [_customer("2 06:00", "fr")])
    with (
        mock.patch.object(Journal, "write_published", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        run(pipeline, spark)
    (tmp_path / "orders" / "2024-01-04.jsonl").unlink()
    (tmp_path / "customers" / "2024-01-04.jsonl").unlink()

    assert [batch.kind for batch in abandon(pipeline, lambda: spark)] == ["abandoned", "bootstrap"]
    assert spells(pipeline, spark) == was == [(10, "de", "2", None)]
    assert check_lake(pipeline, spark, batches=None).passed


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_history_is_the_same_however_the_records_are_cut(
    seed: int, tmp_path: Path, spark: SparkSession
) -> None:
    """With the sequences of the rows that it is made of; the batches that wrote them differ."""
    found = []
    for number, batch_by in enumerate(("date", "all")):
        chance, folder = random.Random(seed), tmp_path / str(number)
        pipeline = make_chosen(folder, TEXT, ("narrow", "whole"))
        for day in range(1, 4):
            arrive(folder, day, KEYS, {table: _records(chance, table, day, 5) for table in KEYS})
        assert run(pipeline, spark, batch_by=batch_by) == (3 if batch_by == "date" else 1)
        found.append(
            [
                texts_of(state_of(pipeline, spark).history(pipeline.keyed_spec(name)).drop(BATCH))
                for name in ("narrow", "whole")
            ]
        )
    assert found[0] == found[1]


def test_history_equals_the_temporal_join_by_sql(tmp_path: Path, spark: SparkSession) -> None:
    """Of the versions that `show` has of both sides; each row of it lies within one of the history."""
    chance, pipeline = random.Random(7), make_chosen(tmp_path, TEXT, ("whole",))
    for day in range(1, 3):
        arrive(tmp_path, day, KEYS, {table: _records(chance, table, day, 12) for table in KEYS})
        run(pipeline, spark)
    state = state_of(pipeline, spark)
    for table in ("orders", "customers"):
        spec = pipeline.tables[table].spec
        intervals(state.versions(spec), spec).where(~F.col(DELETED)).createOrReplaceTempView(table)
    state.history(pipeline.keyed_spec("whole")).createOrReplaceTempView("whole")
    end = "coalesce({}.valid_to, timestamp'9999-12-31')"
    joined = f"""
        SELECT o.id, o.customer, o.item, o.amount, o.note, o.at, c.name AS right_name, c.country AS right_country,
          c.seq AS right_seq, c.at AS right_at, greatest(o.valid_from, c.valid_from) AS since,
          least({end.format("o")}, {end.format("c")}) AS until
        FROM orders o JOIN customers c ON o.customer = c.name
          AND o.valid_from < {end.format("c")} AND c.valid_from < {end.format("o")}"""
    of_history = f"SELECT * EXCEPT ({{}}), valid_from AS since, {end.format('whole')} AS until FROM whole"
    own = ", ".join(c for c in spark.table("whole").columns if c.startswith(("_lj_", "valid_")))
    # every version has a time of its own here, so that none goes on as the next one
    assert texts_of(spark.sql(joined)) == texts_of(spark.sql(of_history.format(own))) != []


def test_history_that_goes_by_another_time_begins_anew(tmp_path: Path, spark: SparkSession) -> None:
    """Which is said; from what both sides remember it has what was before, also before it was declared."""
    _come(tmp_path, 3, [_order("2", 10), _order("3", 20)], [_customer("1", "de")])
    run(_shop(tmp_path, history="true"), spark)
    pipeline = _shop(tmp_path)
    _come(tmp_path, 4, [_order("4", 30)])
    with pytest.raises(
        ConfigurationChanged, match=r"joins\.sold\.history: as_of changed, and .* goes by batches"
    ):
        run(pipeline, spark)
    run(pipeline, spark, rebuild=("sold",))
    known = [(10, "de", "2", "3"), (20, "de", "3", "4"), (30, "de", "4", None)]
    assert spells(pipeline, spark) == known

    _come(tmp_path, 5, [_order("5", 40)])
    run(_shop(tmp_path, history="false"), spark)
    _come(tmp_path, 6, [_order("6", None)])
    run(pipeline, spark)
    assert spells(pipeline, spark) == [*known[:2], (30, "de", "4", "5"), (40, "de", "5", "6")]
    with pytest.raises(ConfigurationChanged, match=r"as_of changed, and .* goes by event time"):
        run(_shop(tmp_path, history="true"), spark)


def test_rows_that_ended_long_before_it_was_settled_go(tmp_path: Path, spark: SparkSession) -> None:
    """With `retention`, and they do not come back where the join begins anew."""
    pipeline = _shop(tmp_path, history="{as_of: event_time, retention: 1 day}")
    _come(
        tmp_path,
        9,
        [_order(f"{day}", day) for day in range(2, 10)],
        [_customer("1", "de"), _customer("9", "fr")],
    )
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    snapshot = finished_state(pipeline, lake, Journal(lake), datetime.now(UTC))
    (found,) = ended_versions(pipeline, lake, Journal(lake), snapshot)
    assert (found.cutoff, found.any) == (_time("6"), False)  # maintenance has removed them
    run(pipeline, spark, rebuild=("sold",))
    assert spells(pipeline, spark) == [
        (5, "de", "5", "6"),
        (6, "de", "6", "7"),
        (7, "de", "7", "8"),
        (8, "de", "8", "9"),
        (9, "fr", "9", None),
    ]
    with pytest.raises(WrongUsage, match="before what is known of sold"):
        _shown(pipeline, _time("4"))
