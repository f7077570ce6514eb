"""Nothing that a pipeline starts can be reached from another machine."""

import os
import socket
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hostile.sockets import is_loopback, listening
from recordings.tiny import write_pipeline
from ui.dagster_server import dagster_dev

pytestmark = [
    pytest.mark.bad_input(34),
    pytest.mark.skipif(sys.platform != "linux", reason="sockets are looked up in /proc"),
]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_open_socket_is_seen(host: str) -> None:
    """What the other tests look with tells a loopback address from all addresses."""
    with socket.create_server((host, 0)) as server:
        found = listening(os.getpid())[server.getsockname()[1]]

    assert is_loopback(found) is (host == "127.0.0.1")


@pytest.mark.spark
def test_spark_listens_on_the_loopback_address_only(spark: SparkSession) -> None:
    """The gateway to Python, the driver and its blocks; there is no interface of Spark's own."""
    spark.range(1).count()

    found = listening(os.getpid())

    assert found
    assert [address for address in found.values() if not is_loopback(address)] == []
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.slow
def test_dagster_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    """The web interface has no password, and neither have the servers of code behind it."""
    configuration = write_pipeline(tmp_path)

    with dagster_dev(configuration, tmp_path) as server:
        found = listening(os.getpid())

    port = int(server.url.rpartition(":")[2])
    assert port in found
    assert [address for address in found.values() if not is_loopback(address)] == []
