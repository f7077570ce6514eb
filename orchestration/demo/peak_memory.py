"""Measures how much memory a run and its JVM have used at most, for a line after a long run."""

from collections.abc import Iterator
from pathlib import Path

_PROCESSES = Path("/proc")


def peak_megabytes(jvm: int) -> int | None:
    """Return the sum of the peak resident memory of this process, all below it, and its JVM; None where it is not told.

    `jvm`: a process, which need not be below this one. Linux alone tells it. The peaks need not have come at the same
    time, so the sum is at most too high.
    """
    if not (_PROCESSES / "self" / "status").exists():
        return None
    processes = {process.resolve() for process in (*_family(_PROCESSES / "self"), _PROCESSES / str(jvm))}
    return sum(map(_peak, processes)) // 1024


def _family(process: Path) -> Iterator[Path]:
    """The process and its descendants."""
    yield process
    for task in _threads(process):
        for child in _read(task / "children").split():
            yield from _family(_PROCESSES / child)


def _threads(process: Path) -> list[Path]:
    try:
        return list((process / "task").iterdir())
    except OSError:
        return []  # it has ended


def _peak(process: Path) -> int:
    lines = _read(process / "status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _read(file: Path) -> str:
    """The text of a file; none where its process or thread has ended meanwhile."""
    try:
        return file.read_text()
    except OSError:
        return ""
