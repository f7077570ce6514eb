"""What a real Debezium wrote into Kafka as Avro with a schema registry, beside the databases' own answers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.kafka.broker import broker
from lakejoin.storage.spark.jars import JarsNotFound
from places.kafka_topics import Topics
from places.processes import run_pipelines
from places.schema_registry import schema_registry
from recordings.playing import player
from recordings.reading import pipeline_of, told
from recordings.test_mariadb import FORMS, of_debezium
from recordings.test_postgres import ALL, NEW_KEY, OF_DEBEZIUM

pytestmark = pytest.mark.spark


@pytest.fixture
def topics(tmp_path: Path) -> Iterator[Topics]:
    """Return the topics of a broker of its own."""
    try:
        with broker(tmp_path / "kafka") as started:
            yield Topics(started)
    except JarsNotFound as error:
        pytest.skip(f"no broker: {error.lines[0]}")


@pytest.mark.slow
def test_joined_tables_equal_those_of_the_databases(
    topics: Topics, tmp_path: Path, spark: SparkSession
) -> None:
    """In every cell, but for what Debezium itself does not say.

    PostgreSQL's schemas refer to others, as Apicurio's converter registers them by default, and a column is added in
    mid-topic; MariaDB's are complete in themselves.
    """
    with schema_registry(tmp_path / "registry") as url:
        postgres, mariadb = (
            pipeline_of(kind, "avro", tmp_path / kind, servers=topics.broker.servers, registry=url)
            for kind in ("postgres", "mariadb")
        )
        for kind in ("postgres", "mariadb"):
            player(kind, topics, url).play([1, 2, 3])
        runs = [(pipeline.path, "straight") for pipeline in (postgres, mariadb)]
        said = run_pipelines(*runs, environment=os.environ)

    assert said == {"postgres": "1 batches", "mariadb": "1 batches"}
    assert told("postgres", postgres, 3, spark, ALL) == sorted([*OF_DEBEZIUM, NEW_KEY])
    assert told("mariadb", mariadb, 3, spark, FORMS) == of_debezium("avro", 3)
