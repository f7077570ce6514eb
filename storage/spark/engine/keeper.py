"""Keeps a JVM as long as runs come: leases it to one at a time, clears up behind each, and ends when it is idle.

This is the process that stays. A run that needs it starts it (`storage.spark.engine.client`), later ones connect to its
socket. The connection is the lease: it ends with the process that holds it, in whatever way, and so do the run's jobs.
"""

import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lakejoin.storage.spark.engine.jvm import Figures, Jvm, JvmFailed
from lakejoin.storage.spark.engine.launch import Launch
from lakejoin.storage.spark.engine.sockets import receive, send, socket_path
from lakejoin.transforms.model.printable_text import printable_lines

_FORGETS_WITHIN = 60
_ASKS_WITHIN = 5
_LOOKS_EACH = 2.0
"""Seconds that a JVM may take to forget a run, that a question may take to come, and between two looks at the files."""
_STDERR = 2
_LOG = 8 << 20
"""Bytes of the log from which on it begins anew with the next run."""
_THREADS, _FILES = 300, 1000
"""What an idle JVM has at most, else it is worn: with what a run leaves, later ones would fill it up."""


class Keeper:
    """Answers for one JVM: first over the connection of the process that started it, then at its socket."""

    def __init__(self, launch: Launch, folder: Path, first: socket.socket) -> None:
        """Start the JVM. Raises `JvmFailed`."""
        # One thread asks the JVM, over one connection; it may wait for an answer for ever.
        self._asks = ThreadPoolExecutor(1)
        self._jvm = self._asks.submit(Jvm, launch, folder).result()
        self._launch, self._first, self._path = launch, first, socket_path(folder, launch.key)
        self._since, self._runs, self._stopping = time.time(), 0, False
        self._lease: socket.socket | None = None
        self._client: int | None = None
        self._idle, self._idle_from = 60.0, time.monotonic()
        self._figures: Figures | None = None
        self._ours: int | None = None

    def serve(self) -> None:
        """Answer until there is no more need for the JVM, then end it."""
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listener:
            # It takes the place of one that was left: of an engine that runs, the lock would have kept this one away.
            draft = self._path.with_suffix(".new")
            draft.unlink(missing_ok=True)
            listener.bind(os.fspath(draft))
            listener.listen()
            draft.replace(self._path)
            self._ours = self._inode()
            try:
                self._answer(self._first)
                while not self._is_over():
                    self._wait(listener)
            finally:
                # whoever comes now starts another JVM at once
                if self._inode() == self._ours:
                    self._path.unlink(missing_ok=True)
                listener.close()
                if self._lease is not None:
                    self._lease.close()
                self._asks.shutdown(wait=False)
                self._jvm.end()

    def _wait(self, listener: socket.socket) -> None:
        """Wait for the end of a lease or for a question."""
        waited_for = [listener, *([self._lease] if self._lease else [])]
        ready, _, _ = select.select(waited_for, [], [], _LOOKS_EACH)
        if self._lease in ready:
            self._forget()
        elif listener in ready:
            with suppress(OSError):
                self._answer(listener.accept()[0])

    def _inode(self) -> int | None:
        """What tells this socket from another engine's, where somebody emptied the folder."""
        try:
            return self._path.stat().st_ino
        except OSError:
            return None

    def _is_over(self) -> bool:
        if self._jvm.has_ended:
            return True
        if self._lease is not None:
            return False
        idle = time.monotonic() - self._idle_from
        found = self._inode() == self._ours and self._launch.is_current
        return self._stopping or idle >= self._idle or not found

    def _answer(self, connection: socket.socket) -> None:
        """Answer one question; the connection of a lease stays open. Raises `OSError` where whoever asked is gone."""
        connection.settimeout(_ASKS_WITHIN)
        question = receive(connection) or {}
        with ExitStack() as stack:
            stack.callback(connection.close)
            match question.get("ask"):
                case "lease" if self._lease is None:
                    stack.pop_all()
                    self._let(connection, question.get("pid"), question.get("idle", self._idle))
                case "lease":
                    send(connection, {"busy": self._client})
                case "status":
                    send(connection, self._status())
                case "stop":
                    self._stopping = True
                    send(connection, {"busy": self._client})

    def _let(self, connection: socket.socket, client: int | None, idle: float) -> None:
        if os.fstat(_STDERR).st_size > _LOG:
            os.ftruncate(_STDERR, 0)
        self._lease, self._client, self._idle = connection, client, idle
        self._runs += 1
        # where the other side is gone already, its end is what is read next
        with suppress(OSError):
            send(connection, {"port": self._jvm.port, "secret": self._jvm.secret, "jvm": self._jvm.pid})

    def _forget(self) -> None:
        """Clear up behind the run that is gone; where that fails, or leaves too much, the engine is over."""
        assert self._lease is not None
        self._lease.close()
        self._lease = self._client = None
        self._idle_from = time.monotonic()
        try:
            self._asks.submit(self._jvm.forget_run).result(_FORGETS_WITHIN)
            held = self._figures = self._asks.submit(self._jvm.figures).result(_FORGETS_WITHIN)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next run gets another JVM
            _log(f"The JVM could not forget run {self._runs}: {error!r}")
            self._stopping = True
            return
        if held.heap > held.most / 2 or held.threads > _THREADS or held.files > _FILES:
            self._stopping = True

    def _status(self) -> dict[str, Any]:
        idle = None if self._lease else self._idle - (time.monotonic() - self._idle_from)
        return {
            "pid": os.getpid(), "jvm": self._jvm.pid, "since": self._since, "runs": self._runs, "client": self._client,
            "ends_in": idle, "stopping": self._stopping, "memory": self._jvm.memory,
            "after_last": asdict(self._figures) if self._figures else None,
        }  # fmt: skip


def _log(text: str) -> None:
    """Write into the log of the engine, which is the standard error of its processes."""
    print(printable_lines(text), file=sys.stderr, flush=True)  # noqa: T201


def main() -> None:
    """Serve as the engine that standard input describes; the process that started this one goes on at once."""
    told = json.loads(sys.stdin.readline())
    if os.fork():
        os._exit(0)
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        first = socket.socket(fileno=told["first"])
        Keeper(Launch.from_json(told["launch"]), Path(told["folder"]), first).serve()
    except JvmFailed as error:
        _log(str(error))
    except Exception:  # noqa: BLE001 - a mistake of ours
        _log(traceback.format_exc())
    finally:
        # a thread that still waits for the JVM would keep the process
        os._exit(0)


if __name__ == "__main__":
    main()
