"""Starts a JVM that serves one run after another, and makes it forget each."""

import os
import shlex
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.clientserver import ClientServer, JavaParameters, PythonParameters
from py4j.java_gateway import JavaObject

from lakejoin.storage.spark.engine.launch import Launch

_STARTS_WITHIN = 120
_LEFT_WITHIN = 30
_ENDS_WITHIN = 10
"""Seconds that a JVM may take to start, to be done with the commands of a run that is gone, and to end."""


_TASK = "Executor task launch worker"
"""What the name of a thread begins with that computes a task; those without one end with their context."""


class JvmFailed(Exception):
    """The JVM did not start, or works on for a run that is gone; what it said is in the log."""


@dataclass(frozen=True)
class Figures:
    """What a JVM holds: bytes of its heap in use and at most, threads, open files."""

    heap: int
    most: int
    threads: int
    files: int


class Jvm:
    """A JVM with PySpark's gateway, to which one run at a time connects; one thread uses it here."""

    def __init__(self, launch: Launch, folder: Path) -> None:
        """Start it, with `folder` to work in; it logs where this process does. Raises `JvmFailed`."""
        address = folder / f"{launch.key}.gateway"
        address.unlink(missing_ok=True)
        command = [str(Path(launch.spark_home, "bin", "spark-submit"))]
        command += [
            part for name, value in launch.submitted.items() for part in ("--conf", f"{name}={value}")
        ]
        command += shlex.split(launch.environment.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        own = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)}
        # It ends with the pipe, which this process alone holds.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, env={**launch.environment, **own}, cwd=folder
        )
        self.port, self.secret = self._read(address)
        self._gateway: Any = ClientServer(
            # Without its own, objects are let go with those of a run. It would be another connection.
            java_parameters=JavaParameters(
                port=self.port, auth_token=self.secret, enable_memory_management=False
            ),
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
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except OSError:
            return 0
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def _read(self, address: Path) -> tuple[int, str]:
        """The port and the secret of the gateway, which it writes into a file. Raises `JvmFailed`."""
        latest = time.monotonic() + _STARTS_WITHIN
        while not address.exists():
            if self.has_ended or time.monotonic() > latest:
                self.end()
                raise JvmFailed("the JVM did not start")
            time.sleep(0.02)
        content = address.read_bytes()
        address.unlink()
        return int.from_bytes(content[:4], "big"), content[8:].decode()

    def _remember(self) -> None:
        """Keep what there is before the first run."""
        jvm = self._gateway.jvm
        self._properties = jvm.java.lang.System.getProperties().clone()
        server = JavaObject("GATEWAY_SERVER", self._gateway._gateway_client)  # noqa: SLF001 - Py4J names no other way
        self._bindings = server.getGateway().getBindings()
        connections = jvm.java.lang.Class.forName("py4j.GatewayServer").getDeclaredField("connections")
        connections.setAccessible(True)
        self._connections = connections.get(server)
        # Spark opens this package for itself, in every JVM that it starts.
        self._inherited = jvm.java.lang.Class.forName("java.lang.Thread").getDeclaredField(
            "inheritableThreadLocals"
        )
        self._inherited.setAccessible(True)
        self._runtime = jvm.java.lang.Runtime.getRuntime()
        self._threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
        self._own = jvm.java.util.HashSet(self._bindings.keySet())
        self._own.add(self._own._target_id)  # noqa: SLF001 - as above

    def forget_run(self) -> None:
        """End the jobs of a run that is gone, and take away what it left for the next one to find.

        Its Spark context and sessions; tables and file systems that are kept open, with their credentials; what it made
        of Java's properties, which are the next run's default settings, and of the levels of the log; the objects that
        its Python held; what threads of Spark's pools have of the run that began them. Raises `JvmFailed`.
        """
        self._end_commands()
        jvm = self._gateway.jvm
        if jvm.org.apache.hadoop.security.UserGroupInformation.isSecurityEnabled():
            raise JvmFailed("a login of Kerberos is the JVM's, and cannot be taken away")
        spark = jvm.org.apache.spark
        spark.sql.classic.SparkSession.clearDefaultSession()
        spark.sql.delta.DeltaLog.clearCache()
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        jvm.java.lang.System.setProperties(self._properties.clone())
        jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure()
        self._clear_threads()
        self._bindings.keySet().retainAll(self._own)
        jvm.java.lang.System.gc()

    def _end_commands(self) -> None:
        """End the context of a run that is gone, and wait until nothing works for it any more.

        What its Python had asked for last may be a commit that needs no job, or the start of the context itself. Tasks
        go on when their context has ended, and would find the next one's. Raises `JvmFailed`.
        """
        threads = self._gateway.jvm.java.lang.Thread
        contexts = getattr(getattr(self._gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$")
        latest = time.monotonic() + _LEFT_WITHIN
        while True:
            alone = self._connections.size() == 1
            context = contexts.getActive()
            if context.isDefined() and not context.get().isStopped():
                context.get().cancelAllJobs()
                context.get().stop()
            if alone and _TASK not in threads.getAllStackTraces().keySet().toString():
                return
            if time.monotonic() > latest:
                raise JvmFailed(f"the JVM still works for a run {_LEFT_WITHIN} s after its end")
            time.sleep(0.05)

    def _clear_threads(self) -> None:
        """Take from every thread what it got from the one that began it: a session, by which its context stays, too."""
        current = self._gateway.jvm.java.lang.Thread.currentThread()
        for thread in self._gateway.jvm.java.lang.Thread.getAllStackTraces().keySet().toArray():
            if not thread.equals(current):
                self._inherited.set(thread, None)

    def figures(self) -> Figures:
        """Return what it holds now."""
        heap = self._runtime.totalMemory() - self._runtime.freeMemory()
        return Figures(heap, self._runtime.maxMemory(), self._threads.getThreadCount(), _open_files(self.pid))

    def end(self) -> None:
        """End it: by its pipe, or by force after some seconds."""
        with suppress(OSError):
            assert self._process.stdin
            self._process.stdin.close()
        try:
            self._process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _open_files(pid: int) -> int:
    """How many files a process has open; 0 where the system does not say."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0
