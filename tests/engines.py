"""Gives a test engines of its own, which end with it."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lakejoin.storage.spark.engine.sockets import answers, engine_folder
from lakejoin.storage.spark.jars import cache_directory


@contextmanager
def own_cache() -> Iterator[Path]:
    """Yield a cache with the JARs of the usual one, for XDG_CACHE_HOME; its engines end with the block."""
    with tempfile.TemporaryDirectory() as home:  # pytest's are too long for a socket
        cache, usual = Path(home) / "lakejoin", cache_directory(os.environ)
        cache.mkdir()
        (cache / "jars").symlink_to(usual / "jars")
        folder = engine_folder(cache)
        yield Path(home)
        for _, engine in answers(folder, "status"):
            os.kill(engine["pid"], signal.SIGTERM)
            assert until(lambda engine=engine: is_gone(engine["pid"]) and is_gone(engine["jvm"]))  # type: ignore[misc]


def until(holds: Callable[[], bool], within: float = 90) -> bool:
    """Whether something holds within some seconds."""
    latest = time.monotonic() + within
    while not holds():
        if time.monotonic() > latest:
            return False
        time.sleep(0.05)
    return True


def is_gone(process: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().split(")")[1].split()[0] == "Z"
    except OSError:
        return True
