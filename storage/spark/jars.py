"""Provides the JARs that Spark lacks: fetched once by its own dependency resolution, then kept in the user's cache.

Resolving at every start, as `configure_spark_with_delta_pip` does, needs the network each time and loads 33
files, of which all but two come with Spark or serve catalogs that are not used here. What reaches S3 is fetched when
a pipeline first needs it.
"""

import logging
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from lakejoin.storage.errors import LakejoinError
from lakejoin.transforms.model.printable_text import printable

Resolve = Callable[[Sequence[str], Path], Path]
"""Puts the JARs of coordinates (group:artifact:version) below a folder and returns the folder they are in."""

_NOT_FOR_DELTA = (
    *("com.*:*", "commons*:*", "io.airlift*:*", "javax*:*", "org.*:*"),  # shipped with Spark
    *("io.delta:delta-kernel*", "io.unitycatalog*:*"),  # for tables that a Unity Catalog server commits
)
_PASSED_ON = ("spark.jars.repositories", "spark.jars.ivySettings")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""Of these the properties are passed on, such as a proxy; a heap is for another JVM than the one that fetches."""

logger = logging.getLogger(__name__)


class JarsNotFound(LakejoinError):
    """JARs are not in the cache and could not be fetched; the message says where to put them."""


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return the folder of what is fetched once: `lakejoin` in XDG_CACHE_HOME, by default in `~/.cache`."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakejoin"


def delta_coordinates() -> list[str]:
    """Return group:artifact:version of the two JARs that fit the installed pyspark and delta-spark."""
    spark = ".".join(version("pyspark").split(".")[:2])
    delta = version("delta-spark")
    return [f"io.delta:delta-spark_{spark}_2.13:{delta}", f"io.delta:delta-storage:{delta}"]


def provide_jars(directory: Path, resolve: Resolve) -> list[Path]:
    """Return the paths of Delta's JARs in `directory`, after fetching them by `resolve` if one is missing.

    Each file appears complete or not at all, and two processes that fetch at once write the same content one
    after the other. Raises `JarsNotFound` when `resolve` does, or did not bring a file.
    """
    coordinates = delta_coordinates()
    jars = [directory / jar_name(coordinate) for coordinate in coordinates]
    if all(jar.exists() for jar in jars):
        return jars
    directory.mkdir(parents=True, exist_ok=True)
    logger.info("Fetching %s, once, into %s", printable(" and ".join(coordinates)), printable(directory))
    # Within the cache, so that a rename, which needs one file system, publishes each file.
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as scratch:
        try:
            fetched = resolve(coordinates, Path(scratch))
            for jar in jars:
                (fetched / jar.name).replace(jar)
        except (OSError, subprocess.CalledProcessError) as cause:
            files = " and ".join(jar.name for jar in jars)
            remedy = f"copy the two files into\n{directory}"
            raise JarsNotFound(
                *_complaint(f"Delta Lake's JARs ({files})", cause, remedy).split("\n")
            ) from cause
    return jars


def provide_folder(folder: Path, what: str, coordinates: Sequence[str], resolve: Resolve) -> list[Path]:
    """Return the JARs in a folder of the cache, after fetching the coordinates and all they need into it.

    `what` they are, for messages. The folder appears complete or not at all; of two processes that fetch at once, the
    second finds what the first brought. Raises `JarsNotFound` when `resolve` does.
    """
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        logger.info("Fetching %s, once, into %s", printable(what), printable(folder))
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as scratch:
            try:
                _publish(resolve(coordinates, Path(scratch)), folder)
            except (OSError, subprocess.CalledProcessError) as cause:
                remedy = f"copy, from a machine that has it, the folder\n{folder}"
                raise JarsNotFound(*_complaint(what, cause, remedy).split("\n")) from cause
    return sorted(folder.glob("*.jar"))


def _publish(fetched: Path, folder: Path) -> None:
    try:
        fetched.rename(folder)
    except OSError:
        if not folder.exists():  # else another process was first
            raise


def jar_name(coordinate: str) -> str:
    """Return the name that Spark's resolution gives to the file of a coordinate."""
    group, artifact, number = coordinate.split(":")
    return f"{group}_{artifact}-{number}.jar"


def no_resolver(*_: Sequence[str]) -> Resolve:
    """Return a resolution that fetches nothing, and says by `JarsNotFound` what it was asked for."""

    def resolve(coordinates: Sequence[str], _: Path) -> Path:
        raise JarsNotFound(" and ".join(coordinates))

    return resolve


def spark_resolver(
    spark_home: Path, java_home: Path, conf: Mapping[str, str], not_fetched: Sequence[str] = _NOT_FOR_DELTA
) -> Resolve:
    """Return a `Resolve` that uses spark-submit, with the repositories and Ivy settings that `conf` names.

    `not_fetched`: patterns (group:artifact) of what is left out, though something needs it. It raises
    `subprocess.CalledProcessError` with spark-submit's output when the resolution fails.
    """
    properties = [part for part in shlex.split(conf.get(_JAVA_OPTIONS, "")) if part.startswith("-D")]
    settings = {key: conf[key] for key in _PASSED_ON if key in conf} | {
        **({_JAVA_OPTIONS: shlex.join(properties)} if properties else {}),
        "spark.jars.excludes": ",".join(not_fetched),
        "spark.pyspark.python": sys.executable,
    }
    environment = os.environ | {
        "JAVA_HOME": str(java_home),
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def resolve(coordinates: Sequence[str], scratch: Path) -> Path:
        script = scratch / "nothing.py"  # spark-submit resolves only for something that it is to run
        script.touch()
        options = {
            **settings,
            "spark.jars.ivy": str(scratch / "ivy"),
            "spark.jars.packages": ",".join(coordinates),
        }
        arguments = [part for key, value in options.items() for part in ("--conf", f"{key}={value}")]
        command: list[str | Path] = [spark_home / "bin" / "spark-submit", *arguments, script]
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return scratch / "ivy" / "jars"

    return resolve


def _complaint(what: str, cause: OSError | subprocess.CalledProcessError, remedy: str) -> str:
    """Return the message for JARs that could not be fetched; `remedy` is what helps without a network."""
    if isinstance(cause, subprocess.CalledProcessError):
        lines = [line.strip() for line in f"{cause.stdout}\n{cause.stderr}".splitlines() if line.strip()]
        access = [line for line in lines if "access error" in line]
        missing = [line for line in lines if "not found" in line]
        reason = "\n  ".join(list(dict.fromkeys(access or missing or lines[-4:]))[:4])
    else:
        reason = str(cause)
    return (
        f"{what} could not be fetched:\n  {reason}\n"
        "The first start on a machine fetches them. Connect it to the network, or name a proxy\n"
        "(JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=HOST -Dhttps.proxyPort=PORT') or a repository of your own\n"
        f"(spark: {{conf: {{spark.jars.repositories: URL}}}}), or {remedy}"
    )
