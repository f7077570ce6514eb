"""To whom an engine is leased, and when it ends: with a JVM that does nothing."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines import until
from lakejoin.storage.spark.engine import keeper
from lakejoin.storage.spark.engine.jvm import Figures
from lakejoin.storage.spark.engine.launch import Launch
from lakejoin.storage.spark.engine.sockets import ask, connect, receive, send, socket_path

GIB = 1 << 30
SLIM = Figures(heap=GIB // 8, most=4 * GIB, threads=30, files=300)
Lease = tuple[socket.socket, dict[str, Any]]


class StillJvm:
    """A JVM that is there, and holds what a test says."""

    def __init__(self) -> None:
        self.port, self.secret, self.pid, self.memory = 4711, "hush", 99, GIB
        self.has_ended = False
        self.forgotten = 0
        self.held = SLIM
        self.trouble: Exception | None = None

    def forget_run(self) -> None:
        """Count, or fail."""
        if self.trouble:
            raise self.trouble
        self.forgotten += 1

    def figures(self) -> Figures:
        """Return what a test says."""
        return self.held

    def end(self) -> None:
        """Be gone."""
        self.has_ended = True


class Engine:
    """A keeper in a thread of its own."""

    def __init__(self, folder: Path, jvm: StillJvm, jar: Path) -> None:
        status = jar.stat()
        launch = Launch("/spark", {}, {}, ((str(jar), status.st_size, status.st_mtime_ns),), ())
        self.jvm, self.path = jvm, socket_path(folder, launch.key)
        self.first, there = socket.socketpair()
        self._connections = [self.first]
        self._thread = threading.Thread(target=keeper.Keeper(launch, folder, there).serve, daemon=True)
        self._thread.start()
        send(self.first, {"ask": "status"})
        assert until(self.path.exists)

    def connect(self) -> socket.socket:
        """Connect to it, until the end of the test."""
        connection = connect(self.path, 10)
        assert connection is not None
        self._connections.append(connection)
        return connection

    def lease(self, idle: float = 60) -> Lease:
        """Ask for a lease as the process with the number 7."""
        connection = self.connect()
        send(connection, {"ask": "lease", "pid": 7, "idle": idle})
        return connection, receive(connection) or {}

    def status(self) -> dict[str, Any]:
        """Return what it says of itself."""
        return ask(self.path, "status", 10) or {}

    def ends(self, within: float = 10) -> bool:
        """Whether it ends, and the JVM with it."""
        self._thread.join(within)
        return not self._thread.is_alive() and self.jvm.has_ended

    def close(self) -> None:
        """Take away what a test left."""
        for connection in self._connections:
            connection.close()
        self.jvm.has_ended = True
        self._thread.join(10)


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """Return a file that the engine is made of."""
    path = tmp_path / "delta.jar"
    path.touch()
    return path


@pytest.fixture
def engine(jar: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Return an engine that looks around often."""
    jvm = StillJvm()
    monkeypatch.setattr(keeper, "Jvm", lambda *_: jvm)
    monkeypatch.setattr(keeper, "_LOOKS_EACH", 0.02)
    with tempfile.TemporaryDirectory() as folder:  # pytest's are too long for a socket
        engine = Engine(Path(folder), jvm, jar)
        yield engine
        engine.close()


def test_lease_tells_how_to_reach_the_jvm(engine: Engine) -> None:
    """Port and secret of its gateway."""
    _, answer = engine.lease()

    assert answer == {"port": 4711, "secret": "hush", "jvm": 99}
    assert engine.status()["client"] == 7


def test_engine_serves_one_run_at_a_time(engine: Engine) -> None:
    """The second one is told who has it, at once, and the first one keeps it."""
    engine.lease()
    _, answer = engine.lease()

    assert answer == {"busy": 7}
    assert engine.status()["runs"] == 1
    assert engine.jvm.forgotten == 0


def test_run_is_forgotten_when_its_connection_is_gone(engine: Engine) -> None:
    """However its process ended; then it is the next one's turn, and each counts."""
    for number in (1, 2, 3):
        connection, answer = engine.lease()
        assert "port" in answer
        connection.close()
        assert until(lambda number=number: engine.jvm.forgotten == number)

    status = engine.status()
    assert (status["runs"], status["client"], status["after_last"]["threads"]) == (3, None, 30)
    assert 50 < status["ends_in"] <= 60


def test_engine_ends_when_another_has_its_socket(engine: Engine) -> None:
    """Somebody emptied the folder, and a run started another one: that one's socket and its own run are left alone."""
    connection, _ = engine.lease()
    engine.path.unlink()
    assert not engine.ends(within=0.2)
    connection.close()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.fspath(engine.path))

        assert engine.ends()
        assert engine.path.exists()


def test_idle_engine_ends(engine: Engine) -> None:
    """After as long as the last run said, counted from its end."""
    connection, _ = engine.lease(idle=0.3)
    time.sleep(0.5)
    assert engine.status()["client"] == 7
    connection.close()

    assert engine.ends()
    assert not engine.path.exists()


def test_stop_ends_an_idle_engine_at_once(engine: Engine) -> None:
    """It says that no run keeps it."""
    assert ask(engine.path, "stop", 10) == {"busy": None}
    assert engine.ends()


def test_stop_lets_a_run_come_to_its_end(engine: Engine) -> None:
    """It says which one, and takes no other."""
    connection, _ = engine.lease()
    assert ask(engine.path, "stop", 10) == {"busy": 7}
    assert not engine.ends(within=0.2)

    connection.close()

    assert engine.ends()


def test_engine_ends_when_another_version_is_installed(engine: Engine, jar: Path) -> None:
    """A run that is under way keeps the old one until its end."""
    connection, _ = engine.lease()
    jar.write_bytes(b"two")
    assert not engine.ends(within=0.2)

    connection.close()

    assert engine.ends()


@pytest.mark.parametrize(
    "held",
    [
        Figures(heap=3 * GIB, most=4 * GIB, threads=30, files=300),
        Figures(heap=GIB // 8, most=4 * GIB, threads=400, files=300),
        Figures(heap=GIB // 8, most=4 * GIB, threads=30, files=5000),
    ],
    ids=["heap", "threads", "files"],
)
def test_engine_that_is_worn_ends(engine: Engine, held: Figures) -> None:
    """What runs leave in it is not let grow."""
    engine.jvm.held = held

    engine.lease()[0].close()

    assert engine.ends()


def test_engine_whose_jvm_cannot_forget_ends(engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """Rather than give the next run what this one left; the log says why."""
    engine.jvm.trouble = OSError("no answer")

    engine.lease()[0].close()

    assert engine.ends()
    assert "could not forget run 1: OSError('no answer')" in capsys.readouterr().err


def test_engine_ends_with_its_jvm(engine: Engine) -> None:
    """And closes the lease, by which the run learns of it."""
    connection, _ = engine.lease()
    engine.jvm.has_ended = True

    assert engine.ends()
    assert receive(connection) is None


@pytest.mark.parametrize("said", [b"", b"\n", b"GET / HTTP/1.1\n", b'{"ask": "what"}\n', b'{"ask": "lease"'])
def test_whoever_asks_for_something_else_disturbs_nobody(engine: Engine, said: bytes) -> None:
    """A connection that says nothing, nonsense, or leaves in the middle."""
    connection = engine.connect()
    connection.sendall(said)
    connection.close()

    assert "port" in engine.lease()[1]
