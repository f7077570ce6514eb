"""What a process costs from its start: a run that finds nothing to do, and a Spark session until it is ready.

Only the time until a mark is reached counts. Which processes run meanwhile is looked at again and again, so that a
JVM, which lives for seconds, is seen.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.contest.processes import busy_seconds, family, name, usage
from lakejoin.storage.errors import LakejoinError

_ROOT = Path(__file__).resolve().parents[2]
_LOOK_SECONDS = 0.01
_READY = "ready"
_SESSION = """\
import sys
from lakejoin.storage.spark.session import start_session
start_session(sys.argv[1], {"spark.driver.memory": sys.argv[2]})
print(sys.argv[3], flush=True)
sys.stdin.read()
"""
"""A session with Delta, as ours is; it waits until it is ended, so that its end does not count."""


class StartFailed(LakejoinError):
    """A process that was to be measured ended otherwise than it should; the message has what it said."""


@dataclass(frozen=True)
class Start:
    """What a process took until it was done, or ready."""

    wall_seconds: float
    others_cpu_seconds: float
    """Used meanwhile by everything else on the machine."""
    programs: tuple[str, ...]
    """Names of all processes that were seen below it, itself included."""

    @property
    def java(self) -> bool:
        """Whether a JVM was among them."""
        return "java" in self.programs


@dataclass
class _Watch:
    """Looks at the processes below one until the block ends."""

    pid: int
    seen: set[str] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "_Watch":
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.is_set():
            self.seen |= {found for found in map(name, family(self.pid)) if found}
            self._ended.wait(_LOOK_SECONDS)


def empty_run(pipeline: Path) -> Start:
    """Run `lakejoin run` on a lake for which nothing is waiting, to its end. Raises `StartFailed`."""
    busy, used, started = busy_seconds(), usage([os.getpid()]), time.monotonic()
    with (
        _process(["-m", "lakejoin", "run", str(pipeline)]) as process,
        _Watch(process.pid) as watch,
    ):
        said = _read(process)
        code = process.wait()
        seconds = time.monotonic() - started
    spent = usage([os.getpid()]).plus(used, -1).cpu_seconds  # with those below that have ended
    if code != 0 or not said.startswith("Nothing pending"):
        raise StartFailed(
            f"{pipeline}: exit code {code}, expected 0 and nothing pending; said: {said.strip()}"
        )
    return _start(seconds, busy_seconds() - busy - spent, watch)


def spark_session(master: str, memory: str) -> Start:
    """Start a Spark session in a process of its own until it is ready, then end it. Raises `StartFailed`."""
    busy, started = busy_seconds(), time.monotonic()
    with (
        _process(["-c", _SESSION, master, memory, _READY]) as process,
        _Watch(process.pid) as watch,
    ):
        assert process.stdout is not None  # it is a pipe
        lines = iter(process.stdout.readline, "")
        ready = any(line.strip() == _READY for line in lines)
        seconds = time.monotonic() - started
        others = busy_seconds() - busy - usage(family(process.pid)).cpu_seconds
        os.killpg(process.pid, signal.SIGKILL)  # a group of its own, JVM included
    if not ready:
        raise StartFailed("a Spark session did not start; what it said is above")
    return _start(seconds, others, watch)


def _start(seconds: float, others: float, watch: _Watch) -> Start:
    return Start(round(seconds, 3), round(max(others, 0), 2), tuple(sorted(watch.seen)))


def _process(arguments: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=_ROOT, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None  # it is a pipe
    return process.stdout.read()
