"""Where a run leaves no JVM behind."""

import os
import subprocess
from collections.abc import Mapping
from unittest.mock import patch

import pytest

from storage.spark.engine import lease
from storage.spark.engine.lease import leave_off


@pytest.mark.parametrize(
    ("environment", "conf", "off"),
    [
        ({}, {}, False),
        ({"CI": "true"}, {}, True),
        ({"CI": "false"}, {}, False),
        ({"PYSPARK_GATEWAY_PORT": "25333"}, {}, True),
        ({}, {"spark.submit.deployMode": "client"}, False),
        ({}, {"spark.submit.deployMode": "cluster"}, True),
    ],
    ids=str,
)
def test_no_engine_where_nobody_would_use_it_again(
    environment: Mapping[str, str], conf: Mapping[str, str], off: bool
) -> None:
    """In continuous integration, beside somebody's own JVM, on a cluster."""
    assert leave_off(environment, conf) is off


@pytest.mark.parametrize(
    ("process", "parent", "first", "off"),
    [(1, 0, "lakejoin", True), (7, 1, "tini", True), (7, 1, "bash", False), (7, 3, "tini", False)],
)
def test_no_engine_in_a_container_that_runs_one_batch(
    process: int, parent: int, first: str, off: bool
) -> None:
    """Its first process, or the child of an init that does nothing else; a shell in a container is no batch."""
    with (
        patch.object(os, "getpid", return_value=process),
        patch.object(os, "getppid", return_value=parent),
        patch.object(lease, "_first_process", return_value=first),
    ):
        assert leave_off({}, {}) is off


def test_lease_waits_for_the_end_of_its_jvm_as_for_a_process() -> None:
    """`explained` asks PySpark's gateway in this way whether the JVM is gone."""
    import socket

    here, there = socket.socketpair()
    with here:
        held = lease.Lease(here, 1, "", 7)
        with pytest.raises(subprocess.TimeoutExpired):
            held.wait(0)
        there.close()

        assert held.wait(5) == 0
