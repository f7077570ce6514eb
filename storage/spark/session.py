"""Starts the Spark session, with every setting of Spark and Delta that the project makes."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from storage.spark import avro, jdbc, kafka, s3
from storage.spark.engine.client import Lease, lease_engine, leave_off
from storage.spark.engine.launch import launch_of
from storage.spark.jars import cache_directory, provide_jars, spark_resolver
from storage.spark.java import find_java, locale_variables, wrap_java
from storage.spark.py4j_cache import remember_answers
from transforms.model.sql_settings import PINNED, PREFIX, filed

NO_CLEANUP = ("delta.enableExpiredLogCleanup", "false")
"""The property of a table whose log only maintenance shortens."""


NO_CONF: Mapping[str, str] = MappingProxyType({})
"""No settings beyond the project's own."""

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.app.name": "lakejoin",
        "spark.driver.memory": "4g",
        # Each broadcast takes at least a page, by default 16 MiB: many small lookups would fill the heap.
        "spark.buffer.pageSize": "2m",
        **PINNED,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        # By default 50 tasks compute each table's state, however small: 12 times slower for a small read.
        "spark.databricks.delta.snapshotPartitions": "1",
        # A commit whose answer was lost is recognised by its transaction identifier, not made twice.
        "spark.databricks.delta.commit.idempotencyCheck.enabled": "true",
        # A version that a batch under way or the last snapshot pins is read, however old; maintenance keeps its files.
        "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
        # Expired entries of a log may lead to such a version, too: maintenance removes them, and not every checkpoint.
        f"spark.databricks.delta.properties.defaults.{NO_CLEANUP[0].removeprefix('delta.')}": NO_CLEANUP[1],
        # A feed is read by the columns of the version it is read up to, with column mapping and without.
        "spark.databricks.delta.changeDataFeed.allowTimeTravelOptionsForSchema": "true",
        "spark.databricks.delta.changeDataFeed.defaultSchemaModeForColumnMappingTable": "legacy",
        # The source of our MERGEs is computed once already.
        "spark.databricks.delta.merge.materializeSource": "none",
        # A batch makes some 700 pieces of code; by default the last 100 are kept, and each batch compiles all anew.
        "spark.sql.codegen.cache.maxEntries": "5000",
        # What Spark says of each query before it runs it, for a web page that nobody opens; by default in full.
        "spark.sql.ui.explainMode": "simple",
        # By default PySpark looks at its own stack at every step of every expression: most of what a plan costs it.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Footers keep no bounds of texts of some thousand characters unless they are shortened; Delta takes 32.
        "spark.hadoop.parquet.statistics.truncate.length": "128",
        # Small batches split only files above 8 MiB: the lines of a smaller one are numbered within one task. Large
        # ones reckon less (`storage.spark.kept_frames`), for the more it is, the more unequal are the parts of a file.
        "spark.sql.files.openCostInBytes": str(8 * 1024 * 1024),
        "spark.sql.adaptive.enabled": "true",
        # Small frames of one partition are joined where they are. The limit would shuffle them whenever a join
        # of a join is estimated at the product of its sides, and every shuffle is a Spark job.
        "spark.sql.maxSinglePartitionBytes": str(2**62),
        # By default VACUUM and listings start up to 10,000 tasks.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
)
"""Settings for every master."""

_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()
_SPARK_HOME = Path(pyspark.__file__).parent
_EVERY_JVM = "-Duser.timezone=UTC -XX:-DontCompileHugeMethods"
"""By default the JVM only interprets methods of more than 8,000 bytes, which Spark makes of our wider steps."""
_COLLECTOR = "-XX:+UseParallelGC"
"""The collector that costs least in all; its pauses do not hurt a batch."""
_OTHER_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables that tell the JVM options, too; it does not start with two collectors."""
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.sql.extensions": ",",
    "spark.driver.extraJavaOptions": " ",
    "spark.executor.extraJavaOptions": " ",
}
_NAME = "spark.job.description"


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
    `JavaNotFound` and `JarsNotFound`.
    """
    cache = cache_directory(os.environ)
    java = find_java(os.environ)
    java_home = wrap_java(java, cache)
    fetched, resolver = cache / "jars", partial(spark_resolver, _SPARK_HOME, java_home, conf)
    jars = provide_jars(fetched, resolver())
    if s3.on_s3(places):
        jars += s3.provide_s3_jars(fetched, resolver(s3.NOT_FETCHED))
        conf = {**s3.s3_settings(os.environ), **conf}
    if kafka.on_kafka(places):
        jars += kafka.provide_kafka_jars(fetched, resolver(kafka.NOT_FETCHED))  # with that of Avro
    elif avro.in_avro(formats):
        jars += avro.provide_avro_jar(fetched, resolver(avro.NOT_FETCHED))
    if jdbc.on_databases(places):
        jars += jdbc.provide_driver(fetched, resolver(jdbc.NOT_FETCHED))
    # Another Spark that SPARK_HOME may name would not fit this pyspark and these JARs.
    variables = {"JAVA_HOME": str(java_home), "SPARK_HOME": str(_SPARK_HOME), **locale_variables(os.environ)}
    if _local_cores(master) is not None:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder: SparkSession.Builder = SparkSession.builder
    wanted = settings(master, jars, cache, conf)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    with _environment(variables):
        lease = None if idle is None else _lease(wanted, java, idle, cache)
        with _environment(lease.variables if lease else {}), _held(lease):
            spark = builder.getOrCreate()
    put_back(spark)
    remember_answers(spark)
    return spark


def _lease(wanted: Mapping[str, str], java: Path, idle: timedelta, cache: Path) -> Lease | None:
    """The lease of an engine for a session with these settings; None where this process has a JVM or starts its own."""
    started = SparkContext._gateway is not None  # noqa: SLF001 - PySpark has no other way to ask
    if started or _local_cores(wanted["spark.master"]) is None or leave_off(os.environ):
        return None
    return lease_engine(launch_of(wanted, java.resolve(), os.environ), idle, cache)


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


def settings(master: str, jars: Sequence[Path], cache: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session: a key in `conf` wins unless it is pinned; Spark's lists are appended to."""
    ours = {
        **SETTINGS,
        "spark.master": master,
        "spark.driver.extraJavaOptions": " ".join(
            [_EVERY_JVM, *_collector(conf), f"-Dlog4j2.configurationFile={_LOGGING}"]
        ),
        # the file of log settings is on the driver's machine only
        "spark.executor.extraJavaOptions": _EVERY_JVM,
        **_on_class_path(master, jars),
        # Never used, always created; by default in the directory the process was started in.
        "spark.sql.warehouse.dir": (cache / "warehouse").as_uri(),
    }
    if (cores := _local_cores(master)) is not None:
        # A cluster's executors could not reach a loopback address; its 200 shuffle partitions stay, too.
        ours |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(4 * cores),  # adaptive execution joins the small ones
        }
    appended = {
        key: f"{ours[key]}{sign}{conf[key]}" for key, sign in _LISTS.items() if key in ours and key in conf
    }
    return {**ours, **conf, **appended, **PINNED}


def _on_class_path(master: str, jars: Sequence[Path]) -> dict[str, str]:
    """The setting by which Spark loads these JARs: from where they are, or copied to each executor."""
    if _local_cores(master) is None or any(os.pathsep in str(jar) for jar in jars):
        return {"spark.jars": ",".join(map(str, jars))}
    return {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}


def _collector(conf: Mapping[str, str]) -> list[str]:
    """The option of our collector, unless one is chosen already."""
    given = [conf.get("spark.driver.extraJavaOptions", ""), *[os.environ.get(v, "") for v in _OTHER_OPTIONS]]
    return [] if re.search(r"-XX:\+Use\w*GC\b", " ".join(given)) else [_COLLECTOR]


def _local_cores(master: str) -> int | None:
    """Return how many cores a local master uses, None for a cluster."""
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,.*)?\])?", master)
    if local is None:
        return None
    return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)


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
