"""Tables of results that are kept as the file declares: partitioned, clustered, without deletion vectors, described."""

import json
import random
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError
from pyspark.sql import SparkSession

from faults.shop import Content, arrive, content, make_chosen, make_pipeline, run
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.maintenance.folds import put_together
from lakejoin.storage.delta_table.compaction import small_files
from lakejoin.storage.delta_table.vacuum import vacuum, waste
from lakejoin.storage.errors import CatalogUnusable, ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of, joined_of

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, day: date, amount: int}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, country: string, vip: boolean}
    key: [name]
streams:
  visits:
    source: {format: jsonl, path: "visits/{date}.jsonl"}
    columns: {id: bigint, customer: string, day: date, at: timestamp}
    key: [id]
    event_time: at
joins:
  sold:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    changelog: true
    history: {materialized: {partition_by: [right_vip], comment: "what was sold, and what was thought so"}}
    materialized:
      partition_by: [day, right_vip]
      comment: "What was sold: it's \\"all\\" \\\\ here"
      comments: {day: when it was sold, right_country: "the customer's"}
      properties: {owner.team: sales, delta.checkpointInterval: 20}
  plain:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    history: {is_current: true, materialized: {deletion_vectors: false}}
    materialized: {deletion_vectors: false}
  near:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    history: {materialized: {cluster_by: [customer, valid_from]}}
    materialized: {cluster_by: [day, right_country], row_tracking: true}
  seen:
    stream: visits
    table: customers
    foreign_key: [customer]
    how: left
    materialized: {partition_by: [day], comment: visits}
groups:
  days:
    of: orders
    by: [day, customer]
    select: {orders: count(*), most: max(amount)}
    history: {materialized: {partition_by: [day]}}
    materialized: {partition_by: [day]}
  counted:
    of: orders
    by: [customer]
    select: {orders: count(*), amount: sum(amount)}
    materialized: {deletion_vectors: false, row_tracking: true}
"""
KEYS = ("orders", "customers", "visits")


def _records(chance: random.Random, day: int) -> dict[str, list[dict[str, Any]]]:
    """Changes of a day: few keys, so that rows move between partitions, end, and come again."""
    days, names = ["2024-01-01", "2024-01-02", None], ["a", "b", "", None]
    orders = [
        {
            "op": chance.choice("uuud"), "id": chance.randrange(6), "customer": chance.choice(names),
            "day": chance.choice(days), "amount": chance.randrange(5),
        }
        for _ in range(8)
    ]  # fmt: skip
    customers = [
        {
            "op": chance.choice("uuud"), "name": chance.choice(["a", "b", ""]),
            "country": chance.choice(["de", "", None]), "vip": chance.choice([True, False, None]),
        }
        for _ in range(3)
    ]  # fmt: skip
    visits = [
        {
            "id": day * 10 + n,
            "customer": chance.choice(names),
            "day": chance.choice(days),
            "at": f"2024-01-0{day}T12:00:00Z",
        }
        for n in range(3)
    ]
    return {"orders": orders, "customers": customers, "visits": visits}


def _undeclared(text: str) -> str:
    """The same pipeline, or some of its results, with tables as they are by default."""
    whole = yaml.safe_load(text)
    for section in ("joins", "groups"):
        for result in whole[section].values():
            result.pop("materialized", None)
            if "history" in result:
                kept = {"is_current": True} if "is_current" in result["history"] else True
                result["history"] = kept
    return yaml.safe_dump(whole, sort_keys=False)


def _table(pipeline: Pipeline, name: str) -> DeltaTable:
    return DeltaTable(Lake(pipeline.lake).path(name))


def _features(table: DeltaTable) -> set[str]:
    return set(table.protocol().reader_features or ()) | set(table.protocol().writer_features or ())


@pytest.mark.parametrize(
    ("seed", "days", "names"),
    [
        (1, 2, ("sold",)),
        *[pytest.param(seed, 6, (), marks=pytest.mark.slow) for seed in range(2, 5)],
    ],
)
def test_rows_are_the_same_however_their_table_is_kept(
    seed: int, days: int, names: tuple[str, ...], tmp_path: Path, spark: SparkSession
) -> None:
    """Beside the same pipeline with tables as they are by default: every row of every result after every batch."""
    chance = random.Random(seed)
    kept = make_chosen(tmp_path / "kept", TEXT, names)
    usual = make_chosen(tmp_path / "usual", _undeclared(TEXT), names)
    for day in range(1, days + 1):
        records = _records(chance, day)
        for pipeline in (kept, usual):
            arrive(pipeline.path.parent, day, KEYS, records)
            # the first one as a large one, which has its rows in files before its gate
            with mock.patch("lakejoin.storage.spark.kept_frames.SMALL", -1) if day == 1 else nullcontext():
                assert run(pipeline, spark) == 1
        assert _results(kept, spark) == _results(usual, spark), (seed, day)
    rebuilt = [name for name in ("sold", "near", "days") if name in kept.joins]
    for pipeline in (kept, usual):
        assert run(pipeline, spark, rebuild=rebuilt) == 1
    before = _results(kept, spark)
    assert before == _results(usual, spark)
    _check_kept(kept)
    lake = Lake(kept.lake)
    for table in (name for name in before if name.endswith(("joined", "history"))):
        put_together(kept, spark, lake, Journal(lake), table, small_files(lake.path(table)))
    assert _results(kept, spark) == before
    _check_kept(kept)
    assert waste(lake.path("joins/sold/joined"), datetime.now(UTC), ()).files
    vacuum(spark, lake.path("joins/sold/joined"), timedelta(0), ())
    arrive(kept.path.parent, days + 1, KEYS, _records(chance, days + 1))
    assert run(kept, spark) == 1
    assert check_lake(kept, spark, batches=None).passed


def _results(pipeline: Pipeline, spark: SparkSession) -> Content:
    """The tables of all results: those of sources have the time of the batch in their rows."""
    return {name: rows for name, rows in content(pipeline, spark).items() if name.startswith("joins/")}


def _check_kept(pipeline: Pipeline) -> None:
    """Each table is as declared."""
    sold = _table(pipeline, joined_of("sold"))
    metadata = sold.metadata()
    assert metadata.partition_columns == ["day", "right_vip"]
    assert metadata.description == 'What was sold: it\'s "all" \\ here'
    assert {"owner.team": "sales", "delta.checkpointInterval": "20"}.items() <= metadata.configuration.items()
    fields = json.loads(sold.schema().to_json())["fields"]
    comments = {field["name"]: field["metadata"].get("comment") for field in fields}
    assert [comments[name] for name in ("day", "right_country", "id")] == [
        "when it was sold",
        "the customer's",
        None,
    ]
    with pytest.raises(DeltaProtocolError, match="deletionVectors"):
        sold.to_pyarrow_dataset()
    if "plain" in pipeline.joins:
        plain = _table(pipeline, joined_of("plain")).to_pyarrow_dataset().to_table()
        assert plain.num_rows == len(set(plain["id"].to_pylist()))
    history = _table(pipeline, history_of("sold")).metadata()
    assert history.partition_columns == ["right_vip"]
    assert history.description == "what was sold, and what was thought so"
    without = {joined_of("plain"), history_of("plain"), joined_of("counted")}
    parted = {joined_of("days"), history_of("days"), joined_of("seen")}
    for name in filter(Lake(pipeline.lake).has, without | parted):
        assert name not in without or "deletionVectors" not in _features(_table(pipeline, name))
        assert name not in parted or _table(pipeline, name).metadata().partition_columns == ["day"]
    if "near" in pipeline.joins:
        found = _features(_table(pipeline, joined_of("near")))
        assert {"clustering", "rowTracking", "deletionVectors"} <= found


def test_table_that_is_there_is_brought_in_line_with_the_next_batch(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Partitions apart, which are refused with the command that makes them."""
    chance, names = random.Random(9), ("sold", "plain", "near")
    pipeline = make_chosen(tmp_path, _undeclared(TEXT), names)
    arrive(tmp_path, 1, KEYS, _records(chance, 1))
    arrive(tmp_path, 2, KEYS, _records(chance, 2))
    run(pipeline, spark)
    declared = make_chosen(tmp_path, TEXT, names)
    with pytest.raises(
        ConfigurationChanged, match=r"partition_by: changed, and .*has no partitions.*--rebuild sold"
    ):
        run(declared, spark)
    before = _results(declared, spark)[history_of("sold")]
    assert run(declared, spark, rebuild=["sold"]) == 1
    assert _results(declared, spark)[history_of("sold")] == before
    assert _table(declared, history_of("sold")).metadata().partition_columns == ["right_vip"]
    assert _table(declared, joined_of("sold")).metadata().partition_columns == ["day", "right_vip"]
    for day in (3, 4):
        arrive(tmp_path, day, KEYS, _records(chance, day))
    assert run(declared, spark, batch_by="date") == 2
    plain, sold, near = (_table(declared, joined_of(name)) for name in ("plain", "sold", "near"))
    assert "deletionVectors" not in _features(plain)
    assert "deletionVectors" not in _features(_table(declared, history_of("plain")))
    assert sold.metadata().description.startswith("What was sold")
    assert {"clustering", "rowTracking"} <= _features(near)
    assert check_lake(declared, spark, batches=None).passed


def test_name_in_a_catalog_that_forgets_is_refused_before_a_batch(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The session of the tests has one in memory."""
    text = _undeclared(TEXT).replace("  plain:\n", "  plain:\n    materialized: {table: sales.plain}\n")
    pipeline = make_pipeline(tmp_path, text)
    arrive(tmp_path, 1, KEYS, {})
    with pytest.raises(CatalogUnusable, match="in memory, and would forget the table"):
        run(pipeline, spark)
    assert not Journal(Lake(pipeline.lake)).plans
