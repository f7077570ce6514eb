"""A broker of Kafka for tests, and what they write to it."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from examples.kafka.broker import Broker

Record = tuple[object, object]
"""Key and value: a text as it stands, anything else as JSON, None as nothing."""


@dataclass
class Topics:
    """The topics of a broker."""

    broker: Broker

    @cached_property
    def admin(self) -> AdminClient:
        """What makes and removes topics."""
        return AdminClient({"bootstrap.servers": self.broker.servers, "log_level": 0})

    def make(self, name: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic."""
        config = {key.replace("_", "."): value for key, value in settings.items()}
        _done(self.admin.create_topics([NewTopic(name, partitions, 1, config=config)]))
        self._wait_for(name, partitions)

    def remove(self, name: str) -> None:
        """Delete a topic."""
        _done(self.admin.delete_topics([name], operation_timeout=10))
        self._wait_for(name, 0)

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions to a topic."""
        _done(self.admin.create_partitions([NewPartitions(name, partitions)]))
        self._wait_for(name, partitions)

    def _wait_for(self, name: str, partitions: int) -> None:
        """Wait until the broker tells of what it has made."""
        for _ in range(100):
            found = self.admin.list_topics(name, timeout=10).topics[name]
            if (found.error is None) == (partitions > 0) and len(found.partitions) == partitions:
                return
            time.sleep(0.1)
        raise AssertionError(f"no topic {name} with {partitions} partitions")

    def expire(self, name: str, partition: int, before: int) -> None:
        """Remove the records of a partition before an offset."""
        _done(self.admin.delete_records([TopicPartition(name, partition, before)]))

    def write(
        self, name: str, records: Iterable[Record], partition: int | None = None, **settings: Any
    ) -> None:
        """Write records; without a partition by their keys."""
        producer = Producer({"bootstrap.servers": self.broker.servers, "log_level": 0, **settings})
        where = {} if partition is None else {"partition": partition}
        for key, value in records:
            producer.produce(name, key=_text(key), value=_text(value), **where)
            producer.poll(0)
        assert producer.flush(30) == 0

    def transact(self, name: str, records: Iterable[Record], *, commits: bool, partition: int = 0) -> None:
        """Write records in a transaction, and commit or abort it."""
        settings = {
            "bootstrap.servers": self.broker.servers,
            "log_level": 0,
            "transactional.id": f"of {name}",
        }
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        for key, value in records:
            producer.produce(name, key=_text(key), value=_text(value), partition=partition)
        producer.flush(30)
        (producer.commit_transaction if commits else producer.abort_transaction)(30)
        self._wait_for_end(TopicPartition(name, partition))

    def _wait_for_end(self, at: TopicPartition) -> None:
        """Wait until a partition's last transaction has its end: the producer only asks for it."""
        levels = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        for _ in range(300):
            answers = [
                self.admin.list_offsets({at: OffsetSpec.latest()}, isolation_level=level) for level in levels
            ]
            stable, written = (future.result(30).offset for answer in answers for future in answer.values())
            if stable == written:
                return
            time.sleep(0.1)
        raise AssertionError(f"a transaction in {at.topic} has no end")


def _text(value: object) -> str | bytes | None:
    return value if value is None or isinstance(value, str | bytes) else json.dumps(value)


def _done(futures: Mapping[Any, Any]) -> None:
    for future in futures.values():
        future.result(30)
