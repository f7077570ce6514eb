"""Measures how fast a topic is read: `bench/kafka.py [--records N]`.

A broker of its own is filled with events of Debezium. Then Spark's own source reads them and throws them away; ours
reads and parses them, and throws them away; files with the same events are read and parsed; and a run takes the topic
into a lake. Each but the last is measured some times in turns, and the median counts.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined] # its stubs leave it out
from pyspark.sql import DataFrame, SparkSession

from examples.kafka.broker import broker
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.loading import load_text
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.sources.formats.source_format import Look
from lakejoin.storage.spark.session import start_session

PARTITIONS, TURNS = 4, 3
TEXT = """\
name: rate
lake: {folder}/lake
tables:
  topic:
    source: {{format: kafka, bootstrap_servers: "{servers}", topic: orders, value: debezium}}
    columns: {{id: bigint, customer: bigint, amount: "decimal(12,2)", status: string, placed: timestamp}}
    key: [id]
"""
FILES = """\
name: rate
lake: {folder}/lake_of_files
tables:
  files:
    source: {{format: debezium, path: "{folder}/files/*.jsonl"}}
    columns: {{id: bigint, customer: bigint, amount: "decimal(12,2)", status: string, placed: timestamp}}
    key: [id]
"""


def fill(servers: str, folder: Path, count: int) -> None:
    """Write events to a topic, and the same to files."""
    admin = AdminClient({"bootstrap.servers": servers})
    (made,) = admin.create_topics([NewTopic("orders", PARTITIONS, 1)]).values()
    made.result()
    producer = Producer(
        {"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000, "linger.ms": 50}
    )
    folder.mkdir()
    files = [(folder / f"{number}.jsonl").open("w", encoding="utf-8") for number in range(PARTITIONS)]
    source = {
        "version": "3.6.1.Final",
        "connector": "postgresql",
        "name": "shop",
        "db": "shop",
        "schema": "public",
    }
    for number in range(count):
        row = {
            "id": number, "customer": number % 99_991, "amount": f"{number % 100_000}.{number % 100:02d}",
            "status": "paid" if number % 3 else "open", "placed": 1_718_454_896_123_456 + number,
        }  # fmt: skip
        said = {**source, "table": "orders", "lsn": 28_349_232 + number, "txId": number // 10}
        value = {"before": None, "after": row, "source": said, "op": "c", "ts_ms": 1_718_454_896_123}
        key, text = json.dumps({"id": number}), json.dumps(value, separators=(",", ":"))
        producer.produce("orders", key=key, value=text, partition=number % PARTITIONS)
        files[number % PARTITIONS].write(f'{{"key":{key},"value":{text}}}\n')
        producer.poll(0)
    producer.flush()
    for file in files:
        file.close()


def records(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """All records of a pipeline's only source, parsed."""
    (table,) = pipeline.inputs.values()
    parts = list(table.source_format.unread(table.source_spec, {}, Look(datetime.now(UTC)), spark))
    return table.source_format.read(spark, table.spec.as_read, table.parse_options, parts)


def thrown_away(frame: DataFrame) -> None:
    """Compute a frame and keep nothing of it."""
    frame.write.format("noop").mode("overwrite").save()


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def measure(spark: SparkSession, servers: str, topic: Pipeline, files: Pipeline) -> Mapping[str, float]:
    """Seconds of each way to read."""
    plain = spark.read.format("kafka").options(subscribe="orders", **{"kafka.bootstrap.servers": servers})
    ways: dict[str, Callable[[], None]] = {
        "Spark's own source to noop": lambda: thrown_away(plain.load()),
        "ours, parsed, to noop": lambda: thrown_away(records(spark, topic)),
        "files, parsed, to noop": lambda: thrown_away(records(spark, files)),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS + 1):
        for name, work in ways.items():
            taken[name].append(seconds(work))
    found = {name: statistics.median(turns[1:]) for name, turns in taken.items()}  # the first ones warm up
    return found | {"lakejoin run, first load": seconds(lambda: list(run_batches(topic, spark)))}


def main(count: int) -> None:
    """Print records per second of each way."""
    with tempfile.TemporaryDirectory() as scratch, broker(Path(scratch) / "broker") as started:
        folder = Path(scratch)
        fill(started.servers, folder / "files", count)
        topic, files = (
            load_text(text.format(folder=folder, servers=started.servers), folder / "lakejoin.yaml")
            for text in (TEXT, FILES)
        )
        spark = start_session("local[2]", places=topic.places)
        found = measure(spark, started.servers, topic, files)
        spark.stop()
    for name, taken in found.items():
        sys.stdout.write(f"{name:30} {taken:7.1f} s {count / taken:12,.0f} records/s\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    main(parser.parse_args().records)
