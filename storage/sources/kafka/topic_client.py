"""Asks brokers of Kafka what topics are and how far they go, without a JVM: by `confluent-kafka`, an optional package.

It is imported where it is used: a configuration is checked without.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakejoin.storage.errors import SourceError, SourceNotFound, SourceUnreadable
from lakejoin.storage.sources.kafka.topics import Topics, client_settings

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""
Content = tuple[bytes | None, bytes | None]
"""Key and value of a record."""
SECONDS = 15
"""How long an answer may take."""
_POLL_SECONDS = 5


@dataclass(frozen=True)
class Extent:
    """What of a partition can be read: offsets from `begin` up to `end`, which is the next one to be."""

    begin: int
    end: int


@dataclass(frozen=True)
class TopicState:
    """A topic as a broker tells of it."""

    identity: str
    """The broker's own name of it, which no topic of its name had before; empty for a broker that has none."""
    partitions: tuple[int, ...]


class TopicClient:
    """Asks for what topics have, as far as it is committed."""

    def __init__(self, topics: Topics) -> None:
        """Connect with the first question only. Raises `SourceUnreadable` for what the environment lacks."""
        self._topics, self._said = topics, list[str]()
        settings = client_settings(topics)
        self._settings = {**settings, "error_cb": self._note, "log_level": 0}
        self._admin = _package().admin.AdminClient(self._settings)

    def states(self) -> dict[str, TopicState]:
        """Return every topic. Raises `SourceNotFound` for one that is not there."""
        package, found = _package(), {}
        names = package.TopicCollection(list(self._topics.names))
        for name, future in self._admin.describe_topics(names, request_timeout=SECONDS).items():
            with self._told(name):
                described = future.result()
            numbers = sorted(partition.id for partition in described.partitions)
            found[name] = TopicState(_identity(described.topic_id), tuple(numbers))
        return found

    def extents(self, partitions: Sequence[Partition]) -> dict[Partition, Extent]:
        """Return of partitions where they begin and end. Raises `SourceError`."""
        kind = _package().admin.OffsetSpec
        begins, ends = (
            self._offsets(dict.fromkeys(partitions, spec)) for spec in (kind.earliest(), kind.latest())
        )
        return {at: Extent(begins[at], max(begins[at], ends[at])) for at in partitions}

    def offsets_at(self, partitions: Sequence[Partition], time: datetime) -> dict[Partition, int | None]:
        """Return of partitions the first offset of a time or later, None where there is none. Raises `SourceError`."""
        spec = _package().admin.OffsetSpec.for_timestamp(int(time.timestamp() * 1000))
        found = self._offsets(dict.fromkeys(partitions, spec))
        return {at: offset if offset >= 0 else None for at, offset in found.items()}

    def _offsets(self, wanted: Mapping[Partition, Any]) -> dict[Partition, int]:
        package, found = _package(), {}
        asked = {package.TopicPartition(*at): spec for at, spec in wanted.items()}
        committed = package.IsolationLevel.READ_COMMITTED
        answers = self._admin.list_offsets(asked, isolation_level=committed, request_timeout=SECONDS)
        for at, future in answers.items():
            with self._told(at.topic):
                found[at.topic, at.partition] = future.result().offset
        return found

    def first_records(self, starts: Mapping[Partition, Extent], most: int) -> list[Content]:
        """Return some records of ranges, `most` of each at most, from its beginning on. Raises `SourceError`."""
        return [(message.key(), message.value()) for _, message in self._first_messages(starts, most)]

    def first_times(self, starts: Mapping[Partition, Extent]) -> dict[Partition, int]:
        """Return of ranges when their first record was appended or made, in nanoseconds, where that is known."""
        found = {}
        for at, message in self._first_messages(starts, 1):
            kind, milliseconds = message.timestamp()
            if kind != _package().TIMESTAMP_NOT_AVAILABLE:
                found[at] = milliseconds * 1_000_000
        return found

    def _first_messages(self, starts: Mapping[Partition, Extent], most: int) -> list[tuple[Partition, Any]]:
        if not starts:
            return []
        package = _package()
        settings = {
            **self._settings,
            "group.id": "lakejoin",  # the client asks for one; it joins no group, and commits nothing
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
        consumer = package.Consumer(settings)
        try:
            return [
                (at, message)
                for at, extent in starts.items()
                for message in self._read(consumer, at, extent, most)
            ]
        finally:
            consumer.close()

    def _read(self, consumer: Any, at: Partition, extent: Extent, most: int) -> Iterator[Any]:
        package = _package()
        if extent.begin >= extent.end:
            return
        consumer.assign([package.TopicPartition(*at, extent.begin)])
        for _ in range(most):
            message = consumer.poll(_POLL_SECONDS)
            if message is None or message.error() is not None or message.offset() >= extent.end:
                return
            yield message
            if message.offset() == extent.end - 1:
                return

    def _note(self, error: Any) -> None:
        self._said.append(error.str())

    @contextmanager
    def _told(self, topic: str) -> Iterator[None]:
        package = _package()
        try:
            yield
        except package.KafkaException as error:
            raise self._error(topic, error.args[0]) from error

    def _error(self, topic: str, error: Any) -> SourceError:
        path, kind = self._topics.path(topic), _package().KafkaError
        if error.code() == kind.UNKNOWN_TOPIC_OR_PART:
            return SourceNotFound(
                f"{path}: there is no such topic; check the name, and which cluster it is in"
            )
        if error.code() in {kind.TOPIC_AUTHORIZATION_FAILED, kind.CLUSTER_AUTHORIZATION_FAILED}:
            return SourceUnreadable(
                f"{path}: may not be read ({error.str()}); expected the rights Describe and Read for the topic"
            )
        # what went wrong with a connection is told beside the answer, which only did not come in time
        said = f"{error.str()}: {self._said[-1]}" if self._said else error.str()
        return SourceUnreadable(
            f"{path}: no broker answers ({said}); expected one at {self._topics.servers}. Check the address, the "
            "network and `security`, then run again"
        )


def _identity(topic_id: Any) -> str:
    text = str(topic_id or "")
    return "" if set(text) <= {"A", "="} else text


def _package() -> Any:
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise SourceUnreadable(
            "reading Kafka needs the package confluent-kafka, which is not installed: pip install 'lakejoin[kafka]'"
        ) from error
    return confluent_kafka


connect: Callable[[Topics], TopicClient] = TopicClient
"""Connects with the brokers of topics."""
