"""A batch is worked off by any number of threads."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import make_shop, run

pytestmark = pytest.mark.spark


@pytest.mark.slow
def test_one_thread_is_enough_for_a_batch(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task waits for one that is submitted after it, small batch or large; else this would hang."""
    monkeypatch.setattr("lakejoin.orchestration.batch.run_batch.THREADS", 1)
    pipeline = make_shop(tmp_path, ["2024-01-01"])
    assert run(pipeline, spark) == 1
    make_shop(tmp_path)
    monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", -1)
    assert run(pipeline, spark) == 2
