"""Leases an engine to this process, and starts one where there is none."""

import fcntl
import json
import logging
import os
import select
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

from lakejoin.storage.spark.engine.launch import Launch
from lakejoin.storage.spark.engine.sockets import (
    NoFolder,
    connect,
    engine_folder,
    exchange,
    log_path,
    socket_path,
)
from lakejoin.storage.spark.own_process import own_process
from lakejoin.transforms.model.printable_text import printable

_STARTS_WITHIN = 150.0
_ANSWERS_WITHIN = 15.0
"""Seconds that an engine may take: to start its JVM, and to clear up behind the run before."""
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
        # a child that outlives this process would keep it
        os.register_at_fork(after_in_child=connection.close)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the JVM, as `subprocess.Popen` does. Raises `subprocess.TimeoutExpired`."""
        ended = select.poll()
        ended.register(self._connection, select.POLLIN)
        if not ended.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired("the engine", timeout or 0)
        return 0


def leave_off(environment: Mapping[str, str]) -> bool:
    """Tell whether a JVM that stays would be of no use here, or never end.

    In continuous integration, in a container that runs one batch, and where somebody names a JVM himself.
    """
    return (
        environment.get("CI", "").lower() not in ("", "0", "false")
        or "PYSPARK_GATEWAY_PORT" in environment
        or os.getpid() == 1
        or (os.getppid() == 1 and _first_process() in _INITS)
    )


def lease_engine(
    launch: Launch, idle: timedelta, cache: Path, archive: Callable[[], str] = str
) -> Lease | None:
    """Return the lease of an engine that was started with `launch`, None where none can be had now.

    One is started where none runs; it ends itself after `idle` without a run. None: another run has it, it is about to
    end, or it does not start. `cache`: the folder below which its socket is. `archive`: says by which options a JVM
    starts from an archive; only asked for one that is started, for that reads the archive.
    """
    try:
        folder = engine_folder(cache)
        connection = connect(socket_path(folder, launch.key), _ANSWERS_WITHIN) or _start(
            launch, folder, archive
        )
    except (NoFolder, OSError) as error:
        logger.info("No engine is kept: %s", printable(error))
        return None
    if connection is None:
        return None
    answer = exchange(connection, {"ask": "lease", "pid": os.getpid(), "idle": idle.total_seconds()})
    if answer is None or "port" not in answer:
        connection.close()
        return None
    connection.settimeout(None)
    return Lease(connection, answer["port"], answer["secret"], answer["jvm"])


def _start(launch: Launch, folder: Path, archive: Callable[[], str]) -> socket.socket | None:
    """Start an engine and return a connection to it; None where another process is just starting it, or it is ending.

    The log is also the lock: who has it as its standard output, engine and JVM, holds it until the end.
    """
    with log_path(folder, launch.key).open("ab") as log:
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        here, there = socket.socketpair()
        with there:
            started = asdict(replace(launch, archive=archive()))
            told = {"launch": started, "folder": os.fspath(folder), "first": there.fileno()}
            command, environment = own_process("lakejoin.storage.spark.engine.keeper")
            subprocess.run(
                command, input=json.dumps(told).encode() + b"\n", stdout=log, stderr=log,
                pass_fds=[there.fileno()], cwd=folder, check=False, env=environment,
            )  # fmt: skip
    here.settimeout(_STARTS_WITHIN)
    return here


def _first_process() -> str:
    """The name of process 1; empty where the system does not say."""
    try:
        return Path("/proc/1/comm").read_text().strip()
    except OSError:
        return ""
