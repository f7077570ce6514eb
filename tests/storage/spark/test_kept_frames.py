"""How a batch's settings of Spark change, and how they do not: while one thread reads sources, another may go on."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.spark.kept_frames import SMALL, framing
from lakejoin.storage.spark.session import changed_settings
from lakejoin.storage.spark.start import SETTINGS

pytestmark = pytest.mark.spark

CUT = "spark.sql.files.openCostInBytes"
SHUFFLE = "spark.sql.shuffle.partitions"
USUAL = SETTINGS[CUT]


@pytest.mark.parametrize(("records", "cut"), [(SMALL, USUAL), (SMALL + 1, "1m")], ids=["small", "large"])
def test_sources_are_cut_alike_for_as_long_as_a_batch_takes(
    records: int, cut: str, tmp_path: Path, spark: SparkSession
) -> None:
    """Also where it turns out to touch many rows: lines are numbered by where the parts of their file begin."""
    with framing(spark, str(tmp_path), records) as frames:
        assert spark.conf.get(CUT) == cut
        frames.grow()
        assert (spark.conf.get(CUT), frames.small) == (cut, False)
    assert spark.conf.get(CUT) == USUAL


def test_small_batch_that_grows_shuffles_again(tmp_path: Path, spark: SparkSession) -> None:
    """What it touches does not fit one task any more."""
    usual = spark.conf.get(SHUFFLE)
    with framing(spark, str(tmp_path), 1) as frames:
        assert spark.conf.get(SHUFFLE) == "1" != usual
        frames.grow()
        assert spark.conf.get(SHUFFLE) == usual


def test_frame_is_joined_by_rows_that_were_kept_of_it(tmp_path: Path, spark: SparkSession) -> None:
    """A position that is never null here and may be null there: what Spark knew of both is of no frame behind them."""
    with framing(spark, str(tmp_path), 1) as frames:
        new = frames.keep(spark.range(3).select(F.struct("id").alias("position")))
        stored = spark.createDataFrame([((5,),)], "position struct<id: bigint>")
        known = "position is not null"
        released = frames.keep(new.where(known).unionByName(stored.where(known)))
        due = frames.keep(new.where("position.id = 0").unionByName(released))

        assert sorted(row["id"] for row in due.select("position.id").collect()) == [0, 0, 1, 2, 5]


def test_how_a_user_wants_files_to_be_cut_stays(tmp_path: Path, spark: SparkSession) -> None:
    """A large batch has a better number only for those who said none."""
    with changed_settings(spark, {CUT: "3m"}):
        with framing(spark, str(tmp_path), SMALL + 1):
            assert spark.conf.get(CUT) == "3m"
        assert spark.conf.get(CUT) == "3m"
