"""Runs the week of flights through a broker of Kafka: `make kafka`, or `run.py --days 2`.

Each day is written to topics and worked off by `lakejoin run`. From the second day on a run is killed first, each time
behind another of its commits, then begun again. On the fourth day the broker is started anew before that. At the end
each day's joined tables, by their versions, are compared with what PostgreSQL answered.
"""

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from confluent_kafka import Producer  # noqa: E402 - only now the project is found
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402 - as above

from examples.kafka.broker import Broker  # noqa: E402 - as above
from lakejoin.orchestration.cli.options import open_session  # noqa: E402 - as above
from lakejoin.orchestration.config import load  # noqa: E402 - as above
from lakejoin.orchestration.demo.csv_comparison import compare, read_expected  # noqa: E402 - as above
from lakejoin.orchestration.demo.example import EXAMPLE, open_example  # noqa: E402 - as above
from lakejoin.storage.lake.journal import Journal  # noqa: E402 - as above
from lakejoin.storage.lake.layout import Lake, joined_of  # noqa: E402 - as above

WORK = HERE / "work"
CONFIGURATION = HERE / "lakejoin.yaml"
PORT = 19092
PARTITIONS = {"flights": 3, "planes": 2}
KILLED_BEHIND = (
    "_plan",
    "tables/flights/changes",
    "joins/flights_with_planes/subscription_log",
    "joins/flights_with_planes_inner/joined",
)
"""Tables of the lake: a run is killed when it has committed to one of them, each day to the next."""
RESTARTED = 3
"""The day, from 0, on which the broker is started anew."""
_PATIENCE = 300


def write_day(servers: str, day: date) -> int:
    """Write a day's events, keys as they were recorded; return how many."""
    producer, count = Producer({"bootstrap.servers": servers}), 0
    for table in PARTITIONS:
        for event in _events(table, day):
            key, value = json.dumps(event["key"]), json.dumps(event["value"]) if event["value"] else None
            producer.produce(f"ops.{table}", key=key, value=value)
            producer.poll(0)
            count += 1
    if producer.flush(60):
        raise TimeoutError("the broker does not take the events")
    return count


def _events(table: str, day: date) -> Iterator[dict[str, object]]:
    path = EXAMPLE / "data" / table / f"{day}.jsonl.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def lakejoin(name: str, *arguments: str) -> None:
    """Run a command to its end, and show what it says."""
    say(f"$ lakejoin {' '.join([name, CONFIGURATION.name, *arguments])}")
    subprocess.run(_command(name, *arguments), check=True)


def run_and_kill(table: str) -> bool:
    """Begin a run and kill it once it has committed to a table; tell whether that came before its end."""
    log = Path(load(CONFIGURATION).lake) / table / "_delta_log"
    before = len(list(log.glob("*.json")))
    process = subprocess.Popen(_command("run"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        if len(list(log.glob("*.json"))) > before:
            process.kill()
            process.wait()
            return True
        time.sleep(0.01)
    process.kill()
    process.wait()
    return False


def _command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "lakejoin", name, str(CONFIGURATION), *arguments]


def compare_days(days: int) -> int:
    """Compare each day's joins with the database's answers; return how many differ."""
    pipeline, example = load(CONFIGURATION), open_example(EXAMPLE, None)
    lake, spark, differ = Lake(pipeline.lake), open_session(pipeline), 0
    for batch, day in zip(Journal(lake).published, example.days[:days], strict=True):
        for name in pipeline.joins_of_tables:
            table = joined_of(name)
            reader = spark.read.format("delta").option("versionAsOf", batch.versions[table])
            expected = read_expected(spark, str(example.answer(name, day)))
            found = compare(
                name, reader.load(lake.path(table)), expected, pipeline.join_spec(name).joined_key
            )
            say(f"{day} {name}: {'equal to PostgreSQL' if found.equal else 'DIFFERS'}")
            differ += not found.equal
    spark.stop()
    return differ


def run(days: int) -> int:
    """Run some days of the week; return how many joins differ."""
    shutil.rmtree(WORK, ignore_errors=True)
    broker = Broker(WORK / "broker", port=PORT)
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
        topics = [NewTopic(f"ops.{table}", partitions, 1) for table, partitions in PARTITIONS.items()]
        for made in admin.create_topics(topics).values():
            made.result()
        for number, day in enumerate(open_example(EXAMPLE, None).days[:days]):
            say(f"\n{day}: {write_day(broker.servers, day):,} events written to {broker.servers}")
            lakejoin("status")
            if number > 0:
                table = KILLED_BEHIND[(number - 1) % len(KILLED_BEHIND)]
                was_killed = run_and_kill(table)
                say(
                    f"run killed once it had committed to {table}"
                    if was_killed
                    else "the run ended before it was killed"
                )
            if number == RESTARTED:
                broker.stop()
                broker.start()
                say("broker stopped and started again")
            lakejoin("run")
        lakejoin("status")
        lakejoin("run")
        return compare_days(days)
    finally:
        broker.stop()


def say(text: str) -> None:
    """Print a line at once, before what commands print."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=7, help="how many days of the week")
    sys.exit(min(run(parser.parse_args().days), 1))
