"""Runs a Hive Metastore server of its own, as those who share tables have one."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lakejoin.storage.spark.jars import cache_directory, provide_folder, spark_resolver
from lakejoin.storage.spark.java import find_java, wrap_java
from places.processes import stopping, wait_for

VERSION = "4.0.1"
_COORDINATES = (
    f"org.apache.hive:hive-standalone-metastore-server:{VERSION}",
    "org.apache.hadoop:hadoop-hdfs:3.3.6",
    "org.apache.derby:derby:10.14.2.0",
)
_NOT_FETCHED = (
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.slf4j:slf4j-reload4j",
    "org.slf4j:slf4j-log4j12",
    "log4j:log4j",
    "org.pentaho:*",
)
_SPARK_HOME = Path(pyspark.__file__).parent
_SHIPPED = ("log4j-api-*", "log4j-core-*", "hadoop-client-*")
"""JARs that Spark brings, and so fetches for nobody."""
_SECONDS = 120


@dataclass(frozen=True)
class Metastore:
    """A server that runs."""

    uri: str

    def conf(self, warehouse: Path) -> dict[str, str]:
        """What a session of Spark is told, to have it as its catalog."""
        return {
            "spark.sql.catalogImplementation": "hive",
            "spark.hadoop.hive.metastore.uris": self.uri,
            "spark.sql.hive.metastore.version": VERSION,
            "spark.sql.hive.metastore.jars": "maven",
            "spark.sql.warehouse.dir": str(warehouse),
        }


@contextmanager
def hive_metastore(folder: Path) -> Iterator[Metastore]:
    """Run a server over a database of its own in a folder; it is fetched once on a machine."""
    cache = cache_directory(os.environ)
    java = wrap_java(find_java(os.environ), cache)
    resolve = spark_resolver(_SPARK_HOME, java, {}, _NOT_FETCHED)
    jars = provide_folder(
        cache / "jars" / f"hive-metastore-{VERSION}", "Hive's metastore", _COORDINATES, resolve
    )
    shipped = [jar for name in _SHIPPED for jar in sorted((_SPARK_HOME / "jars").glob(f"{name}.jar"))]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "metastore.log"
    database = f"jdbc:derby:;databaseName={folder / 'metastore'};create=true"
    settings = {
        "javax.jdo.option.ConnectionURL": database,
        "metastore.warehouse.dir": str(folder / "warehouse"),
        "datanucleus.schema.autoCreateAll": "true",
        "metastore.schema.verification": "false",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.event.db.notification.api.auth": "false",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    command = [java / "bin" / "java", *options, "-cp", os.pathsep.join(map(str, [*shipped, *jars])),
               "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]  # fmt: skip
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder)
    with stopping(process):
        wait_for(lambda: _listens(port), _SECONDS, "Hive Metastore", log)
        yield Metastore(f"thrift://127.0.0.1:{port}")


def _listens(port: int) -> str | None:
    with socket.socket() as tried:
        return "yes" if tried.connect_ex(("127.0.0.1", port)) == 0 else None
