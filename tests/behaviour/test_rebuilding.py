"""A join that is declared anew is computed anew from the rows of its tables, and kept up to date from then on."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, commits
from faults.shop import CONFIGURATION, copy_of, joins, make_pipeline, make_shop, run, texts, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.cli.show_rows import Asked, open_shown
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.active_joins import joins_to_rebuild
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.orchestration.show.key_ranges import Range
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changelog_of, joined_of
from lakejoin.storage.stores.pipeline.tables import subscription_store

pytestmark = pytest.mark.spark

OVER = "  over: {left: left, right: customers, foreign_key: [right_city], how: left, prefix: over_}\n"
BEFORE = CONFIGURATION + OVER
CHANGES = {
    "left: {left: orders, right: customers, foreign_key: [customer], how: left}": (
        "left: {left: orders, right: customers, foreign_key: [upper(customer)], how: left, prefix: c_}"
    ),
    "[right_city]": "[c_city]",
}
TWO_DAYS, THREE_DAYS = ("2024-01-01", "2024-01-02"), ("2024-01-01", "2024-01-02", "2024-01-03")


def declare(folder: Path, text: str, days: tuple[str, ...]) -> Pipeline:
    """Write a pipeline of this text with the input of some days."""
    make_shop(folder, days)
    return make_pipeline(folder, text)


def changed(text: str) -> str:
    """The text with another foreign key and prefix of a join, and what that means for the join over it."""
    for old, new in CHANGES.items():
        assert old in text
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """A lake of two days whose stores are folded."""
    pipeline = declare(tmp_path_factory.mktemp("rebuilding") / "before", BEFORE, TWO_DAYS)
    run(pipeline, spark)
    assert "subscription_store" in str(
        [s.step.table for s in maintain(pipeline, lambda: spark, everything=True)]
    )
    return pipeline


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> list[dict[str, list[str]]]:
    """What a lake holds after two days and after three that always was declared like that."""
    folder = tmp_path_factory.mktemp("rebuilding") / "anew"
    found = []
    for days in (TWO_DAYS, THREE_DAYS):
        pipeline = declare(folder, changed(BEFORE), days)
        run(pipeline, spark)
        found.append(joins(pipeline, spark))
    return found


@pytest.mark.slow
def test_rebuilt_join_equals_one_that_always_was_declared_so(
    before: Pipeline, expected: list[dict[str, list[str]]], tmp_path: Path, spark: SparkSession
) -> None:
    """With the joins over it, whatever its stores were folded to, and after the next batch as well."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", changed(BEFORE), TWO_DAYS)
    with pytest.raises(ConfigurationChanged, match=r"lakejoin.yaml --rebuild left`"):
        run(pipeline, spark)

    assert run(pipeline, spark, rebuild=["left"]) == 1
    assert joins(pipeline, spark) == expected[0]
    assert list(Journal(Lake(pipeline.lake)).last.joins["left"]) == list(
        Journal(Lake(before.lake)).last.joins["left"]
    )
    assert run(pipeline, spark) == 0
    pipeline = declare(tmp_path / "shop", changed(BEFORE), THREE_DAYS)
    assert run(pipeline, spark) == 1
    assert joins(pipeline, spark) == expected[1]


@pytest.mark.slow
def test_readers_see_the_old_result_until_the_new_one_is_complete(
    before: Pipeline, expected: list[dict[str, list[str]]], tmp_path: Path, spark: SparkSession
) -> None:
    """A plain reader of the table, wherever the rebuild is cut off; the next run completes it without being told."""
    old = copy_of(before, tmp_path / "shop")
    path = Lake(old.lake).path(joined_of("left"))
    seen = texts(spark.read.format("delta").load(path))
    pipeline = declare(tmp_path / "shop", changed(BEFORE), TWO_DAYS)
    for crash in range(5):  # the plan, then logs
        with commits(crash if crash == 0 else 0) as counted, pytest.raises(Crash):
            run(pipeline, spark, rebuild=["left"] if crash == 0 else [])
        assert len(counted.made) == 1
        assert joined_of("left") not in counted.made[0]
        assert texts(spark.read.format("delta").load(path)) == seen
    assert run(pipeline, spark) == 1
    assert joins(pipeline, spark) == expected[0]


@pytest.mark.slow
def test_rebuilt_join_is_read_without_the_subscriptions_that_it_had(
    before: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Its old store stays where it is until the next fold; checks and readers pass over it before the next batch."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", changed(BEFORE), TWO_DAYS)
    assert run(pipeline, spark, rebuild=["left"]) == 1

    checked = check_lake(pipeline, spark, batches=None)
    broken = {name: [r.rule for r in found if not r.success] for name, found in checked.results.items()}
    assert not any(broken.values()), broken
    snapshot, join = published_snapshot(Journal(Lake(pipeline.lake))), pipeline.join_spec("left")
    keys = [entry.key for entry in subscription_store(Lake(pipeline.lake), snapshot, join).all()]
    assert keys
    assert [
        key for key in keys if key[0] != key[0].upper()
    ] == []  # by what it had, customers were as they came


@pytest.mark.slow
def test_batch_that_fails_at_a_join_is_finished_without_it(
    before: Pipeline, expected: list[dict[str, list[str]]], tmp_path: Path, spark: SparkSession
) -> None:
    """Then the join begins anew from all rows, those of the batch included."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", BEFORE, THREE_DAYS)
    with commits(4), pytest.raises(Crash):
        run(pipeline, spark)
    pipeline = declare(tmp_path / "shop", changed(BEFORE), THREE_DAYS)
    with pytest.raises(ConfigurationChanged):
        run(pipeline, spark)
    assert run(pipeline, spark, rebuild=["left"]) == 2
    assert joins(pipeline, spark) == expected[1]


@pytest.mark.slow
def test_table_of_another_configuration_is_not_shown_as_if_it_were_of_this_one(
    before: Pipeline, tmp_path: Path
) -> None:
    """Its columns and rows mean something else."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", changed(BEFORE), TWO_DAYS)
    asked = Asked("left", Range(), None, None, None, everything=False, internal=False)
    with pytest.raises(ConfigurationChanged, match=r"joins\.left\.foreign_key: changed since batch 2"):
        open_shown(pipeline, asked)


@pytest.mark.slow
def test_joins_over_a_join_are_rebuilt_with_it(before: Pipeline) -> None:
    """In their order; and a name that is no join is refused with those there are."""
    assert joins_to_rebuild(before, ["left"]) == ("left", "over")
    assert joins_to_rebuild(before, ["over", "inner"]) == ("inner", "over")
    with pytest.raises(WrongUsage, match=r"no join 'lefd'; did you mean 'left'\?"):
        joins_to_rebuild(before, ["lefd"])


@pytest.mark.slow
def test_changelog_begins_anew_with_the_join_though_it_was_not_kept_then(
    before: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """It has the emissions since it is kept again, in the columns of today."""
    copy_of(before, tmp_path / "shop")
    without = BEFORE.replace("how: inner, changelog: true}", "how: inner, prefix: c_}")
    run(declare(tmp_path / "shop", without, TWO_DAYS), spark, rebuild=["inner"])
    again = without.replace("prefix: c_}", "prefix: c_, changelog: true}")
    pipeline = declare(tmp_path / "shop", again, THREE_DAYS)
    run(pipeline, spark)
    kept = spark.read.format("delta").load(Lake(pipeline.lake).path(changelog_of("inner")))
    assert "c_city" in kept.columns
    assert {row["_lj_batch"] for row in kept.collect()} == {Journal(Lake(pipeline.lake)).last.batch}


@pytest.mark.slow
def test_what_a_join_left_in_a_batch_that_ended_without_it_stops_no_later_run(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Its changelog stays from that batch alone; kept again, it has the emissions since then and none of the batch."""
    without = BEFORE.replace("how: inner, changelog: true}", "how: inner, prefix: c_}")
    pipeline = declare(tmp_path / "shop", BEFORE, TWO_DAYS)
    with commits("joins/inner/changelog"), pytest.raises(Crash):
        run(pipeline, spark)
    (inner,) = [line for line in BEFORE.splitlines(keepends=True) if line.startswith("  inner:")]
    run(declare(tmp_path / "shop", BEFORE.replace(inner, ""), TWO_DAYS), spark)
    run(declare(tmp_path / "shop", without, TWO_DAYS), spark, rebuild=["inner"])
    run(declare(tmp_path / "shop", without, THREE_DAYS), spark)

    again = without.replace("prefix: c_}", "prefix: c_, changelog: true}")
    order = {"op": "c", "id": 9, "customer": "ada", "amount": 90, "at": "2024-01-04T12:00:00Z"}
    write_lines(tmp_path / "shop" / "orders" / "2024-01-04.jsonl", [order])
    pipeline = declare(tmp_path / "shop", again, THREE_DAYS)
    run(pipeline, spark)
    kept = spark.read.format("delta").load(Lake(pipeline.lake).path(changelog_of("inner")))
    assert {row["_lj_batch"] for row in kept.collect()} == {Journal(Lake(pipeline.lake)).last.batch}
