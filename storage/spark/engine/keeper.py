"""Keeps a JVM as long as runs come: leases it to one at a time, clears up behind each, and ends when it is idle.

This is the process that stays. A run that needs it starts it (`storage.spark.engine.lease`) and connects to its socket;
the connection is the lease. It ends with the process that holds it, however that ends, and with it the run's jobs.
"""

import json
import os
import select
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from storage.spark.engine.jvm import Figures, Jvm, JvmFailed
from storage.spark.engine.launch import Launch
from storage.spark.engine.sockets import log_path, receive, send, socket_path

_FORGETS_WITHIN = 60
_ASKS_WITHIN = 5
_LOOKS_EACH = 2.0
"""Seconds that a JVM may take to forget a run, that a question may take to come, and between two looks at the files."""
_LOG = 8 << 20
"""Bytes of the log from which on it begins anew with the next run."""
_THREADS, _FILES = 300, 1000
"""What an idle JVM has at most, else it is worn: with what a run leaves, later ones would fill it up."""


class Keeper:
    """Answers at a socket for one JVM."""

    def __init__(self, launch: Launch, folder: Path, listener: socket.socket, log: BinaryIO) -> None:
        """Start the JVM. Raises `JvmFailed`."""
        self._launch, self._listener, self._log = launch, listener, log
        self._jvm = Jvm(launch, folder, log)
        # One thread asks the JVM, over one connection, whatever becomes of an answer.
        self._asks = ThreadPoolExecutor(1)
        self._since, self._runs, self._stopping = time.time(), 0, False
        self._lease: socket.socket | None = None
        self._client: int | None = None
        self._idle, self._idle_from = 60.0, time.monotonic()
        self._figures: Figures | None = None

    def serve(self) -> None:
        """Answer until there is no more need for the JVM, then end it."""
        try:
            while not self._is_over():
                waited_for = [self._listener, *([self._lease] if self._lease else [])]
                ready, _, _ = select.select(waited_for, [], [], _LOOKS_EACH)
                if self._lease in ready and not self._forget():
                    return
                if self._listener in ready:
                    self._answer(self._listener.accept()[0])
        finally:
            if self._lease is not None:
                self._lease.close()
            self._asks.shutdown(wait=False)
            self._jvm.end()

    def _is_over(self) -> bool:
        if self._jvm.has_ended:
            return True
        if self._lease is not None:
            return False
        idle = time.monotonic() - self._idle_from
        return self._stopping or idle >= self._idle or not self._launch.is_current

    def _answer(self, connection: socket.socket) -> None:
        """Answer one question; the connection of a lease stays open."""
        connection.settimeout(_ASKS_WITHIN)
        question = receive(connection) or {}
        try:
            match question.get("ask"):
                case "lease" if self._lease is None:
                    self._let(connection, question)
                    return
                case "lease":
                    send(connection, {"busy": self._client})
                case "status":
                    send(connection, self._status())
                case "stop":
                    self._stopping = True
                    send(connection, {"busy": self._client})
        except OSError:
            pass  # whoever asked is gone
        connection.close()

    def _let(self, connection: socket.socket, question: dict[str, Any]) -> None:
        if os.fstat(self._log.fileno()).st_size > _LOG:
            self._log.truncate(0)
        self._lease, self._client, self._idle = connection, question["pid"], question["idle"]
        self._runs += 1
        # where the other side is gone already, its end is what is read next
        with suppress(OSError):
            send(connection, {"port": self._jvm.port, "secret": self._jvm.secret, "jvm": self._jvm.pid})

    def _forget(self) -> bool:
        """Clear up behind the run that is gone; False where the JVM is of no more use."""
        assert self._lease is not None
        self._lease.close()
        self._lease = self._client = None
        try:
            self._asks.submit(self._jvm.forget_run).result(_FORGETS_WITHIN)
            self._figures = self._asks.submit(self._jvm.figures).result(_FORGETS_WITHIN)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next run gets another JVM
            print(f"The JVM could not forget run {self._runs}: {error!r}", file=sys.stderr, flush=True)  # noqa: T201
            return False
        self._idle_from = time.monotonic()
        worn = self._figures
        return worn.heap < worn.most / 2 and worn.threads < _THREADS and worn.files < _FILES

    def _status(self) -> dict[str, Any]:
        idle = None if self._lease else self._idle - (time.monotonic() - self._idle_from)
        return {
            "pid": os.getpid(), "jvm": self._jvm.pid, "since": self._since, "runs": self._runs, "client": self._client,
            "ends_in": idle, "stopping": self._stopping, "memory": self._jvm.memory,
            "after_last": asdict(self._figures) if self._figures else None,
        }  # fmt: skip


def main() -> None:
    """Serve as the engine that standard input describes; the process that started this one goes on at once."""
    told = json.loads(sys.stdin.readline())
    if os.fork():
        os._exit(0)
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    launch = Launch.told(told["launch"])
    folder = Path(told["folder"])
    with log_path(folder, launch.key).open("ab", buffering=0) as log:
        for stream, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log.fileno()), (2, log.fileno())):
            os.dup2(file, stream)
        with socket.socket(fileno=told["listener"]) as listener:
            try:
                Keeper(launch, folder, listener, log).serve()
            except JvmFailed as error:
                print(error, file=sys.stderr, flush=True)  # noqa: T201 - into the log
            finally:
                # nobody else may have another at this path: the lock is held until the process is gone
                socket_path(folder, launch.key).unlink(missing_ok=True)
    # threads that still wait for the JVM would keep the process
    os._exit(0)


if __name__ == "__main__":
    main()
