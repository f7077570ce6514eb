"""Processes that a test starts, waits for and ends."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_STOP_SECONDS = 20
_RUN_SECONDS = 900


def wait_for(look: Callable[[], str | None], seconds: float, what: str, log: Path) -> str:
    """Return what `look` finds. Raises `AssertionError` with the end of the log when it finds nothing in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.2)
    raise AssertionError(f"no {what} in {seconds} s:\n{log.read_text()[-3000:]}")


@contextmanager
def stopping(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """End a process when the block ends, by force if it does not go."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_pipelines(*runs: tuple[Path, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Work pipelines off in one process, each in a way of `places.runs`; what became of each, by its folder's name."""
    text = json.dumps([[str(path), way] for path, way in runs])
    result = python(Path(__file__).with_name("runs.py"), text, environment=environment)
    return dict(line.split(": ", 1) for line in result.stdout.splitlines())


def python(
    *arguments: str | Path, environment: Mapping[str, str], succeeds: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Run this Python with arguments from the project's root, to its end; output and errors come back."""
    result = subprocess.run(
        [sys.executable, *arguments], env=dict(environment), cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=_RUN_SECONDS,
    )  # fmt: skip
    if succeeds:
        assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-6000:]
    return result
