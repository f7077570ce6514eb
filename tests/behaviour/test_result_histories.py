"""The history of a result: beside what a few lines of Python remember of it after each batch."""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from faults.shop import arrive, make_chosen, make_pipeline, result, run
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.cli.show_rows import Asked, open_shown
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.maintenance.ended_versions import ended_versions
from lakejoin.orchestration.maintenance.folds import fold, put_together
from lakejoin.orchestration.runs.abandon import abandon
from lakejoin.orchestration.show.key_ranges import Range
from lakejoin.storage.delta_table.compaction import small_files
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of, joined_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT, UNTIL
from lakejoin.transforms.model.schemas import (
    BATCH,
    LEFT_SEQUENCE,
    RIGHT_SEQUENCE,
    VALID_FROM,
    VALID_TO,
    is_internal,
)

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", absent: clear}
    columns: {id: bigint, customer: string, item: string, amount: int, note: string}
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
  whole: {left: orders, right: customers, foreign_key: [customer], how: inner, history: true}
  narrow:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    prefix: c_
    select: [{order: id}, amount, c_country]
    where: amount <> 2
    history: {is_current: true}
  pairs:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    result_key: combined
    changelog: true
    history: true
  star:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [customer], how: left}
      item: {table: items, foreign_key: [item], how: inner}
    history: true
  over: {left: narrow, right: items, foreign_key: ["substring('pq', amount, 1)"], how: left, history: true}
groups:
  adjusted: {of: orders, by: [customer], select: {n: count(*), amount: sum(amount)}, history: true}
  computed:
    of: star
    by: [item_price]
    select: {most: max(amount), ids: "collect(id, order by amount)"}
    having: most > 1
    history: {is_current: true}
"""
KEYS = {"orders": "id", "customers": "name", "items": "code"}
OF_RESULT = {
    "whole": ("id",), "narrow": ("order",), "pairs": ("right_name", "id"), "star": ("id",), "over": ("order",),
    "adjusted": ("customer",), "computed": ("item_price",),
}  # fmt: skip
Row = dict[str, Any]


class Remembered:
    """The versions of a result, by what it was after each batch."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key, self._now = key, dict[tuple[Any, ...], tuple[int, Row]]()
        self.ended: list[tuple[Row, int, int | None]] = []

    def become(self, batch: int, rows: Iterable[Row]) -> None:
        """The result is this after a batch."""
        found = {tuple(row[name] for name in self._key): row for row in rows}
        for key, (since, row) in list(self._now.items()):
            if found.get(key) != row:
                self.ended.append((row, since, batch))
                del self._now[key]
        for key, row in found.items():
            self._now.setdefault(key, (batch, row))

    @property
    def versions(self) -> list[str]:
        """All of them."""
        return sorted(map(str, [*self.ended, *[(row, since, None) for since, row in self._now.values()]]))


def _records(chance: random.Random, table: str) -> list[Row]:
    """Some changes of a table: few keys and few values, so that many change nothing."""
    found: list[Row] = []
    for _ in range(chance.randrange(4)):
        if table == "orders":
            row = {"id": chance.randrange(5), "customer": chance.choice(["a", "b", "z", None])}
            row |= {"item": chance.choice(["p", "q", None]), "amount": chance.randrange(1, 4)}
            row |= {"note": chance.choice("xy")}
        elif table == "customers":
            row = {"name": chance.choice("ab"), "country": chance.choice(["de", "fr"]), "seen": 1}
        else:
            row = {"code": chance.choice("pq"), "price": chance.randrange(3)}
        found.append({"op": chance.choice("uuuud"), **row})
    return found


def state_of(pipeline: Pipeline, spark: SparkSession) -> State:
    """The lake as its last batch left it."""
    lake = Lake(pipeline.lake)
    return State(spark, lake, published_snapshot(Journal(lake)))


def history(pipeline: Pipeline, spark: SparkSession, name: str) -> list[Row]:
    """The rows of a history."""
    return [row.asDict() for row in state_of(pipeline, spark).history(pipeline.keyed_spec(name)).collect()]


def versions(rows: Iterable[Row]) -> list[str]:
    """Rows of a history as `Remembered` has them."""
    own = {VALID_FROM, VALID_TO, IS_CURRENT}
    return sorted(
        str(
            (
                {name: value for name, value in row.items() if name not in own and not is_internal(name)},
                row[BATCH],
                row[UNTIL],
            )
        )
        for row in rows
    )


@pytest.mark.parametrize(
    ("seed", "days", "names"),
    [
        (1, 2, ("narrow", "adjusted")),
        *[pytest.param(seed, 6, tuple(OF_RESULT), marks=pytest.mark.slow) for seed in range(2, 6)],
    ],
)
def test_history_has_every_row_that_the_result_ever_had(
    seed: int, days: int, names: tuple[str, ...], tmp_path: Path, spark: SparkSession
) -> None:
    """With the batches between which it had it, and their times; a row that stays as it was has one version."""
    chance, remembered = random.Random(seed), {name: Remembered(OF_RESULT[name]) for name in names}
    pipeline = make_chosen(tmp_path, TEXT, names)
    for day in range(1, days + 1):
        arrive(tmp_path, day, KEYS, {table: _records(chance, table) for table in KEYS})
        if not run(pipeline, spark):
            continue  # nothing came on the first days
        for name in names:
            batch = len(Journal(Lake(pipeline.lake)).published)
            remembered[name].become(batch, result(pipeline, spark, name))
            assert versions(history(pipeline, spark, name)) == remembered[name].versions, (seed, day, name)
    times = {batch.batch: batch.planned_at for batch in Journal(Lake(pipeline.lake)).plans}
    for name in names:
        for row in history(pipeline, spark, name):
            assert row[VALID_FROM].astimezone() == times[row[BATCH]]
            assert (
                row[VALID_TO] is None
                if row[UNTIL] is None
                else row[VALID_TO].astimezone() == times[row[UNTIL]]
            )
            assert row.get(IS_CURRENT, row[UNTIL] is None) == (row[UNTIL] is None)
    assert check_lake(pipeline, spark, batches=None).passed
    assert check_lake(pipeline, spark, batches=1).passed


def _shop(folder: Path, *, select: str = "", history: str = "") -> Pipeline:
    """A pipeline with one join of orders with customers."""
    text = f"""\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl", absent: clear}}
    columns: {{id: bigint, customer: string, amount: int}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl", absent: clear}}
    columns: {{name: string, country: string}}
    key: [name]
joins:
  sold: {{left: orders, right: customers, foreign_key: [customer], how: left{select}{history}}}
"""
    return make_pipeline(folder, text)


def _arrive(folder: Path, day: int, amount: int | None, country: str | None = None) -> None:
    """An order's amount (none: it is deleted) and a customer's country (none: no change) on a day."""
    order: Row = {"op": "d" if amount is None else "u", "id": 1, "customer": "a", "amount": amount}
    customer = [{"op": "u", "name": "a", "country": country}] if country else []
    arrive(folder, day, ("orders", "customers"), {"orders": [order], "customers": customer})


def _amounts(pipeline: Pipeline, spark: SparkSession) -> list[tuple[int, int, int | None]]:
    """The versions of the order: amount, first batch, last batch."""
    rows = history(pipeline, spark, "sold")
    return sorted((row["amount"], row[BATCH], row[UNTIL]) for row in rows)


def test_history_begins_with_the_rows_there_are_and_catches_up(tmp_path: Path, spark: SparkSession) -> None:
    """Declared later, it knows nothing of before; left out for a while, it has no version of what was meanwhile."""
    _arrive(tmp_path, 1, 10)
    run(_shop(tmp_path), spark)
    _arrive(tmp_path, 2, 20)
    kept = _shop(tmp_path, history=", history: true")
    run(kept, spark)
    assert _amounts(kept, spark) == [(20, 2, None)]

    _arrive(tmp_path, 3, 30)
    run(_shop(tmp_path), spark)
    arrive(
        tmp_path, 4, ("orders", "customers"), {"orders": [{"op": "u", "id": 2, "customer": "b", "amount": 5}]}
    )
    kept = _shop(tmp_path, history=", history: true")
    run(kept, spark)
    assert _amounts(kept, spark) == [(5, 4, None), (20, 2, 4), (30, 4, None)]
    times = [plan.planned_at for plan in Journal(Lake(kept.lake)).plans]
    assert _shown(kept, time=times[1]) == ["1,a,20,\\N,\\N"]
    with pytest.raises(WrongUsage, match="batch 3 was run without the history of sold"):
        _shown(kept, time=times[2])
    assert check_lake(kept, spark, batches=None).passed


def test_rebuilt_result_goes_on_with_its_history(tmp_path: Path, spark: SparkSession) -> None:
    """What is as it was has no new version; a result with other columns begins a new history."""
    kept = _shop(tmp_path, history=", history: true", select=", select: [id, amount, right_country]")
    _arrive(tmp_path, 1, 10, "de")
    run(kept, spark)
    _arrive(tmp_path, 2, 20)
    run(kept, spark)
    versions_before = _amounts(kept, spark)
    run(kept, spark, rebuild=("sold",))
    assert _amounts(kept, spark) == versions_before == [(10, 1, 2), (20, 2, None)]

    filtered = _shop(
        tmp_path,
        history=", history: true",
        select=", select: [id, amount, right_country], where: amount < 20",
    )
    run(filtered, spark, rebuild=("sold",))
    assert _amounts(filtered, spark) == [(10, 1, 2), (20, 2, 4)]

    marked = _shop(
        tmp_path,
        history=", history: {is_current: true}",
        select=", select: [id, amount, right_country], where: amount < 20",
    )
    with pytest.raises(
        ConfigurationChanged, match=r"joins\.sold\.history: is_current changed, and .* has no such column"
    ):
        run(marked, spark)
    other = _shop(tmp_path, history=", history: true", select=", select: [id, amount, right_name]")
    run(other, spark, rebuild=("sold",))
    assert _amounts(other, spark) == [(20, 5, None)]


def test_sequences_of_both_rows_stand_beside_a_version(tmp_path: Path, spark: SparkSession) -> None:
    """Those of the changes that made it: where they have no own one, their file and line."""
    kept = _shop(tmp_path, history=", history: true")
    _arrive(tmp_path, 1, 10)
    run(kept, spark)
    _arrive(tmp_path, 2, 10, "de")
    run(kept, spark)

    found = sorted(history(kept, spark, "sold"), key=lambda row: row[BATCH])
    assert [row[RIGHT_SEQUENCE] and row[RIGHT_SEQUENCE]["date"].day for row in found] == [None, 2]
    assert [row[LEFT_SEQUENCE]["date"].day for row in found] == [1, 2]


def _stored(pipeline: Pipeline, spark: SparkSession) -> list[Row]:
    """The history as it is now, whatever is published."""
    table = spark.read.format("delta").load(Lake(pipeline.lake).path(history_of("sold")))
    return [row.asDict() for row in table.collect()]


def _shown(pipeline: Pipeline, *, batch: int | None = None, time: datetime | None = None) -> list[str]:
    asked = Asked("sold", Range(), None, batch, time, everything=True, internal=False)
    return [line.strip() for line in open_shown(pipeline, asked).lines("csv", None)][1:]


def test_result_is_shown_as_it_was_however_long_ago(tmp_path: Path, spark: SparkSession) -> None:
    """Also where a vacuum has removed the files of then; but not before its history began, or what it has forgotten."""
    kept = _shop(tmp_path, history=", history: {retention: 1 day, is_current: true}")
    for day, amount in enumerate((10, 20, None, 30), start=1):
        _arrive(tmp_path, day, amount, "de" if day == 2 else None)
        run(kept, spark)
    lake = Lake(kept.lake)
    times = [plan.planned_at for plan in Journal(lake).plans]
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    put_together(
        kept, spark, lake, Journal(lake), joined_of("sold"), small_files(lake.path(joined_of("sold")))
    )
    spark.sql(f"VACUUM delta.`{lake.path(joined_of('sold'))}` RETAIN 0 HOURS")

    expected = [["1,a,10,\\N,\\N"], ["1,a,20,a,de"], [], ["1,a,30,a,de"]]
    assert [_shown(kept, batch=batch) for batch in (1, 2, 3, 4)] == expected
    assert [_shown(kept, time=time) for time in times] == expected
    with pytest.raises(WrongUsage, match="before what is known of sold: its history begins"):
        _shown(kept, time=times[0] - timedelta(seconds=1))

    later = times[-1] + timedelta(days=2)
    snapshot = replace(finished_state(kept, lake, Journal(lake), later), planned_at=later)
    (found,) = ended_versions(kept, lake, Journal(lake), snapshot)
    assert found.due
    fold(kept, spark, lake, Journal(lake), snapshot, history_of("sold"))
    assert [row["amount"] for row in _stored(kept, spark)] == [30]
    assert not any(found.any for found in ended_versions(kept, lake, Journal(lake), snapshot))


def test_batch_that_is_given_up_leaves_no_version(tmp_path: Path, spark: SparkSession) -> None:
    """Those that it ended go on, and those that it began were never there."""
    kept = _shop(tmp_path, history=", history: {is_current: true}")
    _arrive(tmp_path, 1, 10)
    run(kept, spark)
    _arrive(tmp_path, 2, 20)
    with (
        mock.patch.object(Journal, "write_published", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        run(kept, spark)
    assert sorted((row["amount"], row[UNTIL]) for row in _stored(kept, spark)) == [(10, 2), (20, None)]
    (tmp_path / "orders" / "2024-01-02.jsonl").unlink()

    assert [batch.kind for batch in abandon(kept, lambda: spark)] == ["abandoned", "bootstrap"]
    assert [
        (row["amount"], row[BATCH], row[UNTIL], row[IS_CURRENT]) for row in history(kept, spark, "sold")
    ] == [(10, 1, None, True)]
    assert check_lake(kept, spark, batches=None).passed
