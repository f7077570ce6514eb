"""Tables that somebody or something changed behind the lake's back: found before anything is built on them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from faults.crashing import Crash, commits
from faults.market import DAYS, make_market
from faults.shop import Content, content, copy_of, run
from orchestration.config import Pipeline
from orchestration.maintenance import maintain
from storage.errors import LakeInconsistent
from storage.lake import MAINTENANCE, PLAN, PUBLISHED, Lake
from storage.log_damage import damaged_commits
from storage.plan import Journal

pytestmark = pytest.mark.spark

LOGS = (
    "tables/orders/changes", "tables/weather/changes", "streams/departures/records", "quarantine",
    "joins/left/subscription_log", "joins/left/response_log", "joins/inner/changelog", "joins/inner/joined",
    "joins/at_time/joined",
)  # fmt: skip
"""One table of each kind that a batch commits to."""
BASES = ("tables/orders/rows", "tables/weather/versions", "joins/left/subscription_store")
"""One of each kind that maintenance writes."""
REPAIRED = {"joins/left": "left", "joins/inner": "inner", "joins/at_time": "at_time", "orders/rows": "orders"}


@pytest.fixture(scope="module")
def two_days(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with two finished batches, folded bases, and input for a third."""
    pipeline = make_market(tmp_path_factory.mktemp("two") / "market", DAYS[:2])
    run(pipeline, spark)
    assert {done.step.work for done in maintain(pipeline, lambda: spark, everything=True)} >= {"fold"}
    return make_market(pipeline.path.parent)


@pytest.fixture(scope="module")
def third_day(two_days: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what the lake holds after the third batch."""
    pipeline = copy_of(two_days, tmp_path_factory.mktemp("third") / "market")
    assert run(pipeline, spark) == 1
    return content(pipeline, spark)


def log_of(pipeline: Pipeline, table: str) -> Path:
    """The folder of a table's log."""
    return Path(pipeline.lake) / table / "_delta_log"


def last_commit(pipeline: Pipeline, table: str) -> Path:
    """The file of a table's last commit."""
    return max(log_of(pipeline, table).glob("*.json"))


def cut(file: Path, size: int) -> None:
    """Leave the first bytes of a file, as a power loss may, and no checksum beside it."""
    with file.open("r+") as stream:
        stream.truncate(size)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def forget_logs(spark: SparkSession) -> None:
    """Let Spark read all logs anew, as the process does that comes after the power loss."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def refused(pipeline: Pipeline, spark: SparkSession, table: str) -> str:
    """Run, and return the message of the error, which names the table and the way on."""
    with pytest.raises(LakeInconsistent) as found:
        run(pipeline, spark)
    message = str(found.value)
    assert message.startswith(f"{pipeline.lake}/{table}: "), message
    name = table.split("/")[1] if table.startswith("joins/") or table in BASES else None
    way = (
        "Restore it from a copy, or load the sources anew"
        if name is None
        else f"`lakejoin repair FILE {name}`"
    )
    assert way in message, message
    return message


@pytest.mark.failure(16)
@pytest.mark.parametrize("size", [0, 40], ids=["empty", "torn"])
def test_commit_of_a_finished_batch_that_is_not_whole_stops_the_run(
    size: int, two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Of every kind of table, before anything is planned; the message names version and way on."""
    for number, table in enumerate((*LOGS, *BASES)):
        pipeline = copy_of(two_days, tmp_path / f"market-{number}")
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
@pytest.mark.parametrize("table", ["joins/left/response_log", "joins/at_time/joined", PUBLISHED, PLAN])
@pytest.mark.parametrize("size", [0, 40], ids=["empty", "torn"])
def test_commit_of_a_batch_under_way_that_is_not_whole_is_made_again(
    table: str,
    size: int,
    two_days: Pipeline,
    third_day: Content,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """The machine lost power right after it: what was not published is worked out once more from the plan."""
    pipeline = copy_of(two_days, tmp_path / "market")
    with commits(table), pytest.raises(Crash):
        run(pipeline, spark)
    file = last_commit(pipeline, table)
    cut(file, size)
    forget_logs(spark)

    assert run(pipeline, spark) == 1

    assert content(pipeline, spark) == third_day
    assert file.with_name(f"{file.name}.damaged").stat().st_size == size


@pytest.mark.failure(16)
def test_plan_that_was_lost_after_its_batch_began_stops_the_run(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Another plan might choose another input, so what is there of its batch cannot be finished."""
    pipeline = copy_of(two_days, tmp_path / "market")
    with commits("joins/left/joined"), pytest.raises(Crash):
        run(pipeline, spark)
    cut(last_commit(pipeline, PLAN), 0)

    with pytest.raises(
        LakeInconsistent, match=r"is done up to batch 3; expected 2, as published.* or the plan was"
    ):
        run(pipeline, spark)


@pytest.mark.failure(16)
@pytest.mark.parametrize("table", [PLAN, PUBLISHED, "joins/left/joined"])
def test_reader_does_not_take_an_empty_commit_for_one_without_changes(
    table: str, two_days: Pipeline, tmp_path: Path
) -> None:
    """Not only runs: whoever opens the table is told."""
    pipeline = copy_of(two_days, tmp_path / "market")
    cut(last_commit(pipeline, table), 0)

    with pytest.raises(LakeInconsistent, match=rf"{table}: the commit of version \d+ is empty"):
        Lake(pipeline.lake).snapshot(table)
    assert [damaged.table for damaged in damaged_commits(Path(pipeline.lake), [table])] == [table]


def restore(spark: SparkSession, path: str) -> None:
    """Delta's own way back to an earlier version; its transaction identifiers stay as they are."""
    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 0").collect()


def overwrite(spark: SparkSession, path: str) -> None:
    """Write the table's first row over all of it."""
    spark.read.format("delta").load(path).limit(1).localCheckpoint().write.format("delta").mode(
        "overwrite"
    ).save(path)


def delete(spark: SparkSession, path: str) -> None:
    """Delete rows."""
    spark.sql(f"DELETE FROM delta.`{path}`").collect()


def remove(_: SparkSession, path: str) -> None:
    """Remove the table with its log."""
    shutil.rmtree(path)


def go_back(_: SparkSession, path: str) -> None:
    """Put the log back as a copy had it that is a commit old."""
    commits = sorted((Path(path) / "_delta_log").glob("*.json"))
    for file in commits[-1].parent.glob(f"*{commits[-1].stem}*"):
        file.unlink()


@pytest.mark.failure(15)
@pytest.mark.parametrize("harm", [restore, overwrite, delete, remove, go_back])
@pytest.mark.parametrize(
    "table",
    [
        "joins/inner/joined",
        *[pytest.param(t, marks=pytest.mark.slow) for t in LOGS if t != "joins/inner/joined"],
    ],
)
def test_table_changed_by_hand_stops_the_run(
    harm: Callable[[SparkSession, str], None],
    table: str,
    two_days: Pipeline,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """It is told by the commits that are not of this lake, or by identifiers that are not there any more."""
    pipeline = copy_of(two_days, tmp_path / "market")
    harm(spark, f"{pipeline.lake}/{table}")

    refused(pipeline, spark, table)

    assert len(Journal(Lake(pipeline.lake)).plans) == 2


@pytest.mark.failure(15)
@pytest.mark.parametrize("harm", [restore, overwrite, delete])
def test_base_changed_by_hand_stops_the_run(
    harm: Callable[[SparkSession, str], None], two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Its log says up to which batch it is folded, so rows that went would be missed by nobody."""
    pipeline = copy_of(two_days, tmp_path / "market")
    table = "tables/orders/rows"
    if harm is restore:  # a base with an earlier version to go back to
        run(pipeline, spark)
        list(maintain(pipeline, lambda: spark, everything=True))
        shutil.copy(
            Path(pipeline.lake).parent / "orders" / "2024-01-03.jsonl",
            Path(pipeline.lake).parent / "orders" / "2024-01-04.jsonl",
        )
    harm(spark, f"{pipeline.lake}/{table}")

    refused(pipeline, spark, table)


@pytest.mark.failure(15)
def test_table_that_was_put_back_is_used_again(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The way on that the message names: after RESTORE the table has the files that it had."""
    pipeline = copy_of(two_days, tmp_path / "market")
    path = f"{pipeline.lake}/joins/inner/joined"
    version = DeltaTable(path).version()
    delete(spark, path)
    assert f"TO VERSION AS OF {version})" in refused(pipeline, spark, "joins/inner/joined")

    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {version}").collect()

    assert run(pipeline, spark) == 1


@pytest.mark.failure(15)
def test_table_changed_by_hand_while_a_batch_runs_is_not_published(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The commit came between the batch's plan and its end."""
    pipeline = copy_of(two_days, tmp_path / "market")
    path = f"{pipeline.lake}/joins/left/subscription_log"

    with (
        commits("joins/left/joined", "after", lambda: delete(spark, path)),
        pytest.raises(
            LakeInconsistent, match=r"joins/left/subscription_log: version \d+ \(DELETE\) changed rows"
        ),
    ):
        run(pipeline, spark)

    assert len(Journal(Lake(pipeline.lake)).published) == 2


@pytest.mark.failure(15)
@pytest.mark.parametrize("table", [PLAN, PUBLISHED, MAINTENANCE])
def test_bookkeeping_that_is_gone_stops_the_run(
    table: str, two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Nobody takes the lake for a new one, or forgets which keys were purged."""
    pipeline = copy_of(two_days, tmp_path / "market")
    shutil.rmtree(Path(pipeline.lake) / table)

    with pytest.raises(LakeInconsistent, match=pipeline.lake):
        run(pipeline, spark)


@pytest.mark.failure(15)
def test_tables_without_any_plan_are_not_built_upon(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The first batch of another lake, or one whose bookkeeping was removed."""
    pipeline = copy_of(two_days, tmp_path / "market")
    for table in (PLAN, PUBLISHED, MAINTENANCE):
        shutil.rmtree(Path(pipeline.lake) / table)

    with pytest.raises(LakeInconsistent, match=r"holds .*tables/orders/changes.* and no plan of any batch"):
        run(pipeline, spark)


def gone(file: Path) -> None:
    """Remove a file."""
    file.unlink()


def truncated(file: Path) -> None:
    """Leave the first half of a file."""
    cut(file, file.stat().st_size // 2)


@pytest.mark.failure(17)
@pytest.mark.parametrize("harm", [gone, truncated])
@pytest.mark.parametrize("table", ["joins/inner/joined", "tables/orders/rows", "tables/orders/changes"])
def test_data_file_that_is_lost_stops_the_batch(
    harm: Callable[[Path], None], table: str, two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """A vacuum or a disk took it: the message names table and file, and nothing is published without it."""
    pipeline = copy_of(two_days, tmp_path / "market")
    if table.endswith("/changes"):  # behind its base
        shutil.rmtree(Path(pipeline.lake) / "tables/orders/rows")
    for name in DeltaTable(f"{pipeline.lake}/{table}").file_uris():
        harm(Path(name.removeprefix("file://")))

    message = refused(pipeline, spark, table)

    assert ".parquet is gone or damaged" in message
    assert len(Journal(Lake(pipeline.lake)).published) == 2


@pytest.mark.failure(17)
def test_pinned_version_that_was_vacuumed_stops_the_batch(
    two_days: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Somebody folded and vacuumed by hand while a batch was under way, without any retention."""
    pipeline = copy_of(two_days, tmp_path / "market")
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


def optimize(spark: SparkSession, path: str) -> None:
    """Put files together."""
    spark.sql(f"OPTIMIZE delta.`{path}`").collect()


def vacuum(spark: SparkSession, path: str) -> None:
    """Remove what no version of the last seven days needs."""
    spark.sql(f"VACUUM delta.`{path}`").collect()


def checkpoint(_: SparkSession, path: str) -> None:
    """Write the table's state into its log."""
    DeltaTable(path).create_checkpoint()


def settings(spark: SparkSession, path: str) -> None:
    """Change a property of the table."""
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'sales')").collect()


@pytest.mark.failure(18)
@pytest.mark.parametrize("point", ["tables/orders/changes", "joins/left/joined"])
def test_upkeep_by_hand_between_the_stages_of_a_batch_changes_nothing(
    point: str, two_days: Pipeline, third_day: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Versions move on, and every stage reads those that the plan pins."""
    pipeline = copy_of(two_days, tmp_path / "market")
    works = (optimize, vacuum, checkpoint, settings)

    def upkeep() -> None:
        for table in (*LOGS, *BASES):
            for work in works:
                work(spark, f"{pipeline.lake}/{table}")

    with commits(point, "after", upkeep) as counted:
        assert run(pipeline, spark) == 1
    assert counted.reached
    assert content(pipeline, spark) == third_day


@pytest.mark.failure(18)
def test_upkeep_by_hand_while_a_joined_table_is_written_is_met_by_another_attempt(
    two_days: Pipeline, third_day: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """OPTIMIZE replaced the files whose rows the batch was about to mark as deleted."""
    pipeline = copy_of(two_days, tmp_path / "market")
    path = f"{pipeline.lake}/joins/left/joined"

    with commits("joins/left/joined", "during", lambda: optimize(spark, path)) as counted:
        assert run(pipeline, spark) == 1

    assert counted.reached
    assert content(pipeline, spark) == third_day
