"""Runs Debezium: gets it by Maven, starts an engine for each setting, and reads what they capture."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark

VERSION = "3.6.1.Final"
_DISTRIBUTION = f"io.debezium:debezium-server-dist:{VERSION}:tar.gz"
"""Holds the engine and all connectors; that of MariaDB is nowhere else."""
_SPARK = Path(pyspark.__file__).parent / "jars"
"""Has the library of Avro, which the distribution's converter needs and the distribution lacks."""
_RECORDER = Path(__file__).parent / "Recorder.java"
_PATIENCE = 180
"""Seconds until what a database did must have been captured."""


class Engines:
    """Engines that capture one database, each by its own setting, until `stop`."""

    def __init__(self, folder: Path, jars: Path, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Start them. `settings`: the properties of each."""
        self._folder, self._names = folder, list(settings)
        folder.mkdir(parents=True)
        for name, properties in settings.items():
            own = {
                "name": name,
                "offset.storage.file.filename": str(folder / f"{name}.offsets"),
                **properties,
            }
            text = "".join(f"{key}={value}\n" for key, value in own.items())
            (folder / f"{name}.properties").write_text(text)
            (folder / f"{name}.jsonl").touch()
        classpath = ":".join([f"{jars}/*", *map(str, _SPARK.glob("avro-[0-9]*.jar"))])
        command = ["java", "-Xmx1g", "-cp", classpath, str(_RECORDER), str(folder)]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def stop(self) -> None:
        """End them."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:  # an engine that failed may not end
            self._process.kill()

    def check(self) -> None:
        """Raise `SystemExit` if an engine has ended."""
        if self._process.poll() is not None or "LJ_ENDED" in self._log():
            raise SystemExit(f"an engine has ended: see {self._folder / 'log'}")

    def wait_for(self, is_it: Callable[[str], bool]) -> None:
        """Wait until each has captured such a line. Raises `SystemExit` if that takes too long."""
        waiting = self._names
        for _ in self._seconds():
            waiting = [name for name in waiting if not any(is_it(line) for _, line in self.lines(name))]
            if not waiting:
                return

    def _seconds(self) -> Iterator[int]:
        for second in range(_PATIENCE):
            yield second
            self.check()
            time.sleep(1)
        raise SystemExit(f"nothing came for {_PATIENCE} seconds: see {self._folder / 'log'}")

    def _log(self) -> str:
        return (self._folder / "log").read_text("utf-8", errors="replace")

    def lines(self, name: str) -> Iterator[tuple[str, str]]:
        """What one has captured until now: the topic of each event, and the line with it."""
        for line in (self._folder / f"{name}.jsonl").read_text("utf-8").split("\n"):
            if line.endswith("}"):
                yield json.loads(line)["topic"], line


def jars() -> Path:
    """Debezium's libraries, taken out of its distribution once. Raises `SystemExit` where tools are missing."""
    folder = Path.home() / ".cache" / "lakejoin" / f"debezium-{VERSION}"
    if folder.exists():
        return folder
    for tool in ("mvn", "java", "tar"):
        if shutil.which(tool) is None:
            raise SystemExit(
                f"skipped: {tool} is missing; Debezium comes by Maven and needs a JDK, 17 or newer"
            )
    half = folder.with_suffix(".part")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={_DISTRIBUTION}", f"-DoutputDirectory={half}"]
    subprocess.run(copy, check=True)
    (archive,) = half.glob("*.tar.gz")
    subprocess.run(
        ["tar", "xzf", archive, "-C", half, "--strip-components=2", "debezium-server/lib"], check=True
    )
    archive.unlink()
    half.rename(folder)
    return folder


def payload(value: Any) -> Any:
    """A value without the schema beside it."""
    return value["payload"] if isinstance(value, dict) and value.keys() == {"schema", "payload"} else value
