"""Keeps archives of what a start of Spark loads, and tells a JVM to start from the one that is its own.

From Java 25 on an archive is an AOT cache, with classes that are linked and profiles of what ran (JEP 483, 514, 515);
before, it is one of class data (JEP 350). A JVM of Java 17 that is given a damaged one ends, so each is looked at here
first.
"""

import hashlib
import json
import logging
import os
import shlex
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from lakejoin.storage.spark.engine.launch import Launch
from lakejoin.storage.spark.java import Java
from lakejoin.transforms.model.printable_text import printable

_AOT_CACHES = 25
"""The first Java whose archives keep more than classes."""
OPTION_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_VARIABLES = (*OPTION_VARIABLES, "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_DIST_CLASSPATH")
_SETTINGS = ("spark.driver.extraJavaOptions", "spark.driver.extraClassPath")
"""Variables and settings that tell a JVM its options and class path."""
_ON_STDERR = {
    "aot": "-Xlog:aot*=off -Xlog:aot*=error:stderr",
    "jsa": "-Xlog:cds*=off -Xlog:cds*=warning:stderr",
}
"""By default a JVM says on standard output why it passes an archive over, in the midst of what a command prints."""
_CHUNK = 16 << 20

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Archive:
    """What JVMs of one installation that have the same options may start from."""

    path: Path
    launch: Launch

    @property
    def option(self) -> str | None:
        """What tells a JVM to start from it; None where there is none that fits, with a line where there is one."""
        if not self._about.exists():
            return None
        if (mistake := self._mistake()) is not None:
            logger.warning(
                "%s is passed over: it %s. `lakejoin warm` makes it anew.", printable(self.path), mistake
            )
            return None
        return f"{_ON_STDERR[self._kind]} {self._named('AOTCache', 'SharedArchiveFile', self.path)}"

    @property
    def option_to_make(self) -> str:
        """What tells a JVM to write it, when it ends, to `draft`."""
        return self._named("AOTCacheOutput", "ArchiveClassesAtExit", self.draft)

    @property
    def draft(self) -> Path:
        """Where it is until it is complete: for each process that makes one, another file."""
        return self.path.with_name(f"{self.path.stem}.{os.getpid()}{self.path.suffix}")

    def discard(self) -> None:
        """Remove the draft, and what a JVM that ended too early left beside it."""
        for left in self.path.parent.glob(f"{self.draft.name}*"):
            left.unlink(missing_ok=True)

    def publish(self) -> int:
        """Let JVMs start from the draft from now on; return its bytes."""
        with self.draft.open("rb") as written:
            os.fsync(written.fileno())
        size = self.draft.stat().st_size
        about = {"files": self._files, "bytes": size, "crc32": _crc32(self.draft)}
        # Whoever starts between the two finds that they differ.
        self.draft.replace(self.path)
        new = self._about.with_suffix(".new")
        new.write_text(json.dumps(about), "utf-8")
        new.replace(self._about)
        return size

    def _named(self, newer: str, older: str, path: Path) -> str:
        return shlex.quote(f"-XX:{newer if self._kind == 'aot' else older}={path}")

    @property
    def _kind(self) -> str:
        return self.path.suffix.removeprefix(".")

    @property
    def _about(self) -> Path:
        """The file that says what it was made of."""
        return self.path.with_suffix(".json")

    @cached_property
    def _files(self) -> list[list[Any]]:
        """The files that the JVM is made of, with their times in whole seconds: a container's layers keep no more."""
        return [[path, size, changed // 10**9] for path, size, changed in self.launch.files]

    def _mistake(self) -> str | None:
        try:
            about = json.loads(self._about.read_text("utf-8"))
            if about["files"] != self._files:
                return "was made for a Java, JARs or a version that have been replaced"
            if self.path.stat().st_size != about["bytes"] or _crc32(self.path) != about["crc32"]:
                return "is damaged"
        except (OSError, ValueError, KeyError, TypeError):
            return "cannot be read"
        return None


def archive_of(launch: Launch, java: Java, cache: Path) -> Archive:
    """Return the archive for JVMs that are started so, which need not be there.

    `cache`: the folder below which it is kept.
    """
    conf, environment = launch.conf, launch.environment
    told = [
        launch.spark_home,
        str(java.path),
        *map(conf.get, _SETTINGS),
        *map(environment.get, _VARIABLES),
    ]
    key = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]
    suffix = "aot" if java.version[0] >= _AOT_CACHES else "jsa"
    return Archive(cache / "archives" / f"{key}.{suffix}", launch)


def remove_orphans(cache: Path) -> None:
    """Remove the archives of installations that are gone: of a Java, or an environment of Python."""
    for about in (cache / "archives").glob("*.json"):
        try:
            paths = [path for path, size, _ in json.loads(about.read_text("utf-8"))["files"] if size]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not all(Path(path).exists() for path in paths):
            for path in about.parent.glob(f"{about.stem}.*"):
                path.unlink(missing_ok=True)


def _crc32(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found = zlib.crc32(chunk, found)
    return found
