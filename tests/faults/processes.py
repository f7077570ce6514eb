"""Runs of the command line as processes of their own, with all of what they start; they can be killed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.layout import PLAN
from lakejoin.storage.spark.engine.sockets import answers, engine_folder
from lakejoin.storage.spark.jars import cache_directory

ROOT = Path(__file__).parents[2]
SECONDS = 300
"""How long a run of a few rows may take, at most."""


@dataclass(frozen=True)
class Process:
    """A command that was started."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        """End it with all its processes at once, by SIGKILL."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> tuple[int, str]:
        """Wait for its end; return exit code and what it said."""
        code = self.process.wait(SECONDS)
        return code, self.log.read_text()

    def java(self) -> int | None:
        """Return the process of its JVM, once there is one: its child, or the one that an engine leased to it."""
        pid = self.process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except FileNotFoundError:
            return None
        own = next((int(child) for child in children if "java" in _command(int(child))), None)
        return own or next((engine["jvm"] for engine in _engines() if engine["client"] == pid), None)


DAILY = ("run", "--batch-by", "date")
"""A run with a batch for each day, as `undisturbed` had them."""


def lakejoin(folder: Path, command: str, *options: str) -> Process:
    """Start a command on the pipeline in a folder."""
    log = folder.with_name(f"{folder.name}-{command}-{time.monotonic_ns()}.log")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "lakejoin", command, str(folder / "lakejoin.yaml"), *options],
            cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    return Process(process, log)


def wait_for(look: Callable[[], bool], process: Process) -> bool:
    """Wait until something is so, or the process is over; returns which."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and process.process.poll() is None:
        if look():
            return True
        time.sleep(0.02)
    return look()


def _engines() -> list[dict[str, Any]]:
    return [engine for _, engine in answers(engine_folder(cache_directory(os.environ)), "status")]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()
    except FileNotFoundError:
        return ""


def commits_of(pipeline: Pipeline, table: str) -> int:
    """How many commits a table has."""
    return len(list((Path(pipeline.lake) / table / "_delta_log").glob("*.json")))


def started(pipeline: Pipeline, process: Process) -> bool:
    """Wait until a run has planned its first batch."""
    before = 1
    return wait_for(lambda: commits_of(pipeline, PLAN) > before, process)


def finish(pipeline: Pipeline) -> None:
    """Run to the end."""
    code, said = lakejoin(pipeline.path.parent, *DAILY).end()
    assert code == 0, said
