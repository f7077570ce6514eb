"""Starts a JVM that serves one run after another, and makes it forget each."""

import os
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import JavaObject

from storage.spark.engine.launch import Launch

_STARTS_WITHIN = 120
_ENDS_WITHIN = 10
"""Seconds."""


class JvmFailed(Exception):
    """The JVM did not start; what it said is in the log."""


@dataclass(frozen=True)
class Figures:
    """What a JVM holds: bytes of its heap in use and at most, bytes of memory, threads, open files."""

    heap: int
    most: int
    memory: int
    threads: int
    files: int


class Jvm:
    """A JVM with PySpark's gateway, to which one run at a time connects."""

    def __init__(self, launch: Launch, folder: Path, log: BinaryIO) -> None:
        """Start it, with `folder` to work in. Raises `JvmFailed`."""
        said = folder / f"{launch.key}.gateway"
        said.unlink(missing_ok=True)
        command = [str(Path(launch.spark_home, "bin", "spark-submit"))]
        command += [part for name, value in launch.conf.items() for part in ("--conf", f"{name}={value}")]
        own = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(said)}
        # It ends with the pipe, which this process alone holds.
        self._process = subprocess.Popen(
            [*command, "pyspark-shell"], stdin=subprocess.PIPE, stdout=log, stderr=log,
            env={**launch.environment, **own}, cwd=folder,
        )  # fmt: skip
        self.port, self.secret = self._address(said)
        self._gateway: Any = ClientServer(
            java_parameters=JavaParameters(port=self.port, auth_token=self.secret, auto_convert=False),
            python_parameters=PythonParameters(port=0, eager_load=False),
        )
        self._remember()

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def memory(self) -> int:
        """Bytes of memory that it takes; 0 where the system does not say."""
        return _memory(self.pid)

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def _address(self, said: Path) -> tuple[int, str]:
        """The port and the secret of the gateway, which it writes into a file. Raises `JvmFailed`."""
        latest = time.monotonic() + _STARTS_WITHIN
        while not (said.exists() and said.stat().st_size):
            if self.has_ended or time.monotonic() > latest:
                self.end()
                raise JvmFailed("the JVM did not start")
            time.sleep(0.02)
        content = said.read_bytes()
        said.unlink()
        return int.from_bytes(content[:4], "big"), content[8:].decode()

    def _remember(self) -> None:
        """Keep what there is before the first run."""
        jvm = self._gateway.jvm
        self._properties = jvm.java.lang.System.getProperties().clone()
        server = JavaObject("GATEWAY_SERVER", self._gateway._gateway_client)  # noqa: SLF001 - Py4J names no other way
        self._bindings = server.getGateway().getBindings()
        self._runtime = jvm.java.lang.Runtime.getRuntime()
        self._threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        self._own = jvm.java.util.HashSet(self._bindings.keySet())
        self._own.add(self._own._target_id)  # noqa: SLF001 - as above

    def forget_run(self) -> None:
        """End the jobs of a run that is gone, and take away what it left for the next one to find.

        Its Spark context and sessions; tables and file systems that are kept open, with their credentials; what it made
        of Java's properties, which are the next run's default settings, and of the levels of the log; the objects that
        its Python held.
        """
        jvm = self._gateway.jvm
        spark = jvm.org.apache.spark
        context = getattr(getattr(spark, "SparkContext$"), "MODULE$").getActive()
        if context.isDefined():
            context.get().cancelAllJobs()
            context.get().stop()
        spark.sql.classic.SparkSession.clearActiveSession()
        spark.sql.classic.SparkSession.clearDefaultSession()
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        jvm.java.lang.System.setProperties(self._properties.clone())
        jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure()
        self._bindings.keySet().retainAll(self._own)
        jvm.java.lang.System.gc()

    def figures(self) -> Figures:
        """Return what it holds now."""
        heap = self._runtime.totalMemory() - self._runtime.freeMemory()
        return Figures(
            heap,
            self._runtime.maxMemory(),
            self.memory,
            self._threads.getThreadCount(),
            _open_files(self.pid),
        )

    def end(self) -> None:
        """End it: by its pipe, or by force after some seconds."""
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        try:
            self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _memory(pid: int) -> int:
    """Bytes of memory that a process takes; 0 where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _open_files(pid: int) -> int:
    """How many files a process has open; 0 where the system does not say."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0
