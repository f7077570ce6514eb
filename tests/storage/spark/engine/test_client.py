"""Where a run leaves no JVM behind."""

import fcntl
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import pytest

from lakejoin.storage.spark.engine import client
from lakejoin.storage.spark.engine.client import Lease, lease_engine, leave_off
from lakejoin.storage.spark.engine.launch import Launch
from lakejoin.storage.spark.engine.sockets import receive, send, socket_path


@pytest.mark.parametrize(
    ("environment", "off"),
    [
        ({}, False),
        ({"CI": "true"}, True),
        ({"CI": "false"}, False),
        ({"PYSPARK_GATEWAY_PORT": "25333"}, True),
    ],
    ids=str,
)
def test_no_engine_where_nobody_would_use_it_again(environment: Mapping[str, str], off: bool) -> None:
    """In continuous integration, and beside somebody's own JVM."""
    assert leave_off(environment) is off


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
        patch.object(client, "_first_process", return_value=first),
    ):
        assert leave_off({}) is off


def test_lease_waits_for_the_end_of_its_jvm_as_for_a_process() -> None:
    """`explained` asks PySpark's gateway in this way whether the JVM is gone."""
    here, there = socket.socketpair()
    with here:
        held = Lease(here, 1, "", 7)
        with pytest.raises(subprocess.TimeoutExpired):
            held.wait(0)
        there.close()

        assert held.wait(5) == 0


def test_archive_is_not_looked_at_for_a_jvm_that_runs() -> None:
    """That would read 250 MB in each run; an engine that is there is leased as it is."""
    with tempfile.TemporaryDirectory() as home:  # pytest's are too long for a socket
        launch, cache = Launch("/spark", {}, {}, (), ()), Path(home)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(os.fspath(socket_path(client.engine_folder(cache), launch.key)))
            listener.listen()

            def answer() -> None:
                connection, _ = listener.accept()
                with connection:
                    assert (receive(connection) or {})["ask"] == "lease"
                    send(connection, {"port": 7, "secret": "", "jvm": 9})

            engine = Thread(target=answer)
            engine.start()
            asked: list[str] = []
            lease = lease_engine(launch, timedelta(minutes=1), cache, lambda: asked.append("") or "")  # type: ignore[func-returns-value]
            engine.join()

        assert lease is not None
        lease._connection.close()
        assert (lease.pid, asked) == (9, [])


def test_second_run_does_not_wait_for_an_engine_that_another_starts(tmp_path: Path) -> None:
    """Nobody listens yet, and somebody has the lock: it starts a JVM of its own at once."""
    launch = Launch("/spark", {}, {}, (), ())
    assert client.engine_folder(tmp_path).is_dir()
    with client.log_path(tmp_path / "engines", launch.key).open("ab") as log:
        fcntl.flock(log, fcntl.LOCK_EX)

        assert lease_engine(launch, timedelta(minutes=1), tmp_path) is None


def test_engine_that_cannot_be_started_is_no_error(tmp_path: Path) -> None:
    """The run starts a JVM of its own, and tells what is wrong with that, if anything is."""
    launch = Launch(str(tmp_path / "nowhere"), {}, {}, (), ())

    assert lease_engine(launch, timedelta(minutes=1), tmp_path) is None
    assert "nowhere" in client.log_path(tmp_path / "engines", launch.key).read_text()


@pytest.mark.parametrize(
    "wrong", [PermissionError(13, "Permission denied"), OSError(37, "No locks available")]
)
def test_folder_without_locks_is_no_error(tmp_path: Path, wrong: OSError) -> None:
    """As some network file systems are."""
    with patch.object(fcntl, "flock", side_effect=wrong):
        assert lease_engine(Launch("/spark", {}, {}, (), ()), timedelta(minutes=1), tmp_path) is None
