"""Errors of Spark that a user can do something about, and those that keep their traceback."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Pipeline, load, load_text
from lakejoin.orchestration.runs.abandon import abandon
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.orchestration.spark_errors import BatchFailed, explained
from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan

pytestmark = pytest.mark.spark

PIPELINE = load_text(
    """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: orders.jsonl}, columns: {id: int, code: string}, key: [id]}
  customers: {source: {format: jsonl, path: customers.jsonl}, columns: {id: int}, key: [id]}
joins:
  first: {left: orders, right: customers, foreign_key: [id], how: left}
  second: {left: orders, right: customers, foreign_key: ["cast(code as int)"], how: left}
""",
    "/etc/shop.yaml",
)
PLAN = Plan(7, "batch", datetime(2024, 1, 1, tzinfo=UTC), (), {}, {}, {}, (), (), "", {}, "0.1")


def test_expression_of_nobody_keeps_its_traceback(spark: SparkSession) -> None:
    """What stands in no configuration is a mistake of ours."""
    rows = spark.range(1).select(F.expr("cast('y' as date)"))

    with pytest.raises(PySparkException, match="CAST_INVALID_INPUT"), explained(PIPELINE, PLAN):
        rows.collect()


@pytest.mark.failure(19)
def test_of_a_jvm_that_ended_the_work_is_told_and_not_the_freeing_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What else was to be done to the lake held frames for the batch, and cannot free them either."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))

    def held() -> Iterator[None]:
        try:
            yield
        finally:
            raise Py4JNetworkError("refused")

    with (
        pytest.raises(
            BatchFailed, match=r"batch 7 .*ended in the middle.*run again: it begins with this batch"
        ),
        explained(PIPELINE, "planning a batch"),
        contextmanager(held)(),
        explained(PIPELINE, PLAN),
    ):
        raise Py4JNetworkError("gone")


@pytest.mark.bad_input(39)
def test_what_the_disk_refuses_is_explained(spark: SparkSession, tmp_path: Path) -> None:
    """No room, no right, no directory: the system's own words, and what to look at."""
    (tmp_path / "file").touch()

    with pytest.raises(BatchFailed, match=r"file.*See that the disk has room"), explained(PIPELINE, PLAN):
        spark.range(1).write.parquet(f"{tmp_path}/file/lake")


@pytest.mark.bad_input(41)
@pytest.mark.parametrize(
    "compression", ["snappy", *[pytest.param(c, marks=pytest.mark.slow) for c in ("none", "gzip", "zstd")]]
)
def test_source_with_a_damaged_page_is_told_and_can_be_written_anew(
    compression: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Its footer is whole, so it is planned; then the batch stops, without a row of it."""
    pipeline, file, rows = with_damaged_page(tmp_path, compression)

    with pytest.raises(
        SourceBroken, match=rf"{file}: cannot be read .*`lakejoin repair {pipeline.path} --replan`"
    ):
        list(run_batches(pipeline, spark))
    pq.write_table(rows, file)
    list(abandon(pipeline, lambda: spark))

    assert [batch.tables["orders"]["applied"] for batch in run_batches(pipeline, spark)] == [2000]


@pytest.mark.bad_input(41)
def test_source_with_a_damaged_header_of_a_page_is_refused_before_the_plan(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is read when the file is measured; once it is written anew, it goes on as if there had been nothing."""
    pipeline, file, rows = with_damaged_page(tmp_path, "snappy", behind=4)

    with pytest.raises(SourceBroken, match=rf"{file}: is no whole Parquet file .*; write it again"):
        list(run_batches(pipeline, spark))
    assert not Journal(Lake(pipeline.lake)).plans
    pq.write_table(rows, file)

    assert [batch.tables["orders"]["applied"] for batch in run_batches(pipeline, spark)] == [2000]


def with_damaged_page(
    folder: Path, compression: str, *settings: str, behind: int = 60
) -> tuple[Pipeline, Path, pa.Table]:
    """A pipeline with other settings of its table, its source with a whole footer, and what it should hold.

    `behind`: where the damage begins in the page: in its values, or within its header, which is shorter.
    """
    (folder / "shop.yaml").write_text(
        "name: shop\nlake: ./lake\ntables:\n  orders:\n    source: {format: parquet, path: orders.parquet}\n"
        "    columns: {id: bigint, note: string}\n    key: [id]\n" + "".join(f"    {s}\n" for s in settings)
    )
    file = folder / "orders.parquet"
    rows = pa.table({"op": ["c"] * 2000, "id": range(2000), "note": [f"{n * n}" for n in range(2000)]})
    pq.write_table(rows, file, compression=compression, use_dictionary=False, data_page_version="2.0")
    content = bytearray(file.read_bytes())
    page = pq.read_metadata(file).row_group(0).column(2).data_page_offset
    content[page + behind : page + behind + 56] = b"\xff" * 56
    file.write_bytes(content)
    return load(folder / "shop.yaml"), file, rows


@pytest.mark.bad_input(41)
def test_source_with_a_damaged_page_is_told_while_a_batch_is_planned(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Where planning reads it whole; there is no batch to give up."""
    pipeline, file, rows = with_damaged_page(tmp_path, "snappy", "max_bad_ratio: 0.5")

    with pytest.raises(SourceBroken, match=rf"{file}: cannot be read .*Nothing of it is planned yet"):
        list(run_batches(pipeline, spark))
    assert not Journal(Lake(pipeline.lake)).plans
    pq.write_table(rows, file)

    assert [batch.tables["orders"]["applied"] for batch in run_batches(pipeline, spark)] == [2000]


def test_other_errors_pass(spark: SparkSession) -> None:
    """Nothing else is dressed up, whether it comes from Java or from Python."""
    with pytest.raises(ZeroDivisionError), explained(PIPELINE, PLAN):
        _ = 1 / 0
    assert spark.sparkContext._jvm is not None
    with pytest.raises(PySparkException, match="For input string"), explained(PIPELINE, PLAN):
        spark.sparkContext._jvm.java.lang.Long.parseLong("x")


def test_exception_of_delta_passes(spark: SparkSession) -> None:
    """It has no context that Py4J can ask for: what failed is told, not that."""
    jvm: Any = spark._jvm
    errors = getattr(getattr(jvm.org.apache.spark.sql.delta, "DeltaErrors$"), "MODULE$")
    error = Py4JJavaError("", errors.sparkSessionNotSetException())
    with pytest.raises(Py4JJavaError, match="DELTA_SPARK_SESSION_NOT_SET"), explained(PIPELINE, PLAN):
        raise error
