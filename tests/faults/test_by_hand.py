"""What people do to a lake's tables by hand: harm stops the next run, upkeep changes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from faults.crashing import commits
from faults.lakes import BASES, LOGS, refused
from faults.shop import Content, content, copy_of, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import MAINTENANCE, PLAN, PUBLISHED, Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]


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
@pytest.mark.bad_input(47)
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
    folded: Pipeline,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    """It is told by the commits that are not of this lake, or by identifiers that are not there any more."""
    pipeline = copy_of(folded, tmp_path / "market")
    path = f"{pipeline.lake}/{table}"
    harm(spark, path)

    message = refused(pipeline, spark, table)

    missing = harm in (remove, go_back)
    assert ("is done up to batch" if missing else f": version {DeltaTable(path).version()} (") in message
    assert len(Journal(Lake(pipeline.lake)).plans) == 2


@pytest.mark.failure(15)
@pytest.mark.parametrize("harm", [restore, overwrite, delete])
def test_base_changed_by_hand_stops_the_run(
    harm: Callable[[SparkSession, str], None], folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Its log says up to which batch it is folded, so rows that went would be missed by nobody."""
    pipeline = copy_of(folded, tmp_path / "market")
    table = "tables/orders/rows"
    path = f"{pipeline.lake}/{table}"
    harm(spark, path)

    assert f": version {DeltaTable(path).version()} (" in refused(pipeline, spark, table)


@pytest.mark.failure(15)
def test_table_that_was_put_back_is_used_again(folded: Pipeline, tmp_path: Path, spark: SparkSession) -> None:
    """The way on that the message names: after RESTORE the table has the files that it had."""
    pipeline = copy_of(folded, tmp_path / "market")
    path = f"{pipeline.lake}/joins/inner/joined"
    version = DeltaTable(path).version()
    delete(spark, path)
    assert f"TO VERSION AS OF {version})" in refused(pipeline, spark, "joins/inner/joined")

    spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {version}").collect()

    assert run(pipeline, spark) == 1


@pytest.mark.failure(15)
def test_table_changed_by_hand_while_a_batch_runs_is_not_published(
    folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The commit came between the batch's plan and its end."""
    pipeline = copy_of(folded, tmp_path / "market")
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
    table: str, folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Nobody takes the lake for a new one, or forgets which keys were purged."""
    pipeline = copy_of(folded, tmp_path / "market")
    shutil.rmtree(Path(pipeline.lake) / table)

    with pytest.raises(LakeInconsistent, match=pipeline.lake):
        run(pipeline, spark)


@pytest.mark.failure(15)
def test_tables_without_any_plan_are_not_built_upon(
    folded: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """The first batch of another lake, or one whose bookkeeping was removed."""
    pipeline = copy_of(folded, tmp_path / "market")
    for table in (PLAN, PUBLISHED, MAINTENANCE):
        shutil.rmtree(Path(pipeline.lake) / table)

    with pytest.raises(LakeInconsistent, match=r"holds .*tables/orders/changes.* and no plan of any batch"):
        run(pipeline, spark)


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
    point: str, folded: Pipeline, third_batch: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Versions move on, and every stage reads those that the plan pins."""
    pipeline = copy_of(folded, tmp_path / "market")
    works = (optimize, vacuum, checkpoint, settings)

    def upkeep() -> None:
        for table in (*LOGS, *BASES):
            for work in works:
                work(spark, f"{pipeline.lake}/{table}")

    with commits(point, "after", upkeep) as counted:
        assert run(pipeline, spark) == 1
    assert counted.reached
    assert content(pipeline, spark) == third_batch


@pytest.mark.failure(18)
def test_upkeep_by_hand_while_a_joined_table_is_written_is_met_by_another_attempt(
    folded: Pipeline, third_batch: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """OPTIMIZE replaced the files whose rows the batch was about to mark as deleted."""
    pipeline = copy_of(folded, tmp_path / "market")
    path = f"{pipeline.lake}/joins/left/joined"

    with commits("joins/left/joined", "during", lambda: optimize(spark, path)) as counted:
        assert run(pipeline, spark) == 1

    assert counted.reached
    assert content(pipeline, spark) == third_batch
