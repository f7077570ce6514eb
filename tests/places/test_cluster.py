"""The same pipeline on a standalone cluster, whose executors are processes of their own."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import Content, content, make_shop
from lakejoin.orchestration.config import load
from lakejoin.storage.lake.layout import SCRATCH
from places.conftest import DAYS
from places.processes import run_pipelines
from places.remote_shop import downloaded, make_remote_shop
from places.s3_server import SECRET, S3Server
from places.standalone import WORKERS, executors, standalone_cluster

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
    on_one_machine: Content, server: S3Server, tmp_path: Path, spark: SparkSession
) -> None:
    """Every row of every table, from small batches in a directory and from large ones on S3.

    Each executor had tasks. The driver alone has the keys of S3 in its environment; no log holds the secret.
    """
    with standalone_cluster(tmp_path) as master:
        settings = SPARK.format(master=master)
        local = make_shop(tmp_path / "straight", DAYS).path
        local.write_text(local.read_text() + settings)
        remote = make_remote_shop(tmp_path / "large", server, settings)
        environment = {**server.environment, **NO_PYTHON}
        said = run_pipelines((local, "straight"), (remote, "large"), environment=environment)

    assert said == {"straight": "2 batches", "large": "2 batches"}
    assert content(load(local), spark) == on_one_machine
    assert content(downloaded(remote, server), spark) == on_one_machine
    assert not (local.parent / "lake" / SCRATCH).exists()
    logs = [(folder / "stderr").read_text() for folder in executors(tmp_path)]
    assert len(logs) == WORKERS
    assert all("Running task" in log for log in logs)
    assert not [log for log in (*logs, *[f.read_text() for f in tmp_path.glob("*.log")]) if SECRET in log]
