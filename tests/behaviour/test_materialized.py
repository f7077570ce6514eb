"""Tables of results that are kept as the file declares: partitioned, clustered, without deletion vectors, described."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from faults.shop import arrive, content, make_pipeline, run
from orchestration.checks.check_lake import check_lake
from orchestration.config import Pipeline
from orchestration.maintenance.folds import put_together
from orchestration.maintenance.maintain import maintain
from storage.delta_table.compaction import small_files
from storage.errors import CatalogUnusable, ConfigurationChanged
from storage.lake.journal import Journal
from storage.lake.layout import Lake, history_of, joined_of

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
            "at": f"2024-01-0{day}",
        }
        for n in range(3)
    ]
    return {"orders": orders, "customers": customers, "visits": visits}


def _undeclared(text: str, only: tuple[str, ...] = ()) -> str:
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
    ("seed", "days"), [(1, 3), *[pytest.param(seed, 6, marks=pytest.mark.slow) for seed in range(2, 5)]]
)
def test_rows_are_the_same_however_their_table_is_kept(
    seed: int, days: int, tmp_path: Path, spark: SparkSession
) -> None:
    """Beside the same pipeline with tables as they are by default: every row of every table after every batch."""
    chance = random.Random(seed)
    kept, usual = make_pipeline(tmp_path / "kept", TEXT), make_pipeline(tmp_path / "usual", _undeclared(TEXT))
    for day in range(1, days + 1):
        records = _records(chance, day)
        for pipeline in (kept, usual):
            arrive(pipeline.path.parent, day, KEYS, records)
            assert run(pipeline, spark) == 1
        assert content(kept, spark) == content(usual, spark), (seed, day)
    assert check_lake(kept, spark, batches=None).passed
    assert run(kept, spark, rebuild=["sold", "near", "days"]) == 1
    assert run(usual, spark, rebuild=["sold", "near", "days"]) == 1
    assert content(kept, spark) == content(usual, spark)
    _check_kept(kept)
    before = content(kept, spark)
    lake, journal = Lake(kept.lake), Journal(Lake(kept.lake))
    for table in [joined_of("sold"), joined_of("near"), history_of("days"), joined_of("counted")]:
        put_together(kept, spark, lake, journal, table, small_files(lake.path(table)))
    list(maintain(kept, spark, everything=True))
    assert content(kept, spark) == before
    _check_kept(kept)
    arrive(kept.path.parent, days + 1, KEYS, _records(chance, days + 1))
    assert run(kept, spark) == 1
    assert check_lake(kept, spark, batches=None).passed


def _check_kept(pipeline: Pipeline) -> None:
    """Each table is as declared."""
    sold = _table(pipeline, joined_of("sold"))
    assert sold.metadata().partition_columns == ["day", "right_vip"]
    assert sold.metadata().description == 'What was sold: it\'s "all" \\ here'
    assert {
        "owner.team": "sales",
        "delta.checkpointInterval": "20",
    }.items() <= sold.metadata().configuration.items()
    comments = {
        field["name"]: field["metadata"].get("comment")
        for field in json.loads(sold.schema().to_json())["fields"]
    }
    assert (comments["day"], comments["right_country"], comments["id"]) == (
        "when it was sold",
        "the customer's",
        None,
    )
    history = _table(pipeline, history_of("sold")).metadata()
    assert (history.partition_columns, history.description) == (
        ["right_vip"],
        "what was sold, and what was thought so",
    )
    for name in (joined_of("plain"), history_of("plain"), joined_of("counted")):
        assert "deletionVectors" not in _features(_table(pipeline, name))
    assert {"clustering", "rowTracking", "deletionVectors"} <= _features(_table(pipeline, joined_of("near")))
    assert _table(pipeline, joined_of("seen")).metadata().partition_columns == ["day"]
    for name in (joined_of("days"), history_of("days")):
        assert _table(pipeline, name).metadata().partition_columns == ["day"]


def test_table_that_is_there_is_brought_in_line_with_the_next_batch(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Partitions apart, which are refused with the command that makes them."""
    chance = random.Random(9)
    pipeline = make_pipeline(tmp_path, _undeclared(TEXT))
    arrive(tmp_path, 1, KEYS, _records(chance, 1))
    arrive(tmp_path, 2, KEYS, _records(chance, 2))
    run(pipeline, spark)
    declared = make_pipeline(tmp_path, TEXT)
    with pytest.raises(
        ConfigurationChanged, match=r"partition_by.*changed, and .*has no partitions.*--rebuild sold"
    ):
        run(declared, spark)
    text = TEXT.replace("partition_by: [day, right_vip]", "cluster_by: [id]").replace(
        "partition_by: [right_vip], ", ""
    )
    text = text.replace("partition_by: [day], ", "").replace(
        "history: {materialized: {partition_by: [day]}}", "history: true"
    )
    declared = make_pipeline(tmp_path, text.replace("    materialized: {partition_by: [day]}\n", ""))
    before = content(declared, spark)
    arrive(tmp_path, 3, KEYS, {})
    run(declared, spark)
    after = content(declared, spark)
    results = [name for name in after if name.startswith("joins/")]
    assert {name: after[name] for name in results} == {name: before[name] for name in results}
    assert "deletionVectors" not in _features(_table(declared, joined_of("plain")))
    assert _table(declared, joined_of("sold")).metadata().description
    arrive(tmp_path, 4, KEYS, _records(chance, 4))
    run(declared, spark)
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
