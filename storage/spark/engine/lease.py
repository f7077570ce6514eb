"""Leases an engine to this process, and starts one where there is none."""

import fcntl
import json
import logging
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from storage.spark.engine.launch import Launch
from storage.spark.engine.sockets import NoFolder, connect, engine_folder, receive, send, socket_path

_ANSWERS_WITHIN = 150.0
"""Seconds that an engine may take: to start its JVM, or to clear up behind the run before."""
_INITS = ("tini", "docker-init", "dumb-init", "catatonit")
"""What a container may have as its first process, with the run as the second."""

logger = logging.getLogger(__name__)


class Lease:
    """The use of an engine's JVM until this process ends; in PySpark's gateway it stands for the JVM's process."""

    def __init__(self, connection: socket.socket, port: int, secret: str, pid: int) -> None:
        self._connection = connection
        self.pid = pid
        self.variables: Mapping[str, str] = {
            "PYSPARK_GATEWAY_PORT": str(port),
            "PYSPARK_GATEWAY_SECRET": secret,
        }
        """What tells PySpark to connect to it."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the JVM, as `subprocess.Popen` does. Raises `subprocess.TimeoutExpired`."""
        ended, _, _ = select.select([self._connection], [], [], timeout)
        if not ended:
            raise subprocess.TimeoutExpired("the engine", timeout or 0)
        return 0


def leave_off(environment: Mapping[str, str], conf: Mapping[str, str]) -> bool:
    """Tell whether a JVM that stays would be of no use here, or never end.

    In continuous integration, in a container that runs one batch, where somebody names a JVM himself, and where a
    cluster has the driver.
    """
    return (
        os.name != "posix"
        or environment.get("CI", "").lower() not in ("", "0", "false")
        or "PYSPARK_GATEWAY_PORT" in environment
        or conf.get("spark.submit.deployMode") == "cluster"
        or os.getpid() == 1
        or (os.getppid() == 1 and _first_process() in _INITS)
    )


def lease_engine(
    launch: Launch, idle: timedelta, environment: Mapping[str, str], cache: Path
) -> Lease | None:
    """Return the lease of an engine that was started with `launch`, None where none can be had now.

    One is started where none runs; it ends itself after `idle` without a run. None: another run has it, it is about to
    end, or it does not start. `environment` and `cache`: where its socket is.
    """
    try:
        folder = engine_folder(environment, cache)
    except NoFolder as error:
        logger.info("No engine is kept: %s", error)
        return None
    path = socket_path(folder, launch.key)
    connection = connect(path, _ANSWERS_WITHIN) or _start(launch, folder, path)
    if connection is None:
        return None
    try:
        send(connection, {"ask": "lease", "pid": os.getpid(), "idle": idle.total_seconds()})
        answer = receive(connection)
    except OSError:
        answer = None
    if answer is None or "port" not in answer:
        connection.close()
        return None
    connection.settimeout(None)
    return Lease(connection, answer["port"], answer["secret"], answer["jvm"])


def _start(launch: Launch, folder: Path, path: Path) -> socket.socket | None:
    """Start an engine and connect to it; None where another process is just starting it, or it is ending."""
    with (folder / f"{launch.key}.lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return connect(path, _ANSWERS_WITHIN)
        path.unlink(missing_ok=True)
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
            listener.bind(os.fspath(path))
            listener.listen()
            _start_keeper(launch, folder, listener.fileno(), lock.fileno())
            # before its first question, so that no other process is served first
            return connect(path, _ANSWERS_WITHIN)


def _start_keeper(launch: Launch, folder: Path, listener: int, lock: int) -> None:
    """Start the process that stays: it holds the socket, and the lock as long as it lives."""
    root = Path(__file__).resolve().parents[3]
    path = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = {"launch": asdict(launch), "folder": os.fspath(folder), "listener": listener}
    subprocess.run(
        [sys.executable, "-m", "storage.spark.engine.keeper"],
        input=json.dumps(told).encode() + b"\n", pass_fds=(listener, lock), cwd=folder, check=False,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )  # fmt: skip


def _first_process() -> str:
    """The name of process 1; empty where the system does not say."""
    try:
        return Path("/proc/1/comm").read_text().strip()
    except OSError:
        return ""
