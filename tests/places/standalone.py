"""A Spark cluster of its own for a test: a master and two workers on the loopback address, each a process."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from lakejoin.storage.spark.jars import cache_directory
from lakejoin.storage.spark.java import find_java, wrap_java
from places.processes import stopping, wait_for

WORKERS = 2
_SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_START_SECONDS = 120


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start a cluster that logs and works below `folder`, and return its address, `spark://…`."""
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_running(log, "master.Master", "--host", "127.0.0.1", "--port", "0"))
        master = wait_for(lambda: _found(log, r"spark://127\.0\.0\.1:\d+"), _START_SECONDS, "a master", log)
        for number in range(WORKERS):
            log, work = folder / f"worker-{number}.log", folder / f"worker-{number}"
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(work))
            stack.enter_context(_running(log, "worker.Worker", "--host", "127.0.0.1", *size, master))
        for number in range(WORKERS):
            log = folder / f"worker-{number}.log"
            wait_for(lambda log=log: _found(log, "Successfully registered"), _START_SECONDS, "a worker", log)
        yield master


def executors(folder: Path) -> list[Path]:
    """Return the working directory of every executor that ran on a cluster below `folder`."""
    return sorted(folder.glob("worker-*/app-*/*"))


@contextmanager
def _running(log: Path, daemon: str, *arguments: str) -> Iterator[None]:
    home = wrap_java(find_java(os.environ), cache_directory(os.environ))
    environment = {
        **os.environ,
        "JAVA_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC",
    }
    environment.pop("SPARK_HOME", None)
    command = [str(_SPARK_CLASS), f"{_DEPLOY}.{daemon}", "--webui-port", "0", *arguments]
    with (
        log.open("w") as output,
        stopping(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)),
    ):
        yield


def _found(log: Path, pattern: str) -> str | None:
    found = re.search(pattern, log.read_text())
    return found[0] if found else None
