"""Looks at the machine: memory, the disk where a lake lies, a port."""

import os
import re
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from lakejoin.orchestration.health.finding import Finding

_GIB = 1 << 30
_BESIDE_HEAP = int(1.5 * _GIB)
"""What Python and the JVM take beside the heap."""
_TIGHT, _FULL = 10 * _GIB, _GIB
"""Free bytes of a disk below which a lake may soon have no room, and has none."""
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container's limit stands."""
_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40}


def memory(driver_memory: str, total: int) -> Finding:
    """Compare the heap that a run asks for with the memory that there is, in bytes."""
    heap = bytes_of(driver_memory)
    found = f"{_gib(total)}, of which a run takes {_gib(heap)} for its heap and some {_gib(_BESIDE_HEAP)} beside it"
    if total >= heap + _BESIDE_HEAP:
        return Finding("memory", "ok", found)
    less = "lower `spark.driver.memory` (under spark: conf:), or take a larger machine"
    return Finding("memory", "wrong" if total < heap else "warning", f"{found}; {less}")


def bytes_of(size: str) -> int:
    """Return what a size of Spark's is in bytes; a number alone counts MiB.

    >>> bytes_of("4g") == bytes_of("4096") == 4 << 30
    True
    """
    matched = re.fullmatch(r"\s*([0-9]+)\s*([kmgt]?)b?\s*", size.lower())
    return int(matched[1]) << _UNITS[matched[2] or "m"] if matched else 0


def total_memory(limits: Sequence[Path] = _LIMITS) -> int:
    """Return the bytes of memory that this process may take: those of the machine, or of its container."""
    of_machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    told = [path.read_text().strip() for path in limits if path.exists()]
    return min([of_machine, *[int(text) for text in told if text.isdigit()]])


def disk(lake: Path) -> Finding:
    """Look for room and the right to write where a lake lies, or will."""
    there = next(folder for folder in (lake, *lake.parents) if folder.exists())
    if not os.access(there, os.W_OK):
        return Finding(
            "disk", "wrong", f"{there} may not be written by this user; give it the right, or move the lake"
        )
    free = shutil.disk_usage(there).free
    found = f"{_gib(free)} free where {lake} lies"
    if free >= _TIGHT:
        return Finding("disk", "ok", found)
    return Finding("disk", "wrong" if free < _FULL else "warning", f"{found}; make room, or move the lake")


def port(host: str, number: int) -> Finding:
    """Look whether the port of the web interface is free."""
    if (reason := unusable_port(host, number)) is not None:
        said = f"{number} cannot be used ({reason}); `lakejoin dev --port N` takes another"
        return Finding("port", "warning", said)
    return Finding("port", "ok", f"{number} is free for `lakejoin dev`")


def unusable_port(host: str, number: int) -> str | None:
    """Return why nothing can listen at a port; None where it can."""
    with socket.socket() as probe:
        # As the server itself will: a port that was closed a moment ago counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, number))
        except OSError as error:
            return str(error.strerror)
    return None


def _gib(size: int) -> str:
    return f"{size / _GIB:,.1f} GiB"
