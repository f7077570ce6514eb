"""Provides the JAR by which Spark reads and writes Avro; Spark comes without it, but with all that it needs."""

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from lakejoin.storage.spark.jars import Resolve, provide_folder

AVRO = f"org.apache.spark:spark-avro_2.13:{version('pyspark')}"
_FORMAT = "avro"
NOT_FETCHED = ("org.scala-lang*:*", "org.tukaani:*", "com.google*:*", "org.slf4j*:*")  # shipped with Spark


def in_avro(formats: Iterable[str]) -> bool:
    """Tell whether any of these formats is Avro."""
    return _FORMAT in formats


def provide_avro_jar(cache: Path, resolve: Resolve) -> list[Path]:
    """Return the path of the JAR that reads Avro, fetched by `resolve` at the first time. Raises `JarsNotFound`."""
    folder = cache / f"avro-spark-{version('pyspark')}"
    return provide_folder(folder, "the JAR that reads Avro", [AVRO], resolve)
