"""Small days that go together in one batch: the same rows, a day that is refused, and the counts of each date."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import CONFIGURATION, joins, make_pipeline, make_shop, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.asset_keys import LakeAsset, lake_assets
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.materializations import Reports
from lakejoin.orchestration.planning.input_checks import TooManyBadRecords
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

pytestmark = pytest.mark.spark

DAYS = ["2024-01-01", "2024-01-02", "2024-01-03"]
READ = {
    "orders": ("records", "quarantined"),
    "customers": ("records", "quarantined"),
}
"""What is counted of a day's records whatever batch they are in."""


@pytest.fixture(scope="module")
def daily(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The shop with a batch for each day."""
    shop = make_shop(tmp_path_factory.mktemp("daily"))
    assert run(shop, spark, batch_by="date") == len(DAYS)
    return shop


@pytest.fixture(scope="module")
def at_once(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The same with its small days together."""
    shop = make_shop(tmp_path_factory.mktemp("at_once"))
    assert run(shop, spark, batch_by="size") == 1
    return shop


def assets(pipeline: Pipeline) -> dict[str, LakeAsset]:
    """The assets by their names."""
    return {"/".join(asset.key.path[1:]): asset for asset in lake_assets(EmbeddedPipeline(pipeline))}


def test_days_together_leave_the_rows_of_daily_batches(
    daily: Pipeline, at_once: Pipeline, spark: SparkSession
) -> None:
    """Of every join; and the batch says which days it had."""
    assert joins(at_once, spark) == joins(daily, spark)
    (batch,) = Journal(Lake(at_once.lake)).published
    assert [day.isoformat() for day in batch.dates] == DAYS


def test_each_date_of_a_batch_is_told_its_own_counts(daily: Pipeline, at_once: Pipeline) -> None:
    """What a day had is told as if it had had a batch of its own; together the dates are the batch."""
    by_day, together = Reports(daily, ()), Reports(at_once, ())
    (batch,) = Journal(Lake(at_once.lake)).published
    of_daily = assets(daily)
    for name, asset in assets(at_once).items():
        told = {day: together.of(asset, 1, day) for day in DAYS}
        assert {facts["dates"] for facts in told.values()} == {f"3 from {DAYS[0]} to {DAYS[-1]}"}
        if name in READ:
            for number, day in enumerate(DAYS, start=1):
                alone = by_day.of(of_daily[name], number, day)
                assert [told[day][count] for count in READ[name]] == [alone[count] for count in READ[name]]
        of_batch = batch.tables.get(asset.name) or batch.joins[asset.name]
        summed = Counter[str]()
        for facts in told.values():
            summed.update({count: value for count, value in facts.items() if count in of_batch})
        assert summed == {count: value for count, value in of_batch.items() if count in summed}, name
        assert summed


def test_what_is_true_of_the_whole_batch_stands_with_its_last_date(at_once: Pipeline) -> None:
    """Rows after it, seconds and emissions: Dagster adds up what each partition tells."""
    reports, joined = Reports(at_once, ()), assets(at_once)["left"]
    first, last = reports.of(joined, 1, DAYS[0]), reports.of(joined, 1, DAYS[-1])
    assert first.keys() == {"status", "batch", "kind", "delta_version", "dates"}
    assert last.keys() > {"emissions", "seconds", "dagster/row_count"}
    assert reports.standing(joined, DAYS[0])["batch"] == 1
    assert reports.standing(joined, "2024-01-04") == {"status": "no input"}


def test_refused_day_does_not_keep_back_the_days_before_it(spark: SparkSession, tmp_path: Path) -> None:
    """They are published, and the refused one is told as if it had come alone; mended, it goes with those behind it."""
    make_shop(tmp_path)
    text = CONFIGURATION.replace("    tombstone_retention", "    max_bad_ratio: 0.1\n    tombstone_retention")
    shop, bad = make_pipeline(tmp_path, text), tmp_path / "orders" / "2024-01-02.jsonl"
    whole = bad.read_text()
    with pytest.raises(TooManyBadRecords, match="table orders: 1 of 9 new records"):
        run(shop, spark, batch_by="size")
    assert [[str(day) for day in batch.dates] for batch in Journal(Lake(shop.lake)).published] == [DAYS[:1]]

    bad.write_text(whole.replace('"id": "six"', '"id": 7'))
    assert run(shop, spark, batch_by="size") == 1
    assert [str(day) for day in Journal(Lake(shop.lake)).plans[-1].dates] == DAYS[1:]
