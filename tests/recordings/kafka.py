"""Runs a broker of Kafka and a schema registry while change data is recorded, and gets what the registry holds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

from examples.kafka.broker import broker
from places.schema_registry import schema_registry

_PARTITIONS = 2


@dataclass(frozen=True)
class Kafka:
    """Where both are. `registry`: the interface of its own, that its converter speaks."""

    servers: str
    registry: str
    schemas: str
    """The registry's interface of Confluent's, that readers speak."""


@contextmanager
def kafka(folder: Path) -> Iterator[Kafka]:
    """Run both until the block ends. Topics come when something is sent to them."""
    made = {"auto.create.topics.enable": "true", "num.partitions": str(_PARTITIONS)}
    with broker(folder / "kafka", made) as started, schema_registry(folder / "registry") as schemas:
        yield Kafka(started.servers, schemas.replace("/ccompat/v7", "/registry/v3"), schemas)


def schemas_of(url: str) -> list[dict[str, Any]]:
    """All schemas that a registry has, with numbers, subjects, versions and references; what is referred to first."""
    found = [
        _get(f"{url}/subjects/{quote(subject, safe='')}/versions/{version}")
        for subject in _get(f"{url}/subjects")
        for version in _get(f"{url}/subjects/{quote(subject, safe='')}/versions")
    ]
    return sorted(found, key=lambda schema: (schema["id"], schema["version"]))


def _get(url: str) -> Any:
    with urlopen(url) as answer:
        return json.loads(answer.read())
