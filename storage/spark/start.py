"""Says what a Spark session is started with: every setting of Spark and Delta that the project makes, JARs and Java."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import pyspark

from lakejoin.storage.spark import avro, jdbc, kafka, s3
from lakejoin.storage.spark.archive import OPTION_VARIABLES, Archive, archive_of
from lakejoin.storage.spark.engine.launch import JAVA_OPTIONS, Launch, launch_of
from lakejoin.storage.spark.jars import cache_directory, no_resolver, provide_jars, spark_resolver
from lakejoin.storage.spark.java import Java, check_collector, find_java, locale_variables, wrap_java
from lakejoin.transforms.model.sql_settings import PINNED

NO_CLEANUP = ("delta.enableExpiredLogCleanup", "false")
"""The property of a table whose log only maintenance shortens."""


NO_CONF: Mapping[str, str] = MappingProxyType({})
"""No settings beyond the project's own."""

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
"""By which Spark knows Delta Lake."""

SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.app.name": "lakejoin",
        "spark.driver.memory": "4g",
        # Each broadcast takes at least a page, by default 16 MiB: many small lookups would fill the heap.
        "spark.buffer.pageSize": "2m",
        **PINNED,
        "spark.sql.extensions": EXTENSION,
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
        # What Spark derives of the checks of a record doubles with each column that is told twice: a snapshot of 17
        # columns, a chain of four joins were never planned. And it is kept with a frame in names that a union with the
        # frames it stems from may not know: "key not found".
        "spark.sql.constraintPropagation.enabled": "false",
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
        # Of a list of more values Parquet is told the least and the greatest only, by default of more than ten.
        "spark.sql.parquet.pushdown.inFilterThreshold": "250",
        # A list of numbers would be code of its own in each batch, which the JVM compiles again and again.
        "spark.sql.optimizer.inSetSwitchThreshold": "0",
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
_GIVES_BACK = "-XX:+UseAdaptiveSizePolicyWithSystemGC -XX:MinHeapFreeRatio=5 -XX:MaxHeapFreeRatio=10"
"""By default this collector keeps the memory that it once had, also in a JVM that waits for its next run."""
_YOUNG_MIB = 75
"""Room for young objects, for each core. It is never given back, and a batch gains nothing by more."""
_ARENAS = {"MALLOC_ARENA_MAX": "2"}
"""By default each thread of the JVM's compilers keeps what it once had from the system, too."""
_COLLECTORS = r"-XX:\+Use(Serial|Parallel|G1|Z|Shenandoah|Epsilon)GC\b"
"""The options that choose a collector; a JVM does not start with two of them."""
_ARCHIVES = "-XX:(AOT|SharedArchive|ArchiveClasses|DumpLoaded)"
"""What options of archives begin with."""
_LISTS = {
    "spark.jars": ",",
    "spark.driver.extraClassPath": os.pathsep,
    "spark.sql.extensions": ",",
    JAVA_OPTIONS: " ",
    "spark.executor.extraJavaOptions": " ",
}


@dataclass(frozen=True)
class Start:
    """What a session is started with: settings, variables of the environment, Java; `cache`: what is fetched once."""

    settings: Mapping[str, str]
    variables: Mapping[str, str]
    java: Java
    cache: Path

    @property
    def is_local(self) -> bool:
        """Whether the session has no executors but its own JVM."""
        return _local_cores(self.settings["spark.master"]) is not None

    @property
    def launch(self) -> Launch:
        """What is said of its JVM."""
        return launch_of(self.settings, self.java.path.resolve(), {**os.environ, **self.variables})

    @property
    def archive(self) -> Archive:
        """The archive for its JVM, which need not be there."""
        return archive_of(self.launch, self.java, self.cache)

    def archive_options(self) -> str:
        """What tells its JVM to start from the archive; nothing where there is none, or somebody named another."""
        if not self.is_local or re.search(_ARCHIVES, self.settings[JAVA_OPTIONS]):
            return ""
        return self.archive.option or ""


def prepare(
    master: str = "local[*]",
    conf: Mapping[str, str] = NO_CONF,
    places: Iterable[str] = (),
    formats: Iterable[str] = (),
    *,
    fetches: bool = True,
) -> Start:
    """Return what a session is started with, after fetching what is not there yet; as for `start_session`.

    `fetches`: otherwise `JarsNotFound` is raised for JARs that are not there.
    """
    cache = cache_directory(os.environ)
    java = find_java(os.environ)
    java_home = wrap_java(java, cache)
    fetched = cache / "jars"
    resolver = partial(spark_resolver, _SPARK_HOME, java_home, conf) if fetches else no_resolver
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
        variables |= {name: value for name, value in _ARENAS.items() if name not in os.environ}
    wanted = settings(master, jars, cache, conf)
    check_collector(java, told_options(wanted))
    return Start(wanted, variables, java, cache)


def settings(master: str, jars: Sequence[Path], cache: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Return all settings of a session: a key in `conf` wins unless it is pinned; Spark's lists are appended to."""
    ours = {
        **SETTINGS,
        "spark.master": master,
        JAVA_OPTIONS: " ".join(
            [_EVERY_JVM, *_collector(conf, master), f"-Dlog4j2.configurationFile={_LOGGING}"]
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


def _collector(conf: Mapping[str, str], master: str) -> list[str]:
    """The options of our collector, unless one is chosen already."""
    if re.search(_COLLECTORS, told_options(conf)):
        return []
    cores = _local_cores(master)
    if cores is None:
        return [_COLLECTOR]
    return [_COLLECTOR, f"-XX:MaxNewSize={_YOUNG_MIB * max(2, cores)}m", _GIVES_BACK]


def told_options(conf: Mapping[str, str]) -> str:
    """Return the options of the JVM that settings and the environment say."""
    return " ".join([conf.get(JAVA_OPTIONS, ""), *[os.environ.get(name, "") for name in OPTION_VARIABLES]])


def _local_cores(master: str) -> int | None:
    """Return how many cores a local master uses, None for a cluster."""
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,.*)?\])?", master)
    if local is None:
        return None
    return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
