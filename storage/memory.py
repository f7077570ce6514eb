"""How much memory a process and those it started have used at most: for a line after a long run."""

from pathlib import Path

_PROCESSES = Path("/proc")


def peak_megabytes() -> int | None:
    """Return the sum of the peak resident memory of this process and all below it; None where it is not told.

    Linux alone tells it. The peaks need not have come at the same time, so the sum is at most too high.
    """
    if not (_PROCESSES / "self" / "status").exists():
        return None
    return sum(_peak(process) for process in _family(_PROCESSES / "self")) // 1024


def _family(process: Path) -> list[Path]:
    """The process and its descendants; one that ends meanwhile is left out."""
    try:
        children = [
            child
            for task in (process / "task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return [process, *[member for child in children for member in _family(_PROCESSES / child)]]


def _peak(process: Path) -> int:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
