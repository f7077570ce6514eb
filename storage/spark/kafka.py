"""Provides the JARs by which Spark reads topics of Kafka, and values in Avro; Spark comes without them."""

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from lakejoin.storage.spark.jars import Resolve, provide_folder

SCHEME = "kafka://"
"""As `storage.sources.planned.planned_file.TOPIC`."""
NOT_FETCHED = (
    *("org.apache.hadoop*:*", "org.scala-lang*:*", "org.slf4j*:*", "org.xerial*:*"),  # shipped with Spark
    *("at.yawk*:*", "org.tukaani:*", "com.google*:*"),  # as above
)


def on_kafka(places: Iterable[str]) -> bool:
    """Tell whether any of these paths and URIs is a topic."""
    return any(place.startswith(SCHEME) for place in places)


def provide_kafka_jars(cache: Path, resolve: Resolve) -> list[Path]:
    """Return the paths of the JARs that read topics, fetched by `resolve` at the first time. Raises `JarsNotFound`."""
    spark = version("pyspark")
    coordinates = [f"org.apache.spark:spark-{name}_2.13:{spark}" for name in ("sql-kafka-0-10", "avro")]
    return provide_folder(cache / f"kafka-spark-{spark}", "the JARs that read Kafka", coordinates, resolve)
