"""Says what a JVM is started with; runs that need the same share an engine."""

import hashlib
import json
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_OF_THE_JVM = (
    *("spark.driver.memory", "spark.driver.extra", "spark.driver.default", "spark.driver.userClassPathFirst"),
    *("spark.jars", "spark.files", "spark.archives", "spark.submit."),
)
"""What the names of the settings begin with that cannot change in a JVM that runs."""
_VARIABLES = (
    *(
        "AWS_",
        "AZURE_",
        "GOOGLE_",
        "HADOOP_",
        "JAVA_",
        "JDK_",
        "KRB5",
        "LC_",
        "MALLOC_",
        "PYSPARK_",
        "SPARK_",
        "_JAVA_",
    ),
    *("CLASSPATH", "HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "XDG_"),
)
"""What the names of the variables begin with that Java, Spark and Hadoop read; the JVM gets no others."""


@dataclass(frozen=True)
class Launch:
    """A JVM's settings (`conf`), environment, and the files that it is made of, with what tells one from the next."""

    spark_home: str
    conf: Mapping[str, str]
    environment: Mapping[str, str]
    files: tuple[tuple[str, int, int], ...]
    """Path, size in bytes, and time of change in nanoseconds."""
    rights: tuple[int, ...]
    """Of the files that it writes: the mask and the groups of its process."""

    @property
    def key(self) -> str:
        """Equal for launches of which one engine serves both."""
        text = json.dumps([asdict(self), socket.gethostname()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @staticmethod
    def told(values: Mapping[str, Any]) -> "Launch":
        """Return the launch that `dataclasses.asdict` made these values of, through JSON."""
        files = tuple((path, size, changed) for path, size, changed in values["files"])
        return Launch(**{**values, "files": files, "rights": tuple(values["rights"])})

    @property
    def is_current(self) -> bool:
        """Whether the files are what they were: no other version was installed in their place."""
        return self.files == stamped(path for path, *_ in self.files)


def launch_of(
    settings: Mapping[str, str], java: Path, *, whole: bool, environment: Mapping[str, str]
) -> Launch:
    """Return what a session with these settings needs of a JVM.

    `java`: its executable; `whole`: every setting is the JVM's, as a cluster's scheduler may read any at the start;
    `environment`: with SPARK_HOME.
    """
    spark_home = Path(environment["SPARK_HOME"])
    conf = {name: value for name, value in settings.items() if whole or name.startswith(_OF_THE_JVM)}
    folder = environment.get("SPARK_CONF_DIR") or spark_home / "conf"
    paths = [
        *(java, spark_home / "jars", Path(folder, "spark-defaults.conf"), Path(folder, "spark-env.sh")),
        *(Path(jar) for jar in conf.get("spark.driver.extraClassPath", "").split(os.pathsep) if jar),
        *sorted(Path(__file__).parent.glob("*.py")),
    ]
    return Launch(
        str(spark_home),
        conf,
        {name: value for name, value in environment.items() if name.startswith(_VARIABLES)},
        stamped(map(str, paths)),
        (_mask(), os.getegid(), *sorted(os.getgroups())),
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


def _mask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
