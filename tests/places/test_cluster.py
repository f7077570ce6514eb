"""The same pipeline on a standalone cluster, whose executors are processes of their own."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import Content, content, make_shop
from orchestration.config import load
from places.conftest import DAYS
from places.processes import run_pipelines
from places.standalone import WORKERS, executors, standalone_cluster
from storage.lake import SCRATCH

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NO_PYTHON = {"PYSPARK_PYTHON": "/no/python"}
"""What an executor would start, if rows went through Python."""
# the addresses are for one machine only: elsewhere executors find the driver by its host name
SPARK = """\
spark:
  master: {master}
  conf: {{spark.driver.host: 127.0.0.1, spark.driver.bindAddress: 127.0.0.1, spark.driver.memory: 1g,
    spark.executor.memory: 1g, spark.sql.shuffle.partitions: 2}}
"""


def test_cluster_makes_the_tables_of_one_machine(
    on_one_machine: Content, tmp_path: Path, spark: SparkSession
) -> None:
    """Every row of every table, from small batches and from large ones, and each executor had tasks."""
    paths = {way: tmp_path / way / "lakejoin.yaml" for way in ("straight", "large")}
    with standalone_cluster(tmp_path) as master:
        for path in paths.values():
            make_shop(path.parent, DAYS)
            path.write_text(path.read_text() + SPARK.format(master=master))
        said = run_pipelines(
            *[(path, way) for way, path in paths.items()], environment={**os.environ, **NO_PYTHON}
        )

    assert said == dict.fromkeys(paths, "2 batches")
    for path in paths.values():
        assert content(load(path), spark) == on_one_machine
        assert not (path.parent / "lake" / SCRATCH).exists()
    logs = [(folder / "stderr").read_text() for folder in executors(tmp_path)]
    assert len(logs) == WORKERS
    assert all("Running task" in log for log in logs)
