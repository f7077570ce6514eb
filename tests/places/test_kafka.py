"""Topics of a real broker: what is told of them, and that a pipeline over them has the tables that PostgreSQL had."""

import gzip
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from dagster import DagsterInstance, SensorResult, build_sensor_context
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from examples.kafka.broker import broker
from faults.shop import make_pipeline
from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.schedules_and_sensors import new_files_sensor
from lakejoin.orchestration.demo.csv_comparison import compare, read_expected
from lakejoin.orchestration.demo.example import EXAMPLE, Example, open_example
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.errors import (
    SourceChanged,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceTrimmed,
    SourceUnreadable,
)
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, joined_of
from lakejoin.storage.sources.formats.kafka import DebeziumTopic
from lakejoin.storage.sources.formats.source_format import Look, SourceSpec
from lakejoin.storage.sources.kafka import topic_client, topics
from lakejoin.storage.sources.planned.planned_file import Known
from lakejoin.storage.spark.jars import JarsNotFound
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import DELETED
from places.avro import avro_event, encoded, numbered, optional
from places.kafka_topics import Topics
from places.processes import run_pipelines
from places.schema_registry import register, schema_registry

ORDERS = """
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: kafka, bootstrap_servers: "{servers}", topic: sensed, value: debezium}}
    columns: {{id: bigint}}
    key: [id]
"""
NOW = Look(datetime.now(UTC))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topics]:
    """Return a broker that all tests of the module share."""
    try:
        with broker(tmp_path_factory.mktemp("kafka") / "broker") as started:
            yield Topics(started)
    except JarsNotFound as error:
        pytest.skip(f"no broker: {error.lines[0]}")


def topic(kafka: Topics, name: str, **said: object) -> DebeziumTopic:
    """Return a topic as a table's source."""
    return DebeziumTopic(topics.Topics(kafka.broker.servers, (name,), **said))


def spec(name: str) -> SourceSpec:
    """Return a source of a table with the topic's name."""
    return SourceSpec(name, "")


def ranges(found: DebeziumTopic, name: str, known: Known | None = None) -> dict[str, tuple[int, int]]:
    """Return what of each partition is not read."""
    return {
        part.name: (part.from_line, part.to_line) for part in found.unread(spec(name), known or {}, NOW, None)
    }


def read(found: DebeziumTopic, name: str) -> Known:
    """Return the plan of a batch that reads everything."""
    return {part.name: part for part in found.unread(spec(name), {}, NOW, None)}


@pytest.mark.bad_input(52)
def test_topic_tells_what_is_not_read_of_it(kafka: Topics) -> None:
    """Offsets by partition, an open transaction left out; from where it is declared to begin."""
    kafka.make("events", 2)
    kafka.write("events", [({"id": n}, {"op": "c"}) for n in range(5)], partition=0)
    kafka.transact("events", [({"id": n}, {"op": "c"}) for n in range(3)], commits=False, partition=1)
    found = topic(kafka, "events")
    first = read(found, "events")
    kafka.write("events", [({"id": 9}, None)], partition=1)

    assert {name: part.to_line for name, part in first.items()} == {"events+00000": 5, "events+00001": 4}
    assert ranges(found, "events", first) == {"events+00001": (4, 5)}
    (reached,) = [at for at in found.waiting(spec("events"), first, NOW).reached if at.lag]
    assert (reached.part, reached.next, reached.end, reached.lag) == ("events+00001", 4, 5, 1)
    assert ranges(topic(kafka, "events", start="latest"), "events") == {
        "events+00000": (5, 5),
        "events+00001": (5, 5),
    }
    assert ranges(topic(kafka, "events", start={0: 3, 1: 0}), "events")["events+00000"] == (3, 5)
    before, later = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2100))
    assert ranges(topic(kafka, "events", start=before), "events")["events+00000"] == (0, 5)
    assert ranges(topic(kafka, "events", start=later), "events")["events+00000"] == (5, 5)
    for start in ({0: 3}, {0: 6, 1: 0}):
        with pytest.raises(SourceRefused, match="start"):
            ranges(topic(kafka, "events", start=start), "events")
    assert found.columns(spec("events"), None) == []


def test_sensor_starts_a_run_for_records_and_none_when_nothing_is_new(kafka: Topics, tmp_path: Path) -> None:
    """Of a topic as of files: records that come later are worth another run, those that had theirs are not."""
    kafka.make("sensed", 2)
    pipeline = make_pipeline(tmp_path, ORDERS.format(servers=kafka.broker.servers))
    new_records = new_files_sensor(EmbeddedPipeline(pipeline), "shop", None)

    def tick(cursor: str | None) -> SensorResult:
        with DagsterInstance.ephemeral() as instance:
            result = new_records(build_sensor_context(instance=instance, cursor=cursor))
        assert isinstance(result, SensorResult)
        return result

    kafka.write("sensed", [({"id": 1}, {"op": "c", "after": {"id": 1}})], partition=0)
    first = tick(None)
    second = tick(first.cursor)
    kafka.write("sensed", [({"id": 2}, {"op": "c", "after": {"id": 2}})], partition=0)
    third = tick(second.cursor)

    keys = [[request.run_key for request in result.run_requests or ()] for result in (first, second, third)]
    assert [len(key) for key in keys] == [1, 0, 1]
    assert keys[0] != keys[2]
    assert second.skip_reason is not None


@pytest.mark.failure(20)
def test_topic_is_the_same_after_its_broker_was_started_again(
    kafka: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was planned can be read, and nothing is new."""
    kafka.make("kept", 1)
    kafka.write("kept", [({"id": 1}, {"op": "c"})])
    found = topic(kafka, "kept")
    known = read(found, "kept")

    monkeypatch.setattr(topic_client, "SECONDS", 3)
    kafka.broker.stop()
    with pytest.raises(SourceUnreadable, match="no broker answers"):
        found.waiting(spec("kept"), known, NOW)
    kafka.broker.start()

    found.check_same(spec("kept"), list(known.values()), thoroughly=True)
    assert ranges(found, "kept", known) == {}


@pytest.mark.bad_input(51)
def test_topic_that_is_not_what_was_read_is_told(kafka: Topics) -> None:
    """Made anew, expired before it was read or before a rerun, grown, or not there."""
    kafka.make("moving", 1)
    kafka.write("moving", [({"id": n}, {"op": "c"}) for n in range(6)])
    found = topic(kafka, "moving")
    known = read(found, "moving")
    part = known["moving+00000"]
    half = {part.name: replace(part, to_line=2)}

    def told(kind: type[SourceError], known: Known, source: DebeziumTopic = found) -> str:
        with pytest.raises(kind) as caught:
            ranges(source, "moving", known)
        return str(caught.value)

    kafka.expire("moving", 0, 4)
    assert "offsets 2 to 3 of partition 0 are gone" in told(SourceTrimmed, half)
    assert ranges(topic(kafka, "moving", start={0: 4}), "moving", half) == {part.name: (4, 6)}
    with pytest.raises(
        SourceTrimmed, match="offsets 0 to 3 of partition 0 are gone, which a batch was planned with"
    ):
        found.check_same(spec("moving"), [part], thoroughly=True)
    kafka.grow("moving", 2)
    assert "partition 1 was added after reading began" in told(SourceRefused, known)
    assert ranges(topic(kafka, "moving", is_ordered=True), "moving", known) == {"moving+00001": (0, 0)}
    kafka.remove("moving")
    assert "there is no such topic" in told(SourceNotFound, known)
    kafka.make("moving", 1)
    assert "was deleted and made anew" in told(SourceChanged, known)
    with pytest.raises(SourceChanged, match="is another topic than was read up to offset 6 of partition 0"):
        found.check_same(spec("moving"), [part], thoroughly=False)


FLIGHTS = """\
name: flights
lake: ./lake
spark:
  master: local[2]
  conf: {{spark.driver.memory: 1g, spark.sql.shuffle.partitions: 2, spark.driver.extraJavaOptions: -XX:+UseSerialGC}}
tables:
  flights:
    source: {{format: kafka, bootstrap_servers: "{servers}", topic: flights, value: debezium}}
    columns: {flights}
    key: [flight_id]
    sequence: [lsn]
    event_time: event_time
  planes:
    source: {{format: kafka, bootstrap_servers: "{servers}", topic: planes, value: debezium, absent: clear}}
    columns: {planes}
    key: [tailnum]
    sequence: [lsn]
    event_time: event_time
joins:
  flights_with_planes: {{left: flights, right: planes, foreign_key: [tailnum], how: left, prefix: plane_}}
  flights_with_planes_inner: {{left: flights, right: planes, foreign_key: [tailnum], how: inner, prefix: plane_}}
"""
ROWS = """\
name: shop
lake: ./lake
spark:
  master: local[2]
  conf: {{spark.driver.memory: 1g, spark.driver.extraJavaOptions: -XX:+UseSerialGC}}
tables:
  orders:
    source: {{format: kafka, bootstrap_servers: "{servers}", topic: orders, value: jsonl, infinity: {infinity}}}
    columns: {{id: bigint, at: date, amount: "decimal(12,2)"}}
    key: [id]
"""
ITEMS = """\
name: shop
lake: ./lake
spark:
  master: local[2]
  conf: {{spark.driver.memory: 1g, spark.driver.extraJavaOptions: -XX:+UseSerialGC}}
tables:
  items:
    source: {{format: kafka, bootstrap_servers: "{servers}", topic: items, value: debezium, registry: "{registry}",
              absent: clear}}
    columns: {{id: bigint, amount: "decimal(12,2)", at: timestamp, born: date, note: string, tags: array<string>,
               rate: double, raw: binary, extra: string}}
    key: [id]
"""
_DECIMAL = {
    "type": "bytes", "scale": 2, "precision": 12, "connect.version": 1, "logicalType": "decimal",
    "connect.name": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": "2"},
}  # fmt: skip
ROW = [
    {"name": "id", "type": "long"},
    {"name": "amount", "type": ["null", _DECIMAL]},
    {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
    {"name": "born", "type": {"type": "int", "logicalType": "date"}},
    *[{"name": name, "type": ["null", kind]} for name, kind in (("note", "string"),)],
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    *[{"name": name, "type": ["null", kind]} for name, kind in (("rate", "double"), ("raw", "bytes"))],
]
"""Fields as Kafka Connect's converter writes them into Avro, and one as anybody does."""


def events(example: Example, name: str) -> Iterator[tuple[object, object]]:
    """Yield the events of a week, each with its key, as they were recorded."""
    for path in sorted((EXAMPLE / "data" / name).glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                record = json.loads(line)
                yield record["key"], record["value"]


def columns(example: Example, name: str) -> str:
    """Return the declared columns of a table."""
    found = example.pipeline.tables[name].columns
    return json.dumps({column: declared.type for column, declared in found.items()})


def _wait_for_gaps(kafka: Topics) -> None:
    """Wait until the broker has removed older records of keys."""
    client = topic_client.connect(topics.Topics(kafka.broker.servers, ("planes",)))
    for _ in range(100):
        extents = client.extents([("planes", 0), ("planes", 1)])
        there = len(client.first_records(extents, 100_000))
        if there < sum(extent.end - extent.begin for extent in extents.values()) - 2:
            return
        time.sleep(0.3)
    raise AssertionError("nothing of the topic was compacted")


def _write_week(kafka: Topics, example: Example) -> None:
    """Write a week of flights, with transactions of which one was aborted, and planes that are compacted."""
    compacted = {"min_cleanable_dirty_ratio": "0.01", "segment_ms": "300", "delete_retention_ms": "0"}
    kafka.make("flights", 3)
    kafka.make("planes", 2, cleanup_policy="compact", **compacted)
    flights = list(events(example, "flights"))
    kafka.write("flights", flights[:10_000])
    for commits, partition in ((False, 0), (True, 1)):
        row = {"op": "c", "after": {"flight_id": -1 - partition}, "source": {"lsn": 1}}
        kafka.transact(
            "flights", [({"flight_id": -1 - partition}, row)], commits=commits, partition=partition
        )
    kafka.write("flights", flights[10_000:])
    kafka.write("planes", events(example, "planes"))
    time.sleep(0.5)  # then the next record begins a new segment; only those before are compacted
    for partition in (0, 1):
        kafka.write("planes", [({"tailnum": f"none {partition}"}, None)], partition=partition)
    _wait_for_gaps(kafka)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.failure(20)
def test_pipeline_over_topics_has_what_postgres_answered(
    kafka: Topics, tmp_path: Path, spark: SparkSession
) -> None:
    """A week of flights: in one batch, cut into some, cut off again and again.

    The topics have several partitions, gaps that compaction left, and transactions, one of which was aborted.
    """
    example = open_example(EXAMPLE, None)
    _write_week(kafka, example)
    declared = {name: columns(example, name) for name in ("flights", "planes")}
    ways = {"straight": "1 batches", "cut": "4 batches", "crashing": "2 crashes"}
    pipelines = {
        way: make_pipeline(tmp_path / way, FLIGHTS.format(servers=kafka.broker.servers, **declared))
        for way in ways
    }

    said = run_pipelines(
        *[(pipeline.path, way) for way, pipeline in pipelines.items()], environment=os.environ
    )

    assert said == ways
    for pipeline in pipelines.values():
        lake = Lake(pipeline.lake)
        for join in pipeline.joins:
            expected = read_expected(
                spark, str(example.answer(example.pipeline.join_spec(join), example.days[-1]))
            )
            joined = spark.read.format("delta").load(lake.path(joined_of(join)))
            joined = joined.where("flight_id > 0")
            assert compare(join, joined, expected, ("flight_id",)).equal, join
    flights = spark.read.format("delta").load(
        Lake(pipelines["cut"].lake).path(joined_of("flights_with_planes"))
    )
    assert [row[0] for row in flights.where("flight_id < 0").select("flight_id").collect()] == [-2]
    journal = Journal(Lake(pipelines["straight"].lake))
    assert journal.plans[0].records > sum(
        counts["records"] for counts in journal.published[0].tables.values()
    )


def rows_of(path: Path, spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    """Return the rows that a pipeline's table has, in the order of its first column."""
    pipeline = load(path)
    lake, spec = Lake(pipeline.lake), pipeline.tables[table].spec
    rows = State(spark, lake, published_snapshot(Journal(lake))).all_rows(spec)
    kept = rows.where(~F.col(DELETED)).select(*spec.columns.names).orderBy(spec.columns.names[0])
    return [tuple(row) for row in kept.collect()]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.bad_input(53)
def test_rows_of_a_topic_are_read_by_what_their_schemas_say(
    kafka: Topics, tmp_path: Path, spark: SparkSession
) -> None:
    """Avro by schemas of a registry, of which a second has a column more, and JSON beside; deletes without a value.

    What cannot be read is in quarantine with its text, and is read once more from there.
    """
    kafka.make("orders", 1)
    kafka.write("orders", [
        ({"id": 1}, {"op": "c", "id": 1, "at": "2024-01-01", "amount": "1.10"}),
        ({"id": 2}, '{"op": "c", "id": 2, "at": "infinity", "amount": 2.30}'),
        ({"id": 3}, {"op": "c", "id": 3, "at": "2024-01-01", "amount": "3"}),
        ({"id": 3}, None),
        ({"id": 4}, '{"op": "c", "id": 4} trailing'),
    ])  # fmt: skip
    (tmp_path / "orders").mkdir()
    first, again = (tmp_path / "orders" / name for name in ("lakejoin.yaml", "again.yaml"))
    first.write_text(ROWS.format(servers=kafka.broker.servers, infinity="quarantine"))
    again.write_text(ROWS.format(servers=kafka.broker.servers, infinity="max"))
    kafka.make("items", 1)
    with schema_registry(tmp_path / "registry") as url:
        kafka.write("items", avro_events(url))
        items = make_pipeline(
            tmp_path / "items", ITEMS.format(servers=kafka.broker.servers, registry=url)
        ).path
        runs = [(first, "straight"), (again, "retried"), (items, "straight")]
        said = run_pipelines(*runs, environment=os.environ)

    assert said == {"orders": "1 applied", "items": "1 batches"}
    day = date(2024, 1, 1)
    assert rows_of(first, spark, "orders") == [(1, day, Decimal("1.10")), (2, date.max, Decimal("2.30"))]
    (bad,) = quarantined(first, spark).where("line = 5 and _lj_batch = 1").collect()
    assert (bad["file"], bad["reason"]) == ("orders+00000", "parse_error")
    assert bad["raw"] == '{"op": "c", "id": 4} trailing'
    at = datetime(2024, 6, 15, 12, 24, 56, 123456)  # noqa: DTZ001 - as Spark gives it
    assert rows_of(items, spark, "items") == [
        (1, Decimal("-12.34"), at, date(2024, 6, 15), "é", ["a", "b"], 0.1, b"\x00\xff", None),
        (2, Decimal("5.00"), at, date(2024, 6, 15), None, [], None, None, "more"),
        (5, None, None, None, "of a schema of JSON", None, None, None, None),
    ]
    (bad,) = quarantined(items, spark).collect()
    assert (bad["line"], bad["reason"]) == (6, "parse_error")
    assert "no Avro of schema" in bad["raw"]


def quarantined(path: Path, spark: SparkSession) -> DataFrame:
    """Return what is in quarantine."""
    return spark.read.format("delta").load(Lake(load(path).lake).path(QUARANTINE))


def avro_events(url: str) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield Debezium's events in Avro, and one in JSON, by schemas that are in a registry then."""
    key = register(
        url, "items-key", {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}
    )
    of_rows = [avro_event("Value", ROW), avro_event("Value", [*ROW, optional("extra", "string")])]
    numbers = [register(url, "items-value", schema) for schema in of_rows]
    of_json = register(url, "items-json", {"$schema": "http://json-schema.org/draft-07/schema#"}, "JSON")
    at, day = 1718454296123456, 19889
    full = {
        "id": 1, "amount": (-1234).to_bytes(2, "big", signed=True), "at": at, "born": day, "note": "é",
        "tags": ["a", "b"], "rate": 0.1, "raw": b"\x00\xff",
    }  # fmt: skip
    other = {
        **full,
        "id": 2,
        "amount": (500).to_bytes(2, "big"),
        "note": None,
        "tags": [],
        "rate": None,
        "raw": None,
    }
    gone = {**full, "id": 3}

    def event(version: int, before: object, after: object, op: str) -> bytes:
        value = {"before": before, "after": after, "op": op, "ts_ms": 1718454896000}
        return numbered(numbers[version], encoded(of_rows[version], value))

    def key_of(number: int) -> bytes:
        return numbered(key, encoded("long", number))

    yield key_of(1), event(0, None, full, "c")
    yield key_of(3), event(0, None, gone, "c")
    yield key_of(2), event(1, None, {**other, "extra": "more"}, "c")
    yield key_of(3), event(0, gone, None, "d")
    yield key_of(3), None
    yield key_of(4), numbered(numbers[0], b"\x02")
    text = {"before": None, "after": {"id": 5, "note": "of a schema of JSON"}, "op": "c", "ts_ms": 1}
    yield key_of(5), numbered(of_json, json.dumps(text).encode())
