"""Measures how much memory a process and those it started have used at most, for a line after a long run."""

from collections.abc import Iterator
from pathlib import Path

_PROCESSES = Path("/proc")


def peak_megabytes() -> int | None:
    """Return the sum of the peak resident memory of this process and all below it; None where it is not told.

    Linux alone tells it. The peaks need not have come at the same time, so the sum is at most too high.
    """
    if not (_PROCESSES / "self" / "status").exists():
        return None
    return sum(_peak(process) for process in _family(_PROCESSES / "self")) // 1024


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
