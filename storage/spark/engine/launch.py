"""Says what a JVM is started with; runs that need the same share an engine."""

import hashlib
import json
import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting with the options of the JVM that the session is in."""
_OF_THE_JVM = (
    "spark.driver.memory", "spark.driver.extra", "spark.driver.default", "spark.driver.userClassPathFirst",
    "spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.kerberos.", "spark.local.dir",
    "spark.hadoop.hadoop.security.", "spark.sql.codegen.cache.", "spark.sql.broadcastExchange.", "spark.sql.subquery.",
)  # fmt: skip
"""What the names of the settings begin with that Spark reads when its JVM starts, or once in it and never again."""
_VARIABLES = (
    "AWS_", "AZURE_", "GOOGLE_", "HADOOP_", "JAVA_", "JDK_", "KRB5", "LC_", "MALLOC_", "PYSPARK_", "SPARK_", "_JAVA_",
    "CLASSPATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR", "TZ",
)  # fmt: skip
"""What the names of the variables begin with that Java, Spark and Hadoop read; the JVM gets no others but PATH."""
_OF_PYSPARK = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")
"""Variables that PySpark sets in a process that had a session."""


@dataclass(frozen=True)
class Launch:
    """A JVM's settings (`conf`), environment, and the files that it is made of, with what tells one from the next."""

    spark_home: str
    conf: Mapping[str, str]
    environment: Mapping[str, str]
    files: tuple[tuple[str, int, int], ...]
    """Path, size in bytes, and time of change in nanoseconds."""
    confines: tuple[str, ...]
    """What else a process gets from the one that starts it: rights of new files, priority, namespaces."""
    archive: str = ""
    """Options by which it starts from an archive: it is the same JVM with them, and without."""

    @property
    def key(self) -> str:
        """Equal for launches of which one engine serves both."""
        # by PATH the start finds its programs; a terminal's and cron's differ
        environment = {name: value for name, value in self.environment.items() if name != "PATH"}
        told = {**asdict(self), "archive": "", "environment": environment, "host": socket.gethostname()}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def submitted(self) -> Mapping[str, str]:
        """The settings that it starts with."""
        return with_archive(self.conf, self.archive)

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> "Launch":
        """Return the launch of which `dataclasses.asdict` and JSON made these values."""
        files = tuple((path, size, changed) for path, size, changed in values["files"])
        return Launch(**{**values, "files": files, "confines": tuple(values["confines"])})

    @property
    def is_current(self) -> bool:
        """Whether the files are what they were: no other version was installed in their place."""
        return self.files == stamped(path for path, *_ in self.files)


def with_archive(conf: Mapping[str, str], options: str) -> Mapping[str, str]:
    """Return settings with the options of an archive, if there are any, before those of the JVM."""
    return {**conf, JAVA_OPTIONS: f"{options} {conf[JAVA_OPTIONS]}"} if options else conf


def launch_of(settings: Mapping[str, str], java: Path, environment: Mapping[str, str]) -> Launch:
    """Return what a session with these settings needs of a JVM.

    `java`: its executable; `environment`: with SPARK_HOME.
    """
    spark_home = Path(environment["SPARK_HOME"])
    conf = {name: value for name, value in settings.items() if name.startswith(_OF_THE_JVM)}
    folder = environment.get("SPARK_CONF_DIR") or spark_home / "conf"
    jars = [
        *conf.get("spark.driver.extraClassPath", "").split(os.pathsep),
        *conf.get("spark.jars", "").removeprefix("file:").split(","),
    ]
    paths = [
        *(java, spark_home / "jars", Path(folder, "spark-defaults.conf"), Path(folder, "spark-env.sh")),
        *[
            path
            for jar in map(Path, filter(None, jars))
            for path in (sorted(jar.parent.glob(jar.name)) or [jar])
        ],
        *sorted(Path(__file__).parent.glob("*.py")),
    ]
    return Launch(
        str(spark_home),
        conf,
        {
            name: value
            for name, value in environment.items()
            if name == "PATH" or (name.startswith(_VARIABLES) and name not in _OF_PYSPARK)
        },
        stamped(str(path.absolute()) for path in paths),
        _confines(),
    )


def stamped(paths: Iterable[str]) -> tuple[tuple[str, int, int], ...]:
    """Return files with their sizes and times of change, zeros for those that are not there."""
    found = []
    for path in paths:
        try:
            status = Path(path).stat()
        except OSError:
            found.append((path, 0, 0))
        else:
            found.append((path, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _confines() -> tuple[str, ...]:
    namespaces = []
    for name in ("mnt", "net"):
        with suppress(OSError):
            namespaces.append(str(Path(f"/proc/self/ns/{name}").readlink()))
    groups = sorted({os.getegid(), *os.getgroups()})
    return (_mask(), str(os.nice(0)), *map(str, groups), *namespaces)


def _mask() -> str:
    """The rights that new files do not get."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return line.split()[1]
    # elsewhere it can only be read by setting another one for a moment
    mask = os.umask(0o077)
    os.umask(mask)
    return f"{mask:04o}"
