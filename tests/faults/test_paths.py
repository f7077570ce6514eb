"""Other ways to the same tables: batches cut otherwise, days in another order or twice, a join that comes later."""

import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from faults.shop import CONFIGURATION, make_shop, run, texts
from lakejoin.orchestration.batch.joins.gate import GateFailed
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import (
    SCRATCH,
    Lake,
    changelog_of,
    joined_of,
    response_log_of,
    subscription_log_of,
)
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.transforms.foreign_key_join.emissions import emit_results
from lakejoin.transforms.model.schemas import LEFT_HASH

pytestmark = pytest.mark.spark

Rows = list[str]
_TABLES_OF_A_JOIN = (subscription_log_of, response_log_of, changelog_of, joined_of)
FIRST, SECOND, THIRD = (date(2024, 1, day) for day in (1, 2, 3))


def joined(pipeline: Pipeline, spark: SparkSession, join: str) -> Rows:
    """Rows of a joined table without the batch that wrote them."""
    frame = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join)))
    return texts(frame.drop("_lj_batch"))


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline after three batches, a day each."""
    pipeline = make_shop(tmp_path_factory.mktemp("shop") / "days")
    assert run(pipeline, spark) == 3
    return pipeline


@pytest.fixture(scope="module")
def day_by_day(days: Pipeline, spark: SparkSession) -> dict[str, Rows]:
    """Return the joined tables after these batches."""
    return {name: joined(days, spark, name) for name in ("inner", "left")}


@pytest.mark.parametrize("join", ["inner", "left"])
def test_each_batch_changes_a_joined_table_in_one_commit_of_ours(days: Pipeline, join: str) -> None:
    """The first makes it; what later ones replace is found by a scan of keys, not by a MERGE's condition."""
    history = DeltaTable(Lake(days.lake).path(joined_of(join))).history()[::-1]

    assert [commit["operation"] for commit in history] == ["WRITE", "MERGE", "MERGE"]
    assert [json.loads(commit["userMetadata"])["batch"] for commit in history] == [1, 2, 3]
    assert {commit["operationParameters"]["predicate"] for commit in history[1:]} == {"[]"}


def all_at_once(pipeline: Pipeline, spark: SparkSession) -> int:
    """Work off everything in one batch."""
    return run(pipeline, spark, batch_by="all")


def five_records_a_batch(pipeline: Pipeline, spark: SparkSession) -> int:
    """Cut the days into small batches."""
    return run(pipeline, spark, batch_rows=5)


def third_day_before_second(pipeline: Pipeline, spark: SparkSession) -> int:
    """Ask for the days one by one, not in their order."""
    days = ((FIRST, FIRST), (THIRD, THIRD), (SECOND, SECOND))
    return sum(run(pipeline, spark, dates=dates) for dates in days)


@pytest.mark.bad_input(23)
@pytest.mark.bad_input(45)
@pytest.mark.parametrize(
    ("way", "batches"),
    [
        (all_at_once, 1),
        pytest.param(five_records_a_batch, 6, marks=pytest.mark.slow),
        pytest.param(third_day_before_second, 3, marks=pytest.mark.slow),
    ],
)
def test_joined_tables_do_not_depend_on_how_input_is_cut(
    way: Callable[[Pipeline, SparkSession], int], batches: int, day_by_day: dict[str, Rows], tmp_path: Path,
    spark: SparkSession,
) -> None:  # fmt: skip
    """One batch for everything, small ones, and days in another order end with the same rows."""
    pipeline = make_shop(tmp_path)
    assert way(pipeline, spark) == batches
    assert {name: joined(pipeline, spark, name) for name in day_by_day} == day_by_day
    assert run(pipeline, spark, dates=(FIRST, SECOND)) == 0  # days that are asked for again


@pytest.mark.slow
def test_files_that_cannot_hold_a_key_are_passed_over(
    day_by_day: dict[str, Rows], tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch,
    prunes: None,
) -> None:  # fmt: skip
    """Of the rows and the subscriptions, which have a file for every row here; the result is the same."""
    monkeypatch.setattr("lakejoin.storage.state.folds.ROWS_PER_FILE", 1)
    pipeline = make_shop(tmp_path, ["2024-01-01"])
    assert run(pipeline, spark) == 1
    list(maintain(pipeline, lambda: spark, everything=True))
    make_shop(tmp_path)
    assert run(pipeline, spark) == 2

    assert {name: joined(pipeline, spark, name) for name in day_by_day} == day_by_day
    files = Journal(Lake(pipeline.lake)).published[-1].files
    for table in ("tables/orders/rows", "joins/left/subscription_store"):
        assert 0 < files[table]["read"] < files[table]["held"], (table, files)
    assert files["joins/left/joined"]["held"] > 0


@pytest.mark.bad_input(23)
@pytest.mark.parametrize(
    "found_at",
    [
        pytest.param("framing", marks=pytest.mark.slow),
        pytest.param("expect", marks=pytest.mark.slow),
        pytest.param("keep_found", marks=pytest.mark.slow),
    ],
    ids=["of many records", "of many changes", "that many rows answer"],
)
def test_a_large_batch_ends_with_the_rows_of_small_ones(
    found_at: str, day_by_day: dict[str, Rows], tmp_path: Path, spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Its frames are kept in files, which are gone afterwards; a small one that touches many rows goes on as large."""
    grown: list[Frames] = []

    def counted(frames: Frames, frame: DataFrame) -> DataFrame:
        grown.append(frames)
        return written(frames, frame)

    written = Frames._written
    monkeypatch.setattr(Frames, "_written", counted)
    if found_at == "framing":
        monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", -1)
    else:
        monkeypatch.setattr(Frames, found_at, _then_large(getattr(Frames, found_at)))
    usual = spark.conf.get("spark.sql.shuffle.partitions")
    pipeline = make_shop(tmp_path)

    assert run(pipeline, spark, dates=(FIRST, SECOND), batch_by="all") + run(pipeline, spark) == 2

    assert grown
    assert {name: joined(pipeline, spark, name) for name in day_by_day} == day_by_day
    assert not Path(Lake(pipeline.lake).path(SCRATCH)).exists()
    assert spark.conf.get("spark.sql.shuffle.partitions") == usual


def _then_large(step: Callable[..., Any]) -> Callable[..., Any]:
    def stepped(frames: Frames, given: object) -> object:
        found = step(frames, given)
        frames.grow()
        return found

    return stepped


def test_join_added_to_a_lake_starts_from_the_rows_there_are(
    day_by_day: dict[str, Rows], tmp_path: Path, spark: SparkSession
) -> None:
    """Its first batch brings it to where it would be had it always been there; later ones keep it right."""
    pipeline = make_shop(tmp_path, ["2024-01-01", "2024-01-02"])
    path, (before, after) = pipeline.path, CONFIGURATION.split("  left: ")
    path.write_text(before)
    assert run(load(path), spark) == 2
    path.write_text(f"{before}  left: {after}")
    assert run(load(path), spark) == 1
    journal = Journal(Lake(pipeline.lake))
    assert journal.published[-1].kind == "bootstrap"
    assert journal.published[-1].joins["left"]["emissions"] == 5
    make_shop(tmp_path)
    assert run(load(path), spark) == 1
    assert joined(pipeline, spark, "left") == day_by_day["left"]


def _without_hash(*args: object) -> object:
    return emit_results(*args).withColumn(
        LEFT_HASH, F.lit(None).cast("struct<spec:smallint,high:long,low:long>")
    )


def test_gate_keeps_a_wrong_row_out_until_it_is_accepted(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan stands, no joined table is touched, the message names rule, row and way on; the way on is recorded."""
    pipeline = make_shop(tmp_path, ["2024-01-01"])
    monkeypatch.setattr("lakejoin.transforms.foreign_key_join.join.emit_results", _without_hash)
    with pytest.raises(GateFailed) as failed:
        run(pipeline, spark)
    message = str(failed.value)
    assert "left_row_current: 3 rows" in message
    assert "--accept left_row_current" in message
    assert '"id":1' in message
    lake = Lake(pipeline.lake)
    assert lake.snapshot(joined_of("inner")) is None
    assert Journal(lake).unfinished is not None
    assert run(pipeline, spark, accept=_broken(message)) == 1
    assert "left_row_current" in Journal(lake).published[-1].accepted


@pytest.mark.slow
def test_gate_keeps_what_is_in_files_already_out_of_every_table_of_its_join(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later batch is written while its gate judges; what is right comes when the batch is run again."""
    pipeline = make_shop(tmp_path, ["2024-01-01"])
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    tables = [table(join) for table in _TABLES_OF_A_JOIN for join in ("inner", "left")]
    before, rows = lake.versions(tables), joined(pipeline, spark, "left")
    make_shop(tmp_path, ["2024-01-01", "2024-01-02"])
    with monkeypatch.context() as patched:
        patched.setattr("lakejoin.transforms.foreign_key_join.join.emit_results", _without_hash)
        with pytest.raises(GateFailed):
            run(pipeline, spark)

    assert lake.versions(tables) == before
    assert joined(pipeline, spark, "left") == rows
    assert run(pipeline, spark) == 1
    assert all(version > before[table] for table, version in lake.versions(tables).items())


def _broken(message: str) -> Sequence[str]:
    words = message.split()
    return [words[i + 1].strip("`") for i, word in enumerate(words) if word == "--accept"]
