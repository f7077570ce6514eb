"""Commits and data files that a power loss, a disk or a vacuum took: found before anything is built on them."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.crashing import Crash, commits
from faults.lakes import BASES, LOGS, cut, forget_logs, last_commit, refused
from faults.shop import Content, content, copy_of, run
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.delta_log.torn_commits import damaged_commits
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, PUBLISHED, Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.failure(16)
@pytest.mark.bad_input(42)
@pytest.mark.parametrize("size", [0, 40], ids=["empty", "torn"])
def test_commit_of_a_finished_batch_that_is_not_whole_stops_the_run(
    size: int, folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Of every kind of table, before anything is planned; the message names version and way on."""
    for number, table in enumerate((*LOGS, *BASES)):
        forget_logs(spark)
        pipeline = copy_of(folded, tmp_path / f"market-{number}")
        file = last_commit(pipeline, table)
        cut(file, size)
        found = "is empty" if size == 0 else "ends in the middle of a line"
        # a fold or compaction after the last publication is no part of a finished batch: it is done again
        published = Journal(Lake(pipeline.lake)).last
        assert published is not None
        if int(file.stem) > published.versions.get(table, -1):
            continue
        message = refused(pipeline, spark, table)
        assert f"the commit of version {int(file.stem)} {found}" in message
        assert len(Journal(Lake(pipeline.lake)).plans) == 2


@pytest.mark.failure(16)
@pytest.mark.bad_input(42)
@pytest.mark.parametrize("table", ["joins/left/response_log", "joins/at_time/joined", PUBLISHED, PLAN])
@pytest.mark.parametrize("size", [0, 40], ids=["empty", "torn"])
def test_commit_of_a_batch_under_way_that_is_not_whole_is_made_again(
    table: str,
    size: int,
    folded: Pipeline,
    third_batch: Content,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """The machine lost power right after it: what was not published is worked out once more from the plan."""
    pipeline = copy_of(folded, tmp_path / "market")
    with commits(table), pytest.raises(Crash):
        run(pipeline, spark)
    file = last_commit(pipeline, table)
    cut(file, size)
    forget_logs(spark)

    assert run(pipeline, spark) == 1

    assert content(pipeline, spark) == third_batch
    assert file.with_name(f"{file.name}.damaged").stat().st_size == size


@pytest.mark.failure(16)
def test_plan_that_was_lost_after_its_batch_began_stops_the_run(
    folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Another plan might choose another input, so what is there of its batch cannot be finished."""
    pipeline = copy_of(folded, tmp_path / "market")
    with commits("joins/left/joined"), pytest.raises(Crash):
        run(pipeline, spark)
    cut(last_commit(pipeline, PLAN), 0)

    with pytest.raises(
        LakeInconsistent, match=r"is done up to batch 3; expected 2, as published.* or the plan was"
    ):
        run(pipeline, spark)


@pytest.mark.failure(16)
@pytest.mark.parametrize("size", [0, 40], ids=["empty", "torn"])
def test_plan_of_a_finished_batch_is_not_set_aside(
    size: int, folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Nothing could make it again; the file stays where it is for whoever has a copy."""
    pipeline = copy_of(folded, tmp_path / "market")
    file = last_commit(pipeline, PLAN)
    whole = file.read_bytes()
    cut(file, size)

    assert "and a finished batch needs it" in refused(pipeline, spark, PLAN)

    file.write_bytes(whole)
    assert run(pipeline, spark) == 1


@pytest.mark.failure(16)
@pytest.mark.parametrize("table", [PLAN, PUBLISHED, "joins/left/joined"])
def test_reader_does_not_take_an_empty_commit_for_one_without_changes(
    table: str, folded: Pipeline, tmp_path: Path
) -> None:
    """Not only runs: whoever opens the table is told."""
    pipeline = copy_of(folded, tmp_path / "market")
    cut(last_commit(pipeline, table), 0)

    with pytest.raises(LakeInconsistent, match=rf"{table}: the commit of version \d+ is empty"):
        Lake(pipeline.lake).snapshot(table)
    assert [damaged.table for damaged in damaged_commits(Path(pipeline.lake), [table])] == [table]


def gone(file: Path) -> None:
    """Remove a file."""
    file.unlink()


def truncated(file: Path) -> None:
    """Leave the first half of a file."""
    cut(file, file.stat().st_size // 2)


def emptied(file: Path) -> None:
    """Leave the name of a file."""
    cut(file, 0)


@pytest.mark.failure(17)
@pytest.mark.bad_input(41)
@pytest.mark.parametrize("harm", [gone, truncated, emptied])
@pytest.mark.parametrize("table", ["joins/inner/joined", "tables/orders/rows", "tables/orders/changes"])
def test_data_file_that_is_lost_stops_the_batch(
    harm: Callable[[Path], None], table: str, folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """A vacuum or a disk took it: the message names table and file, and nothing is published without it."""
    pipeline = copy_of(folded, tmp_path / "market")
    if table.endswith("/changes"):  # behind its base
        shutil.rmtree(Path(pipeline.lake) / "tables/orders/rows")
    harm_files(f"{pipeline.lake}/{table}", harm)

    message = refused(pipeline, spark, table)

    assert ".parquet is gone or damaged" in message
    assert len(Journal(Lake(pipeline.lake)).published) == 2


def harm_files(table: str, harm: Callable[[Path], None]) -> None:
    """Do something to every data file of a table."""
    for name in DeltaTable(table).file_uris():
        harm(Path(name.removeprefix("file://")))


@pytest.mark.failure(17)
@pytest.mark.parametrize("harm", [gone, truncated, emptied])
@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("joins/inner/joined", "show CONFIG inner --where true"),
        ("joins/inner/joined", "show CONFIG inner --limit 3"),
        ("joins/inner/joined", "show CONFIG inner --format csv"),
        ("tables/orders/changes", "show CONFIG orders.changes --format jsonl"),
        ("joins/inner/joined", "check CONFIG --full"),
        ("joins/left/response_log", "check CONFIG --full"),
        ("quarantine", "quarantine list CONFIG"),
        ("quarantine", "quarantine retry CONFIG"),
        ("tables/orders/changes", "repair CONFIG orders"),
    ],
)
def test_data_file_that_is_lost_is_told_by_each_command(
    table: str,
    command: str,
    harm: Callable[[Path], None],
    folded: Pipeline,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """No traceback and no fewer rows, but table, file and the way on."""
    pipeline = copy_of(folded, tmp_path / "market")
    harm_files(f"{pipeline.lake}/{table}", harm)
    forget_logs(spark)

    done = CliRunner().invoke(app, command.replace("CONFIG", str(pipeline.path)).split())

    assert done.exit_code == FAILED, done.output
    said = r"has [\d,]+ bytes|is gone" if command.startswith("repair") else "is gone or damaged"
    assert re.search(rf"{pipeline.lake}/{table}: \S+\.parquet ({said})", done.stderr), done.output
    way = "from a copy" if table == "quarantine" or table.endswith("changes") else "`lakejoin repair FILE "
    assert way in done.stderr


@pytest.mark.failure(17)
def test_pinned_version_that_was_vacuumed_stops_the_batch(
    folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Somebody folded and vacuumed by hand while a batch was under way, without any retention."""
    pipeline = copy_of(folded, tmp_path / "market")
    with commits("joins/left/response_log", "before"), pytest.raises(Crash):
        run(pipeline, spark)
    path = f"{pipeline.lake}/tables/orders/rows"
    base = spark.read.format("delta").load(path).localCheckpoint()
    base.write.format("delta").mode("overwrite").option("dataChange", "false").save(path)
    with_check = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(with_check, "false")
    spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS").collect()
    spark.conf.unset(with_check)

    message = refused(pipeline, spark, "tables/orders/rows")

    assert "vacuum" in message
    assert len(Journal(Lake(pipeline.lake)).published) == 2
