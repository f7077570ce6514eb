"""Topics without a broker: offsets that are cut and known, what each client is told, and records as lines."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.planning.pending_input import Group, cut
from lakejoin.storage.errors import SourceChanged, SourceTrimmed, SourceUnreadable
from lakejoin.storage.sources.formats.kafka import DebeziumTopic
from lakejoin.storage.sources.formats.source_format import Look, SourceSpec
from lakejoin.storage.sources.kafka import topic_client
from lakejoin.storage.sources.kafka.topic_client import Content, Extent, Partition, TopicState
from lakejoin.storage.sources.kafka.topic_records import KEY, VALUE, event_lines, row_lines
from lakejoin.storage.sources.kafka.topics import Security, Topics, client_settings, spark_options
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, PRESETS

NOW = Look(datetime.now(UTC))
SPEC = SourceSpec("orders", "")
LOGIN = {"LAKEJOIN_KAFKA_USERNAME": "ann", "LAKEJOIN_KAFKA_PASSWORD": 'a "b" \\ c'}


@dataclass
class Broker:
    """What a client without a broker answers."""

    ends: Mapping[Partition, tuple[int, int]]
    identity: str = "one"
    records: Sequence[Content] = ()

    def states(self) -> dict[str, TopicState]:
        """Return the topics of the partitions."""
        names = {topic for topic, _ in self.ends}
        return {
            name: TopicState(self.identity, tuple(number for topic, number in self.ends if topic == name))
            for name in names
        }

    def extents(self, partitions: Sequence[Partition]) -> dict[Partition, Extent]:
        """Return where they begin and end."""
        return {at: Extent(*self.ends[at]) for at in partitions}

    def first_records(self, starts: Mapping[Partition, Extent], most: int) -> list[Content]:
        """Return the same, whatever is asked."""
        return list(self.records)

    def first_times(self, starts: Mapping[Partition, Extent]) -> dict[Partition, int]:
        """Return of each range a time by where it begins."""
        return {at: extent.begin + 1_000 for at, extent in starts.items()}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> tuple[DebeziumTopic, Broker]:
    """Return a topic of two partitions, and what tells of it."""
    broker = Broker({("orders", 0): (0, 100), ("orders", 1): (0, 10)})
    monkeypatch.setattr(topic_client, "connect", lambda _: broker)
    return DebeziumTopic(Topics("h:9092", ("orders",))), broker


def unread(topic: DebeziumTopic, known: Sequence[PlannedFile] = ()) -> list[PlannedFile]:
    """Return the parts that wait."""
    return list(topic.unread(SPEC, {part.name: part for part in known}, NOW, None))


def test_each_batch_has_its_share_of_every_partition(source: tuple[DebeziumTopic, Broker]) -> None:
    """Records of partitions came side by side: one is not read up before the other; nothing is left out or doubled."""
    parts = unread(source[0])

    pieces = cut(Group((), tuple(parts)), 40)

    found = [[(part.name, part.from_line, part.to_line) for part in piece.files] for piece in pieces]
    assert found == [
        [("orders+00000", 0, 33), ("orders+00001", 0, 3)],
        [("orders+00000", 33, 66), ("orders+00001", 3, 6)],
        [("orders+00000", 66, 100), ("orders+00001", 6, 10)],
    ]


def test_reading_goes_on_behind_what_a_plan_says(source: tuple[DebeziumTopic, Broker]) -> None:
    """A partition without new records is left out, one that has some begins where the last part of it ended."""
    topic, broker = source
    known = [replace(part, to_line=min(part.to_line, 50)) for part in unread(topic)]

    assert [(part.name, part.from_line, part.to_line) for part in unread(topic, known)] == [
        ("orders+00000", 50, 100)
    ]
    broker.ends = {("orders", 0): (0, 49), ("orders", 1): (0, 10)}
    with pytest.raises(SourceChanged, match="partition 0 ends at offset 49 now, and was read up to 50"):
        unread(topic, known)
    broker.ends = {("orders", 0): (51, 90), ("orders", 1): (0, 10)}
    with pytest.raises(SourceTrimmed, match="offsets 50 to 50 of partition 0 are gone"):
        unread(topic, known)
    broker.identity = "two"
    with pytest.raises(SourceChanged, match="it was deleted and made anew"):
        unread(topic, known)


@pytest.mark.bad_input(53)
def test_values_that_only_a_registry_explains_are_told(source: tuple[DebeziumTopic, Broker]) -> None:
    """They would all be quarantined; the source says instead what is to be declared."""
    topic, broker = source
    parts = unread(topic)

    broker.records = [(b'{"id": 1}', b'{"schema": {"type": "struct"}, "payload": {}}')]
    assert topic.says_types(parts)
    broker.records = [(b'{"id": 1}', b'{"op": "c"}'), (None, None)]
    assert not topic.says_types(parts)
    broker.records = [(b"\0\0\0\0\1\2", b"\0\0\0\0\2\2")]
    with pytest.raises(Exception, match="Write `registry: URL` under source"):
        topic.says_types(parts)


def test_clients_are_told_of_encryption_and_login(tmp_path: Path) -> None:
    """Both the same, each in its words; a login that the environment lacks is missed by name, and never shown."""
    pem = tmp_path / "ca.pem"
    pem.write_text("PEM")
    security = Security("SASL_SSL", "SCRAM-SHA-512", str(pem), str(pem))
    topics = Topics("h:9092", ("orders",), security=security)

    spark = spark_options(topics, LOGIN | {"LAKEJOIN_KAFKA_KEY_PASSWORD": "key"})
    other = client_settings(topics, LOGIN | {"LAKEJOIN_KAFKA_KEY_PASSWORD": "key"})

    assert spark["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ann" password="a \\"b\\" \\\\ c";'
    )
    assert (spark["kafka.ssl.truststore.location"], spark["kafka.ssl.key.password"]) == (str(pem), "key")
    assert (other["sasl.password"], other["ssl.key.location"]) == (LOGIN["LAKEJOIN_KAFKA_PASSWORD"], str(pem))
    assert LOGIN["LAKEJOIN_KAFKA_PASSWORD"] not in repr(topics)
    with pytest.raises(SourceUnreadable, match="LAKEJOIN_KAFKA_PASSWORD are not set"):
        client_settings(topics, {})
    with pytest.raises(SourceUnreadable, match="no such file"):
        client_settings(replace(topics, security=replace(security, ca=str(tmp_path / "none"))), LOGIN)


@pytest.mark.spark
def test_records_become_lines_that_parsers_know(spark: SparkSession) -> None:
    """The key stands within the event as text, so nothing in it can be taken for a part of the event.

    A record without a value deletes what its key names.
    """
    records = [
        ('{"id":1}', '{"op":"c"}'), ("7", ' {"op":"c"}'), (None, '{"op":"c"}'), ('{"id":1}', None), (None, None),
        ('1","op":"d', '{"op":"c"}'), ('{"id":1}', "no JSON"), ('{"id":1}', "{}"),
        ('{"schema":{},"payload":{"id":1}}', None), ("7", None),
    ]  # fmt: skip
    rows = [{KEY: key, VALUE: value, "n": n} for n, (key, value) in enumerate(records)]
    frame = spark.range(1).select(
        F.inline(F.from_json(F.lit(json.dumps(rows)), f"array<struct<n:int,{KEY}:string,{VALUE}:string>>"))
    )
    frame = frame.select(F.col("n").alias(POSITION), F.lit(False).alias(CONTEXT), KEY, VALUE)

    def lines(found: object) -> list[str]:
        return [row[RAW] for row in found.orderBy(POSITION).collect()]

    assert lines(event_lines(frame)) == [
        '{"key":"{\\"id\\":1}","op":"c"}', '{"key":"7","op":"c"}', '{"op":"c"}',
        '{"key":"{\\"id\\":1}","value":null}', '{"key":null,"value":null}', '{"key":"1\\",\\"op\\":\\"d","op":"c"}',
        '{"key":"{\\"id\\":1}","value":"no JSON"}', '{"key":"{\\"id\\":1}","value":"{}"}',
        '{"key":"{\\"schema\\":{},\\"payload\\":{\\"id\\":1}}","value":null}', '{"key":"7","value":null}',
    ]  # fmt: skip
    deletes = [3, 4, 8, 9]
    assert [lines(row_lines(frame, DEFAULT_OP))[n] for n in deletes] == [
        '{"op": "d","id":1}', "null", '{"op": "d","id":1}', "null",
    ]  # fmt: skip
    unwrapped = lines(row_lines(frame, PRESETS["debezium-unwrapped"]))
    assert unwrapped[3] == '{"__deleted": "true","id":1}'
    assert lines(row_lines(frame, PRESETS["maxwell"]))[3] == "null"


@pytest.mark.spark
def test_session_without_the_jars_of_kafka_is_told(
    spark: SparkSession, source: tuple[DebeziumTopic, Broker]
) -> None:
    """They can only be given to a session that is started."""
    with pytest.raises(SourceUnreadable, match="was started without the JARs that read Kafka"):
        source[0].records(spark, unread(source[0]))


def test_what_waits_of_a_partition_has_the_time_of_its_first_unread_record(
    source: tuple[DebeziumTopic, Broker],
) -> None:
    """By it a lag is measured; a partition that is read to its end does not wait."""
    parts = [replace(part, to_line=40) if part.name.endswith("0") else part for part in unread(source[0])]
    waiting = source[0].waiting(SPEC, {part.name: part for part in parts}, NOW)
    assert [(part.name, part.modified) for part in waiting.parts] == [(parts[0].name, 1_040)]
