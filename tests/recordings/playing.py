"""Plays a recording of topics into a broker and a registry, each record where it was."""

import base64
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from places.avro import numbered
from places.kafka_topics import Topics
from places.schema_registry import register
from recordings.reading import DATA

_PARTITIONS = 2


@dataclass
class Player:
    """Plays the steps of one recording."""

    recording: Path
    topics: Topics
    registry: str
    numbers: dict[int, int] = field(default_factory=dict)
    """The number here of each schema that was recorded."""
    ends: dict[tuple[str, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Put the schemas into the registry."""
        for schema in _lines(self.recording / "schemas.jsonl.gz"):
            self.numbers[schema["id"]] = register(
                self.registry, schema["subject"], json.loads(schema["schema"]),
                references=schema.get("references") or [],
            )  # fmt: skip

    def play(self, steps: Iterable[int]) -> None:
        """Write the records of steps, and see that each has the offset that it had."""
        for step in steps:
            for path in sorted(self.recording.glob(f"*/{step}.jsonl.gz")):
                records = list(_lines(path))
                for partition in range(_PARTITIONS):
                    self._write(partition, [record for record in records if record["partition"] == partition])

    def _write(self, partition: int, records: list[dict[str, Any]]) -> None:
        if not records:
            return
        topic = records[0]["topic"]
        if (topic, partition) not in self.ends:
            self._make(topic)
        first = self.ends[topic, partition]
        offsets = [record["offset"] for record in records]
        assert offsets == list(range(first, first + len(records))), (topic, partition)
        contents = [(self._content(record["key"]), self._content(record["value"])) for record in records]
        self.topics.write(topic, contents, partition)
        self.ends[topic, partition] = first + len(records)

    def _make(self, topic: str) -> None:
        self.topics.make(topic, _PARTITIONS)
        self.ends |= dict.fromkeys([(topic, partition) for partition in range(_PARTITIONS)], 0)

    def _content(self, text: str | None) -> bytes | None:
        """What was recorded, with the number that its schema has here."""
        if text is None:
            return None
        content = base64.b64decode(text)
        return numbered(self.numbers[int.from_bytes(content[1:5], "big")], content[5:])


def player(kind: str, topics: Topics, registry: str) -> Player:
    """What plays a database's recording."""
    return Player(DATA / f"debezium-{kind}" / "avro", topics, registry)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        yield json.loads(line)
