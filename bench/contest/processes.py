"""What processes used, as Linux tells it below /proc: processor time, bytes, peak memory."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

_PROCESSES = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)  # in a line of /proc/stat: idle, and waiting for a disk
_COUNTED_TWICE = 8  # what guests use is part of what users use


@dataclass(frozen=True)
class Usage:
    """What processes used since they were started."""

    cpu_seconds: float = 0
    read_bytes: int = 0
    """Asked for by system calls, whether a disk or the page cache answered."""
    written_bytes: int = 0
    disk_read_bytes: int = 0
    disk_written_bytes: int = 0

    def plus(self, other: "Usage", times: int = 1) -> "Usage":
        """Return the sum, or with `times` -1 what came since the other."""
        return Usage(
            self.cpu_seconds + times * other.cpu_seconds,
            self.read_bytes + times * other.read_bytes,
            self.written_bytes + times * other.written_bytes,
            self.disk_read_bytes + times * other.disk_read_bytes,
            self.disk_written_bytes + times * other.disk_written_bytes,
        )


@dataclass(frozen=True)
class Peak:
    """The most memory that processes held at one time; each process has its own time."""

    java_bytes: int = 0
    python_bytes: int = 0

    @property
    def total(self) -> int:
        """At most too high: the two need not have come at the same time."""
        return self.java_bytes + self.python_bytes


def family(pid: int, without: Collection[int] = ()) -> list[int]:
    """Return a process and all below it, but none of the branches that begin with one of `without`."""
    if pid in without:
        return []
    tasks = [task / "children" for task in _entries(_PROCESSES / str(pid) / "task")]
    children = [int(child) for task in tasks for child in _read(task).split()]
    return [pid, *[member for child in children for member in family(child, without)]]


def name(pid: int) -> str:
    """Return the name of the program that a process runs; none where it has ended."""
    return _read(_PROCESSES / str(pid) / "comm").strip()


def usage(pids: Iterable[int]) -> Usage:
    """Return what processes used, those below them that have ended included."""
    return reduce(Usage.plus, (_usage(_PROCESSES / str(pid)) for pid in pids), Usage())


def _usage(process: Path) -> Usage:
    # behind the name, which may hold anything: user and system time, and those of ended children
    stat = _read(process / "stat").rpartition(")")[2].split()
    fields = dict(line.split(": ") for line in _read(process / "io").splitlines())
    return Usage(
        sum(map(int, stat[11:15])) / _TICKS,
        *[int(fields.get(name, 0)) for name in ("rchar", "wchar", "read_bytes", "write_bytes")],
    )


def busy_seconds() -> float:
    """Return the processor time that all processes of the machine used since it was started."""
    ticks = [int(value) for value in _read(_PROCESSES / "stat").splitlines()[0].split()[1:]][:_COUNTED_TWICE]
    return sum(count for place, count in enumerate(ticks) if place not in _IDLE) / _TICKS


def forget_peaks(pids: Iterable[int]) -> None:
    """Begin the peaks of processes anew; where the machine does not allow it they go on from their start."""
    for pid in pids:
        with suppress(OSError):
            (_PROCESSES / str(pid) / "clear_refs").write_text("5")


def peak(pids: Iterable[int]) -> Peak:
    """Return the peaks of processes, that of Java apart."""
    java = python = 0
    for pid in pids:
        lines = _read(_PROCESSES / str(pid) / "status").splitlines()
        kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
        if name(pid) == "java":
            java += kilobytes * 1024
        else:
            python += kilobytes * 1024
    return Peak(java, python)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []  # the process has ended


def _read(file: Path) -> str:
    """The text of a file; none where its process has ended meanwhile."""
    try:
        return file.read_text()
    except OSError:
        return ""
