"""What is damaged is found, and what can be computed anew is."""

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from faults.crashing import WHEN, Crash, When, all_commits, commits
from faults.lakes import cut, newest_commit
from faults.shop import CONFIGURATION, content, copy_of, make_pipeline, make_shop, run, texts, write_lines
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.published_snapshot import check_kept, published_snapshot
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.orchestration.runs.abandon import abandon
from lakejoin.orchestration.runs.repair import Moved, examine, repair
from lakejoin.storage.errors import ConfigurationChanged, LakeInconsistent, SourceNotFound
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import (
    PLAN,
    PUBLISHED,
    QUARANTINE,
    Lake,
    changes_of,
    joined_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DAYS = ("2024-01-01", "2024-01-02", "2024-01-03")
OVER = "  over: {left: left, right: customers, foreign_key: [right_city], how: left, prefix: over_}\n"


def shop(folder: Path, days: tuple[str, ...]) -> Pipeline:
    """The shop with a join over a join, and input of some days."""
    make_shop(folder, days)
    return make_pipeline(folder, CONFIGURATION + OVER)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """A lake of two days, folded once, with the third one waiting."""
    folder = tmp_path_factory.mktemp("repair") / "whole"
    run(shop(folder, DAYS[:1]), spark)
    list(maintain(load(folder / "lakejoin.yaml"), lambda: spark, everything=True))
    run(shop(folder, DAYS[:2]), spark)
    return shop(folder, DAYS)


@pytest.fixture(scope="module")
def expected(
    whole: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> dict[str, list[str]]:
    """The joins after the third day of a lake that was never damaged."""
    pipeline = copy_of(whole, tmp_path_factory.mktemp("repair") / "expected")
    run(pipeline, spark)
    return joins(pipeline, spark)


def joins(pipeline: Pipeline, spark: SparkSession) -> dict[str, list[str]]:
    """Rows of every join without the number of their batch."""
    tables = {name: joined_of(name) for name in pipeline.joins}
    lake = Lake(pipeline.lake)
    return {
        name: texts(spark.read.format("delta").load(lake.path(table)).drop("_lj_batch"))
        for name, table in tables.items()
    }


def newest_file(table: Path) -> Path:
    """A live data file of a table."""
    names = DeltaTable(str(table)).get_add_actions(flatten=True).column("path").to_pylist()
    return table / max(names)


def torn(table: Path) -> None:
    """Leave half of the last commit."""
    commit = newest_commit(table)
    cut(commit, commit.stat().st_size // 2)


def emptied(table: Path) -> None:
    """Leave a commit without a byte, as a power loss may."""
    cut(newest_commit(table), 0)


def shortened(table: Path) -> None:
    """Leave half of a data file."""
    file = newest_file(table)
    cut(file, file.stat().st_size // 2)


def lost(table: Path) -> None:
    """Remove a data file."""
    newest_file(table).unlink()


def removed(table: Path) -> None:
    """Remove the table."""
    shutil.rmtree(table)


def restored(table: Path) -> None:
    """Forget the last commit, as a copy from yesterday does."""
    last = newest_commit(table)
    for file in last.parent.glob(f"*{last.stem}*"):  # with its checksum
        file.unlink()


@pytest.mark.parametrize(
    ("table", "damage", "name"),
    [
        (joined_of("left"), emptied, "left"),
        (joined_of("left"), torn, "left"),
        (joined_of("inner"), shortened, "inner"),
        (subscription_log_of("left"), removed, "left"),
        (subscription_store_of("left"), lost, "left"),
        (rows_of("orders"), lost, "orders"),
        (rows_of("customers"), shortened, "customers"),
    ],
)
def test_repaired_lake_equals_one_that_was_never_damaged(  # noqa: PLR0917
    whole: Pipeline, expected: dict[str, list[str]], table: str, damage: Callable[[Path], None], name: str,
    tmp_path: Path, spark: SparkSession,
) -> None:  # fmt: skip
    """The damage is found with what mends it, repairing does, and the next batch goes on from there."""
    pipeline = copy_of(whole, tmp_path / "shop")
    damage(Path(Lake(pipeline.lake).path(table)))
    found = examine(pipeline)
    assert {(one.table, one.name) for one in found} == {(table, name)}

    done = list(repair(pipeline, lambda: spark, [name]))

    assert examine(pipeline) == []
    assert any(isinstance(one, Moved) and one.table == table for one in done) == (damage is not removed)
    assert run(pipeline, spark) == 1
    assert joins(pipeline, spark) == expected


def put_back(copy: Pipeline, pipeline: Pipeline) -> None:
    """Put back from a copy what cannot be made anew."""
    for table in (PLAN, PUBLISHED, QUARANTINE, *map(changes_of, pipeline.tables)):
        shutil.rmtree(Path(pipeline.lake) / table)
        shutil.copytree(Path(copy.lake) / table, Path(pipeline.lake) / table)


def test_lake_put_back_from_copies_of_what_cannot_be_made_anew(
    whole: Pipeline, expected: dict[str, list[str]], tmp_path: Path, spark: SparkSession
) -> None:
    """Bases that were folded beyond the copies are found, and so are joins; repaired, the lake goes on from there."""
    pipeline, copy = copy_of(whole, tmp_path / "shop"), copy_of(whole, tmp_path / "copy")
    run(pipeline, spark)
    list(maintain(pipeline, lambda: spark, everything=True))
    put_back(copy, pipeline)
    damaged = {damage.table for damage in examine(pipeline)}
    assert {rows_of("orders"), subscription_store_of("left"), joined_of("inner")} <= damaged
    with pytest.raises(
        LakeInconsistent, match=r"rows: .* batches up to 3 are folded .* expected none after batch 2.*repair"
    ):
        list(repair(pipeline, lambda: spark, list(pipeline.joins)))

    list(repair(pipeline, lambda: spark, [*pipeline.joins, *pipeline.tables]))

    run(pipeline, spark)
    assert joins(pipeline, spark) == expected
    assert examine(pipeline) == []


def test_folds_of_batches_that_are_lost_are_not_repeated(
    whole: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """A lake that was put back by three batches is repaired once, and goes on; one of their folds was cut off."""
    pipeline, copy = copy_of(whole, tmp_path / "shop"), copy_of(whole, tmp_path / "copy")
    run(pipeline, spark)
    for day in ("2024-01-04", "2024-01-05"):
        order = {
            "op": "c",
            "id": int(day[-2:]) * 100,
            "customer": "ada",
            "amount": 1,
            "at": f"{day}T12:00:00Z",
        }
        write_lines(tmp_path / "shop" / "orders" / f"{day}.jsonl", [order])
        run(pipeline, spark)
    with commits(2), pytest.raises(Crash):  # the fold was begun, and its base not written
        list(maintain(pipeline, lambda: spark, everything=True))
    expected = joins(pipeline, spark)
    put_back(copy, pipeline)

    list(repair(pipeline, lambda: spark, [*pipeline.joins, *pipeline.tables]))

    assert examine(pipeline) == []
    run(pipeline, spark)
    list(maintain(pipeline, lambda: spark, everything=True))
    run(pipeline, spark)
    assert joins(pipeline, spark) == expected
    assert examine(pipeline) == []


def test_join_that_was_put_back_is_made_anew_where_it_stands(
    whole: Pipeline, expected: dict[str, list[str]], tmp_path: Path, spark: SparkSession
) -> None:
    """A run says which command helps; nothing has to be moved, and a reader's table stays the same."""
    pipeline = copy_of(whole, tmp_path / "shop")
    table = Path(Lake(pipeline.lake).path(joined_of("left")))
    before = DeltaTable(str(table)).metadata().id
    restored(table)
    with pytest.raises(LakeInconsistent, match=r"`lakejoin repair FILE left`"):
        run(pipeline, spark)
    assert [type(one) is Moved for one in repair(pipeline, lambda: spark, ["left"])] == [False]
    assert DeltaTable(str(table)).metadata().id == before
    run(pipeline, spark)
    assert joins(pipeline, spark) == expected


@pytest.mark.parametrize(("damage", "gone"), [(lost, {1, 2}), (restored, {2})])
def test_state_before_a_repair_is_not_shown_as_another_one(
    whole: Pipeline, damage: Callable[[Path], None], gone: set[int], tmp_path: Path, spark: SparkSession
) -> None:
    """The table that took the place of the damaged one has versions of the same numbers, or will have."""
    pipeline = copy_of(whole, tmp_path / "shop")
    lake = Lake(pipeline.lake)
    damage(Path(lake.path(joined_of("left"))))
    list(repair(pipeline, lambda: spark, ["left"]))
    journal = Journal(lake)
    for batch in (1, 2, 3):
        cut = published_snapshot(journal, batch)
        check_kept(lake, journal, cut, "inner")
        message = rf"batch {batch} is too old for left: .*joins/left/joined was repaired since"
        with pytest.raises(WrongUsage, match=message) if batch in gone else nullcontext():
            check_kept(lake, journal, cut, "left")


def test_batch_under_way_is_finished_without_the_damaged_join(
    whole: Pipeline, expected: dict[str, list[str]], tmp_path: Path, spark: SparkSession
) -> None:
    """And with a base that is gone, for its log holds the same."""
    pipeline = copy_of(whole, tmp_path / "shop")
    with commits(6), pytest.raises(Crash):
        run(pipeline, spark)
    lake = Lake(pipeline.lake)
    emptied(Path(lake.path(joined_of("left"))))
    lost(Path(lake.path(rows_of("orders"))))
    list(repair(pipeline, lambda: spark, ["left", "orders"]))
    assert Journal(lake).unfinished is None
    assert run(pipeline, spark) == 0
    assert joins(pipeline, spark) == expected


@pytest.mark.parametrize("damage", [torn, emptied, shortened, removed])
def test_changes_cannot_be_computed_from_anything(
    whole: Pipeline, damage: Callable[[Path], None], tmp_path: Path, spark: SparkSession
) -> None:
    """They are found damaged, nobody claims to mend them, and what was folded from them stays where it is."""
    pipeline = copy_of(whole, tmp_path / "shop")
    lake = Lake(pipeline.lake)
    damage(Path(lake.path(changes_of("orders"))))
    assert {(one.table, one.name) for one in examine(pipeline)} == {(changes_of("orders"), None)}
    with pytest.raises(LakeInconsistent, match=r"tables/orders/changes.*Restore it from a copy"):
        list(repair(pipeline, lambda: spark, ["orders"]))
    assert lake.has(rows_of("orders"))
    assert Journal(lake).unfinished is None


def test_name_that_is_not_declared_is_refused(whole: Pipeline, spark: SparkSession) -> None:
    """With the nearest one."""
    with pytest.raises(WrongUsage, match="no table or join 'ordres'; did you mean 'orders'"):
        list(repair(whole, lambda: spark, ["ordres"]))


@pytest.mark.parametrize("crash", [0, 2, 6, 11, 12])
def test_abandoned_batch_is_as_if_its_input_had_never_been_seen(
    whole: Pipeline, crash: int, tmp_path: Path, spark: SparkSession
) -> None:
    """Wherever it ended; its files that are still there are read by the next run."""
    pipeline = copy_of(whole, tmp_path / "shop")
    with commits(crash), pytest.raises(Crash):
        run(pipeline, spark)
    gone = tmp_path / "shop" / "customers" / "2024-01-03.jsonl"
    gone.unlink()
    with pytest.raises(SourceNotFound, match="--replan"):
        run(pipeline, spark)
    before = content(copy_of(whole, tmp_path / "before"), spark)

    given_up = next(iter(done := list(abandon(pipeline, lambda: spark))))

    assert given_up.kind == "abandoned"
    after = content(pipeline, spark)
    for table in (changes_of("orders"), changes_of("customers"), "quarantine"):
        assert after[table] == before[table]
    assert joins(pipeline, spark) == joins(load(tmp_path / "before" / "lakejoin.yaml"), spark), len(done)
    assert run(pipeline, spark) == 1
    (alone := copy_of(whole, tmp_path / "alone")).path.parent.joinpath("customers/2024-01-03.jsonl").unlink()
    run(alone, spark)
    assert joins(pipeline, spark) == joins(alone, spark)
    with pytest.raises(WrongUsage, match="no batch is under way"):
        list(abandon(pipeline, lambda: spark))


@pytest.mark.parametrize("when", WHEN)
def test_giving_up_that_was_cut_off_is_ended_before_anything_else(
    whole: Pipeline, when: When, tmp_path: Path, spark: SparkSession
) -> None:
    """A run would take for done what is removed already, and publish the batch without it."""
    pipeline = copy_of(whole, tmp_path / "shop")
    with commits(11), pytest.raises(Crash):
        run(pipeline, spark)
    with commits(1, when), pytest.raises(Crash):
        list(abandon(pipeline, lambda: spark))
    with pytest.raises(WrongUsage, match=r"removed already: .*--replan` ends what it began"):
        run(pipeline, spark)
    assert [batch.kind for batch in abandon(pipeline, lambda: spark)][:1] == ["abandoned"]
    run(alone := copy_of(whole, tmp_path / "alone"), spark)
    run(pipeline, spark)
    assert joins(pipeline, spark) == joins(alone, spark)


def test_readers_see_a_join_as_it_was_until_it_has_begun_anew(
    whole: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The batch that is given up had changed it, and giving up was cut off before the join was mended."""
    pipeline = copy_of(whole, tmp_path / "shop")
    before = Journal(Lake(pipeline.lake)).last.versions
    with commits(joined_of("over"), "after"), pytest.raises(Crash):
        run(pipeline, spark)
    with all_commits(pipeline.lake):
        next(abandoned := abandon(pipeline, lambda: spark))
        abandoned.close()
    last = Journal(Lake(pipeline.lake)).last
    assert last.kind == "abandoned"
    assert {joined_of(name): last.versions[joined_of(name)] for name in pipeline.joins} == {
        joined_of(name): before[joined_of(name)] for name in pipeline.joins
    }
    with pytest.raises(ConfigurationChanged, match="--rebuild"):
        run(pipeline, spark)


@pytest.mark.parametrize("crash", [3, 8])
def test_first_batch_can_be_given_up(crash: int, tmp_path: Path, spark: SparkSession) -> None:
    """The next run reads its files and keeps its joins, as in a new lake."""
    pipeline = shop(tmp_path / "shop", DAYS[:1])
    with commits(crash), pytest.raises(Crash):
        run(pipeline, spark)
    list(abandon(pipeline, lambda: spark))
    run(pipeline, spark)
    run(alone := shop(tmp_path / "alone", DAYS[:1]), spark)
    assert joins(pipeline, spark) == joins(alone, spark)
