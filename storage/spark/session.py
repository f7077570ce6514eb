"""Starts the Spark session, and changes its settings and the names of its jobs for a while."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.spark.engine.client import Lease, lease_engine, leave_off
from lakejoin.storage.spark.engine.launch import with_archive
from lakejoin.storage.spark.py4j_cache import remember_answers
from lakejoin.storage.spark.start import EXTENSION, NO_CONF, SETTINGS, prepare
from lakejoin.transforms.model.sql_settings import PINNED, PREFIX, filed

_NAME = "spark.job.description"


class SessionUnusable(LakejoinError):
    """A session that somebody else started cannot read and write the tables of a lake."""


def start_session(
    master: str = "local[*]",
    conf: Mapping[str, str] = NO_CONF,
    places: Iterable[str] = (),
    formats: Iterable[str] = (),
    idle: timedelta | None = None,
) -> SparkSession:
    """Return the process's Spark session with Delta Lake, started with `conf` over our own settings.

    `places`: paths and URIs that it is to work on, `formats`: those of files that it is to read; what these need beside
    Delta is provided as well. `idle`: how long its JVM stays for other runs when this process has ended; by default it
    ends with it. Where a session runs already it is returned, with those settings applied that can still
    change. What is pinned has its value in any case, and what is refused has Spark's own, whatever
    `spark-defaults.conf` or the session said before. The first start on a machine fetches JARs over the network. Raises
    `JavaNotFound`, `CollectorRefused` and `JarsNotFound`.
    """
    start = prepare(master, conf, places, formats)
    running = SparkContext._gateway is not None  # noqa: SLF001 - PySpark has no other way to ask
    with _environment(start.variables):
        lease = None
        if idle is not None and start.is_local and not running and not leave_off(os.environ):
            lease = lease_engine(start.launch, idle, start.cache, start.archive_options)
        archive = "" if running or lease else start.archive_options()
        builder: SparkSession.Builder = SparkSession.builder
        for key, value in with_archive(start.settings, archive).items():
            builder = builder.config(key, value)
        with _environment(lease.variables if lease else {}), _held(lease):
            spark = builder.getOrCreate()
    put_back(spark)
    remember_answers(spark)
    return spark


def session_beside(given: SparkSession, conf: Mapping[str, str] = NO_CONF) -> SparkSession:
    """Return a session of our own in the application of one that somebody else started, which stays as it is.

    It has what a running application can still take of `conf` and of our own settings, and ends with the application.
    JARs, memory and the time zone of the JVM are as they were given. Raises `SessionUnusable` where Delta Lake's
    extension is not loaded.
    """
    loaded = given.conf.get("spark.sql.extensions", None) or ""
    if EXTENSION not in map(str.strip, loaded.split(",")):
        raise SessionUnusable(
            "The given Spark session does not know Delta Lake: "
            f"spark.sql.extensions is {loaded or 'not set'}, expected {EXTENSION} in it.",
            "Start it with delta-spark's configure_spark_with_delta_pip, or leave the session to Lakejoin.",
        )
    spark = given.newSession()
    for name, value in {**SETTINGS, **conf, **PINNED}.items():
        if spark.conf.isModifiable(name):
            spark.conf.set(name, value)
    put_back(spark)
    remember_answers(spark)
    return spark


@contextmanager
def _held(lease: Lease | None) -> Iterator[None]:
    """Keep a lease as long as PySpark's gateway, also where the block fails: the process goes on with that JVM."""
    try:
        yield
    finally:
        gateway: Any = SparkContext._gateway  # noqa: SLF001 - where PySpark has the process that it starts itself
        if lease is not None and gateway is not None:
            gateway.proc = lease


def jvm_process() -> int:
    """Return the process of the JVM that this process has a session in, 0 where it was told to use somebody's."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - as above
    return gateway.proc.pid if gateway.proc else 0


def put_back(spark: SparkSession) -> None:
    """Give a session the pinned settings, and Spark's own defaults for those that change what a value is.

    A `spark-defaults.conf`, a Java option or whoever used the session before may have set them.
    """
    said = spark.conf.getAll
    for name in said:
        if name.startswith(PREFIX) and filed(name) == "refused" and spark.conf.isModifiable(name):
            spark.conf.unset(name)
    for name, value in PINNED.items():
        if said.get(name) != value:
            spark.conf.set(name, value)


@contextmanager
def changed_settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Give a session other settings while the block runs, then its own again."""
    usual = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, before in usual.items():
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the JVM that is started meanwhile, and put the old ones back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def jobs_called(spark: SparkSession, name: str) -> Iterator[None]:
    """Jobs that this thread begins meanwhile go by a name."""
    context = spark.sparkContext
    before = context.getLocalProperty(_NAME)
    context.setLocalProperty(_NAME, name)
    try:
        yield
    finally:
        context.setLocalProperty(_NAME, before)  # type: ignore[arg-type] # none removes it
