"""A `dagster dev` of its own for a test: fresh records, a free port, and nothing left running behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from lakejoin.orchestration.cli.dev import prepare_home

ROOT = Path(__file__).parents[2]
START_SECONDS = 180
STOP_SECONDS = 20
Found = TypeVar("Found")


@dataclass(frozen=True)
class DagsterServer:
    """A web interface and what it serves."""

    url: str
    log: Path

    def ask(self, query: str) -> dict[str, Any]:
        """Return the data that answers a GraphQL query. Raises `AssertionError` with the server's message."""
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
        assert "errors" not in answer, answer["errors"]
        data: dict[str, Any] = answer["data"]
        return data

    def finished_run(self, seconds: float) -> dict[str, Any]:
        """Wait for the only run to end, one way or the other, and return it."""
        query = "{runsOrError(limit: 5) {... on Runs {results {runId status tags {key value}}}}}"

        def ended() -> dict[str, Any] | None:
            runs = self.ask(query)["runsOrError"]["results"]
            assert len(runs) < 2, "one range of partitions is one run"
            return next((run for run in runs if run["status"] in {"SUCCESS", "FAILURE", "CANCELED"}), None)

        return wait_for(ended, seconds, "the run's end", self.log)


@contextmanager
def dagster_dev(configuration: Path, folder: Path) -> Iterator[DagsterServer]:
    """Serve a pipeline's definitions on the loopback address; records and log go below `folder`."""
    home, log = prepare_home(folder / "dagster"), folder / "dagster.log"
    port = _free_port()
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(ROOT / "workspace.yaml")]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    # Dagster's processes import the code that is tested, whether or not it is installed
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    ours = {"DAGSTER_HOME": str(home), "LAKEJOIN_CONFIG": str(configuration), "PYTHONPATH": path}
    environment = {**os.environ, **ours}
    server = DagsterServer(f"http://127.0.0.1:{port}", log)
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            wait_for(lambda: _serves(server, process), START_SECONDS, "the web interface", log)
            yield server
        finally:
            _end(process)


def wait_for(look: Callable[[], Found | None], seconds: float, what: str, log: Path) -> Found:
    """Look once a second until something is there. Raises `AssertionError` with the end of the log."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(1)
    raise AssertionError(f"waited {seconds} s for {what}; end of {log}:\n{_tail(log)}")


def _serves(server: DagsterServer, process: subprocess.Popen[bytes]) -> bool | None:
    assert process.poll() is None, f"dagster dev ended by itself:\n{_tail(server.log)}"
    try:
        with urllib.request.urlopen(f"{server.url}/server_info", timeout=5):
            return True
    except OSError:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole process group: code server, daemon, runs with their JVM."""
    for sign in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(STOP_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:])
