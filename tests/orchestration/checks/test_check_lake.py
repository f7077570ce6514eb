"""What a check of the last batches looks at: a loss that no recent log has a trace of must be among it."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.expectations.gate import broken_rules
from lakejoin.orchestration.batch.streams import stream_join_batch
from lakejoin.orchestration.checks import check_lake
from lakejoin.orchestration.checks.join_frames import Scope
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.pinned_state import State

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONFIGURATION = """\
name: prices
lake: ./lake
tables:
  prices:
    source: {format: jsonl, path: "prices/{date}.jsonl"}
    columns: {code: string, price: int, at: timestamp}
    key: [code]
    event_time: at
    versioned: {history_retention: 10 days}
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, code: string}
    key: [id]
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, code: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  clicked: {stream: clicks, table: prices, foreign_key: [code], how: left, grace: 1 hour}
  ordered: {left: orders, right: prices, foreign_key: [code], how: inner}
"""


def write_day(folder: Path, day: int, price: int, *clicks: tuple[int, str]) -> None:
    """Write a day: a price, an order of its own, and clicks with their times."""
    name = f"2024-01-{day:02}.jsonl"
    write_lines(
        folder / "prices" / name,
        [{"op": "u", "code": "a", "price": price, "at": f"2024-01-{day:02}T00:00:00Z"}],
    )
    write_lines(folder / "orders" / name, [{"op": "c", "id": day, "code": "a" if day == 1 else "b"}])
    records = [{"op": "c", "id": i, "code": "a", "at": f"2024-01-{day:02}T{at}:00Z"} for i, at in clicks]
    write_lines(folder / "clicks" / name, records)


def broken(
    pipeline: Pipeline, spark: SparkSession, snapshot: Plan, names: Collection[str]
) -> dict[str, set[str]]:
    """The rules that do not hold among the rows that the second batch touched, of what has these names."""
    journal = Journal(Lake(pipeline.lake))
    scope = Scope(journal, State(spark, Lake(pipeline.lake), snapshot), since=1, touched=10)
    return {
        asset.name: {row["rule"] for row in broken_rules(asset.frames, asset.kind, small=asset.small)}
        for asset in check_lake._assets(pipeline, scope, None)
        if asset.name in names
    }


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """A lake whose second batch lost a record that it released, and left an order with an old price."""
    folder = tmp_path_factory.mktemp("checks")
    pipeline = make_pipeline(folder, CONFIGURATION)
    write_day(folder, 1, 10, (1, "10:30"), (2, "10:40"))
    run(pipeline, spark)
    write_day(folder, 2, 20, (3, "12:00"))
    emit = stream_join_batch.emit_records
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stream_join_batch, "emit_records", lambda *rows: emit(*rows).where("id <> 1"))
        # the gate would see an answer that is missing, and cannot see a subscriber that was not found
        patched.setattr(
            "lakejoin.transforms.foreign_key_join.join._messages_to_changed", lambda _, log, *__: log
        )
        run(pipeline, spark)
    return pipeline


def test_what_a_batch_left_undone_is_among_the_rows_that_it_touched(
    damaged: Pipeline, spark: SparkSession
) -> None:
    """A record that came before and left then, and a row whose right row changed and nobody answered."""
    snapshot = published_snapshot(Journal(Lake(damaged.lake)))
    assert broken(damaged, spark, snapshot, ("clicked", "clicked.batches", "ordered")) == {
        "clicked": {"nothing_lost"},
        "clicked.batches": set(),
        "ordered": {"right_row_current"},
    }


def test_joined_row_of_a_stream_that_is_gone_is_missed(damaged: Pipeline, spark: SparkSession) -> None:
    """By the number of rows that its batch emitted, whatever the kind of the join."""
    lake = Lake(damaged.lake)
    snapshot = published_snapshot(Journal(lake))
    DeltaTable.forPath(spark, lake.path(joined_of("clicked"))).delete("id = 2")
    snapshot = replace(snapshot, versions={**snapshot.versions, **lake.versions([joined_of("clicked")])})

    assert broken(damaged, spark, snapshot, ["clicked.batches"]) == {"clicked.batches": {"emissions_kept"}}
