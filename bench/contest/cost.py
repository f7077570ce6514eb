"""What a piece of work costs: time, memory, bytes, files, Spark jobs, Delta commits."""

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.contest.processes import busy_seconds, family, forget_peaks, peak, usage

Result = TypeVar("Result")

_COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class Cost:
    """What one piece of work cost."""

    wall_seconds: float
    cpu_seconds: float
    others_cpu_seconds: float
    """Used meanwhile by everything else on the machine: much of it makes the times worthless."""
    peak_memory_bytes: int
    peak_java_bytes: int
    peak_python_bytes: int
    read_bytes: int
    """By system calls, page cache included."""
    written_bytes: int
    disk_read_bytes: int
    disk_written_bytes: int
    files_written: int
    """New files that are there afterwards."""
    file_bytes: int
    spark_jobs: int
    delta_commits: int


@dataclass(frozen=True)
class Scope:
    """Whose work is measured, and where it leaves its files."""

    pid: int
    """The process that works, with all below it."""
    without: tuple[int, ...]
    """Branches below it that belong to others."""
    folder: Path
    jobs: Callable[[], int]
    """Counts the Spark jobs so far."""

    def pids(self) -> list[int]:
        """The processes as they are now."""
        return family(self.pid, self.without)


def measure(work: Callable[[], Result], scope: Scope) -> tuple[Result, Cost]:
    """Do a piece of work; return what it returned and what it cost."""
    files, jobs = _files(scope.folder), scope.jobs()
    os.sync()  # what others left to write is not to be waited for within the clock
    forget_peaks(scope.pids())
    busy, used, started = busy_seconds(), usage(scope.pids()), time.monotonic()
    result = work()
    seconds = time.monotonic() - started
    spent, top = usage(scope.pids()).plus(used, -1), peak(scope.pids())
    others = busy_seconds() - busy - spent.cpu_seconds
    new = {path: size for path, size in _files(scope.folder).items() if path not in files}
    return result, Cost(
        wall_seconds=round(seconds, 3),
        cpu_seconds=round(spent.cpu_seconds, 2),
        others_cpu_seconds=round(max(others, 0), 2),
        peak_memory_bytes=top.total,
        peak_java_bytes=top.java_bytes,
        peak_python_bytes=top.python_bytes,
        read_bytes=spent.read_bytes,
        written_bytes=spent.written_bytes,
        disk_read_bytes=spent.disk_read_bytes,
        disk_written_bytes=spent.disk_written_bytes,
        files_written=len(new),
        file_bytes=sum(new.values()),
        spark_jobs=scope.jobs() - jobs,
        delta_commits=sum(is_commit(path) for path in new),
    )


def is_commit(path: Path) -> bool:
    """Whether a file is the commit of a version of a Delta table."""
    return path.parent.name == "_delta_log" and _COMMIT.fullmatch(path.name) is not None


def _files(folder: Path) -> Mapping[Path, int]:
    """Sizes of all files below a folder; not of the hidden checksums that Hadoop keeps on local disks alone."""
    files = (path for path in folder.rglob("*") if not path.name.startswith(".") and path.is_file())
    return {path: path.stat().st_size for path in files}
