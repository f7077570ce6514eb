"""Maintenance changes no row: not when it is cut off anywhere, nor beside a batch that was."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, When, all_commits, commits, steps
from faults.lakes import forget_logs
from faults.shop import ORDERS, Content, content, copy_of, make_shop, run, texts
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.lake_state.preflight import check_progress
from lakejoin.orchestration.lake_state.published_snapshot import check_kept, published_snapshot
from lakejoin.orchestration.maintenance.folds import fold
from lakejoin.orchestration.maintenance.maintain import Done, find_steps, maintain
from lakejoin.orchestration.maintenance.steps import WORKS
from lakejoin.storage.delta_log.live_files import live_files
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import MAINTENANCE, Lake, changes_of, rows_of
from lakejoin.storage.lake.table_counts import row_count
from lakejoin.storage.state.folds import Folds
from lakejoin.storage.state.pinned_state import State, read_log
from lakejoin.transforms.foreign_key_join.subscriptions import live_subscriptions
from lakejoin.transforms.model.schemas import changes_schema

pytestmark = pytest.mark.spark

DAYS = tuple(ORDERS)
KEEPS_NOTHING = "maintenance: {when: separately, retention: 0 days}\n"
"""No version but the pinned ones survives a vacuum."""


def shop(folder: Path, days: tuple[str, ...]) -> Pipeline:
    """A pipeline with input of some days, whose lake keeps no old versions."""
    path = make_shop(folder, days).path
    path.write_text(path.read_text() + KEEPS_NOTHING)
    return load(path)


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with two finished batches."""
    pipeline = shop(tmp_path_factory.mktemp("shop") / "two", DAYS[:2])
    run(pipeline, spark)
    return pipeline


@pytest.fixture(scope="module")
def undisturbed(two_days: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what the lake holds after a third batch, had there never been any maintenance."""
    pipeline = copy_of(two_days, tmp_path_factory.mktemp("undisturbed") / "shop")
    run(shop(pipeline.path.parent, DAYS), spark)
    return {**content(pipeline, spark), **state(pipeline, spark)}


def state(pipeline: Pipeline, spark: SparkSession) -> Content:
    """Rows and live subscriptions, wherever they lie between base and log."""
    now = State(spark, Lake(pipeline.lake), published_snapshot(Journal(Lake(pipeline.lake))))
    rows = {f"rows of {name}": texts(now.all_rows(table.spec)) for name, table in pipeline.tables.items()}
    sent = {name: live_subscriptions(now.subscriptions(pipeline.join_spec(name))) for name in pipeline.joins}
    return rows | {f"subscriptions of {name}": texts(frame) for name, frame in sent.items()}


def of_readers(found: Content) -> Content:
    """Tables without the bases and what folds keep of themselves."""
    bases = ("/rows", "/subscription_store", MAINTENANCE)
    return {name: rows for name, rows in found.items() if not name.endswith(bases)}


def all_of(pipeline: Pipeline, spark: SparkSession) -> list[Done]:
    """Maintain whatever can be; see that nothing was left for later."""
    done = list(maintain(pipeline, lambda: spark, everything=True))
    assert [step.skipped for step in done if step.skipped] == []
    return done


@pytest.mark.slow
def test_maintenance_folds_compacts_and_vacuums_and_changes_no_row(
    two_days: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Readers see the same rows, on fewer files; nothing is left to do, and the next batch comes out the same."""
    pipeline = copy_of(two_days, tmp_path / "shop")
    lake = Lake(pipeline.lake)
    before = {**content(pipeline, spark), **state(pipeline, spark)}

    done = all_of(pipeline, spark)

    assert {step.step.work for step in done} == {*WORKS} - {"clear"}
    assert of_readers({**content(pipeline, spark), **state(pipeline, spark)}) == of_readers(before)
    for table in ("tables/orders/changes", "joins/left/subscription_log", "joins/inner/joined", "_plan"):
        assert len(live_files(lake.path(table))) == 1, table
    assert find_steps(pipeline) == []

    run(shop(pipeline.path.parent, DAYS), spark)
    assert of_readers({**content(pipeline, spark), **state(pipeline, spark)}) == of_readers(undisturbed)


@pytest.mark.slow
@pytest.mark.failure(18)
@pytest.mark.parametrize(("when", "number"), [("after", 0), ("before", 1), ("during", 1)])
def test_maintenance_cut_off_at_each_of_its_changes_ends_as_if_undisturbed(
    when: When, number: int, two_days: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """It is ended at one change after the other, each time begun anew, and no table has other rows in the end."""
    whole = copy_of(two_days, tmp_path / "whole")
    with steps() as counted:
        all_of(whole, spark)
    pipeline = copy_of(two_days, tmp_path / "shop")
    made = []
    for _ in range(2 * len(counted.made)):
        with steps(number, when) as interrupted:
            try:
                all_of(pipeline, spark)
                break
            except Crash:
                made += interrupted.made
    # of bookkeeping that was put together, and then cut off, the log is shortened the next time that it is due
    assert {*made, *interrupted.made, "create_checkpoint"} >= {*counted.made}
    assert content(pipeline, spark) == content(whole, spark)
    run(shop(pipeline.path.parent, DAYS), spark)
    assert of_readers({**content(pipeline, spark), **state(pipeline, spark)}) == of_readers(undisturbed)


@pytest.mark.slow
@pytest.mark.failure(18)
def test_batch_ends_as_if_undisturbed_when_maintenance_comes_before_its_rerun(
    two_days: Pipeline, undisturbed: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Cut off behind each of its commits: folds end with the last batch, and what it pins outlives a vacuum."""
    whole = shop(copy_of(two_days, tmp_path / "whole").path.parent, DAYS)
    with all_commits(whole.lake) as counted:
        run(whole, spark)
    for number, table in enumerate(counted.made[:-1]):
        forget_logs(spark)
        pipeline = shop(copy_of(two_days, tmp_path / f"shop-{number}").path.parent, DAYS)
        with commits(number), pytest.raises(Crash):
            run(pipeline, spark)
        before = {**content(pipeline, spark), **state(pipeline, spark)}

        all_of(pipeline, spark)

        assert of_readers({**content(pipeline, spark), **state(pipeline, spark)}) == of_readers(before), table
        assert {fold.through for fold in Folds(Lake(pipeline.lake)).begun} == {2}, table
        assert run(pipeline, spark) == 1
        assert of_readers({**content(pipeline, spark), **state(pipeline, spark)}) == of_readers(
            undisturbed
        ), table


@pytest.mark.bad_input(36)
@pytest.mark.slow
def test_vacuum_keeps_what_the_last_cut_and_a_batch_under_way_need(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Every pinned version of every log can be read in full; what was before the last snapshot is gone."""
    copied = copy_of(two_days, tmp_path / "shop")
    pipeline = shop(copied.path.parent, DAYS)
    lake = Lake(pipeline.lake)
    with (
        mock.patch("lakejoin.orchestration.batch.run_batch._publish", side_effect=Crash),
        pytest.raises(Crash),
    ):
        run(pipeline, spark)
    for _ in range(2):
        all_of(pipeline, spark)
    journal = Journal(lake)
    assert journal.unfinished is not None
    for plan in (published_snapshot(journal), journal.unfinished):
        orders = pipeline.tables["orders"].spec
        log = read_log(
            State(spark, lake, plan), "tables/orders/changes", changes_schema(orders.columns, orders.sequence)
        )
        assert len(log.collect()) == len(ORDERS[DAYS[0]]) + len(ORDERS[DAYS[1]]) - 1
        for name in pipeline.joins:
            version = plan.versions[f"joins/{name}/joined"]
            reader = spark.read.format("delta").option("versionAsOf", version)
            assert reader.load(lake.path(f"joins/{name}/joined")).collect()


@pytest.mark.slow
def test_batch_that_ends_while_maintenance_looks_is_no_damage(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody holds the lake meanwhile: its tables are then ahead of the journal as it was read."""
    pipeline = shop(copy_of(two_days, tmp_path / "shop").path.parent, DAYS)
    batches: list[int] = []

    def late(*args: Any) -> None:
        if not batches:
            batches.append(run(pipeline, spark))
        check_progress(*args)

    monkeypatch.setattr("lakejoin.orchestration.maintenance.steps.check_progress", late)
    folds = [step.finding for step in find_steps(pipeline) if step.work == "fold"]
    assert batches == [1]
    assert {len(found.counts) for found in folds} == {3}


@pytest.mark.slow
def test_fold_goes_by_what_it_reads_and_not_by_what_is_left(
    two_days: Pipeline, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table like a queue next to nothing is left; its changes may be more than one task can take."""
    lake = Lake(two_days.lake)
    journal, read = Journal(lake), []

    def framing(spark: SparkSession, scratch: str, records: int) -> None:
        read.append(records)
        raise Crash

    monkeypatch.setattr("lakejoin.storage.state.folds.framing", framing)
    now = finished_state(two_days, lake, journal, datetime.now(UTC))
    with pytest.raises(Crash):
        fold(two_days, spark, lake, journal, now, rows_of("orders"))
    changes = row_count(lake, changes_of("orders"), now.versions[changes_of("orders")])
    assert read == [changes]
    assert journal.last.rows["orders"] < changes


@pytest.mark.slow
def test_a_batch_older_than_the_retention_is_not_shown(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The message says why, instead of naming a file that is gone; a batch within the retention is shown."""
    pipeline = copy_of(two_days, tmp_path / "shop")
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    snapshots = [published_snapshot(journal, batch) for batch in (1, 2)]
    for snapshot in snapshots:
        check_kept(lake, journal, snapshot, "inner")
    all_of(pipeline, spark)
    check_kept(lake, journal, snapshots[1], "inner")
    with pytest.raises(
        WrongUsage, match=r"batch 1 is too old for inner: files of .*/joins/inner/.* were removed"
    ):
        check_kept(lake, journal, snapshots[0], "inner")


@pytest.mark.slow
@pytest.mark.parametrize("when", ["after_batch", "separately"])
def test_runs_fold_and_condense_unless_it_is_left_to_maintenance(
    when: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the one what is due is done behind each batch, with the other it stays due."""
    monkeypatch.setattr("lakejoin.storage.state.folds.BATCHES_BEHIND", 1)
    monkeypatch.setattr("lakejoin.storage.lake.bookkeeping.MANY_FILES", 2)
    path = make_shop(tmp_path, DAYS[:2]).path
    path.write_text(f"{path.read_text()}maintenance: {{when: {when}}}\n")
    pipeline = load(path)

    run(pipeline, spark)

    due = {step.work for step in find_steps(pipeline) if step.finding.due} & {"fold", "condense"}
    assert due == (set() if when == "after_batch" else {"fold", "condense"})
    assert (Lake(pipeline.lake).snapshot(MAINTENANCE) is None) == (when == "separately")
