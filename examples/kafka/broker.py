"""Runs a Kafka broker of one's own on the loopback address: one JVM, broker and controller, its data in a folder.

Its JARs come from Maven Central once, as those of Delta do; what Spark ships of them is taken from there.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lakejoin.storage.spark.jars import cache_directory, provide_folder, spark_resolver
from lakejoin.storage.spark.java import find_java, wrap_java

VERSION = "4.3.1"
_SPARK_HOME = Path(pyspark.__file__).parent
_SHIPPED = ("jackson-*", "scala-library-*", "scala-reflect-*", "slf4j-api-*", "log4j-*")
_NOT_FETCHED = ("com.fasterxml*:*", "org.scala-lang*:*", "org.slf4j*:*", "org.apache.logging*:*")
_START_SECONDS, _STOP_SECONDS = 60, 20
_CLUSTER = "bGFrZWpvaW4tZXhhbXBsZQ"
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
num.network.threads=1
num.io.threads=2
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=8388608
log.retention.check.interval.ms=1000
"""
_LOGGING = """\
<Configuration status="off"><Appenders><Console name="out"><PatternLayout pattern="%d %p %c %m%n"/></Console>
</Appenders><Loggers><Root level="warn"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


@dataclass
class Broker:
    """A broker that may be stopped and started again with what it holds."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """Properties beside our own, which they replace."""
    port: int = 0
    """Where it listens; by default any that is free."""
    _controller: int = 0
    _process: "subprocess.Popen[bytes] | None" = None

    @property
    def servers(self) -> str:
        """Where it is: what `bootstrap_servers` says."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers. Raises `JarsNotFound`, `JavaNotFound`, `TimeoutError`."""
        classpath, java = _classpath()
        properties = self.folder / "server.properties"
        if not self._controller:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.port, self._controller = self.port or free_port(), free_port()
            text = _PROPERTIES.format(port=self.port, controller=self._controller, folder=self.folder)
            said = dict(line.split("=", 1) for line in text.splitlines()) | dict(self.settings)
            properties.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
            (self.folder / "log4j2.xml").write_text(_LOGGING)
            arguments = ["format", "-t", _CLUSTER, "-c", str(properties), "--standalone"]
            self._run(java, classpath, "kafka.tools.StorageTool", *arguments).wait()
        self._process = self._run(java, classpath, "kafka.Kafka", str(properties))
        self._wait()

    def stop(self) -> None:
        """Stop it; what it holds stays in its folder."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _run(self, java: Path, classpath: str, main: str, *arguments: str) -> "subprocess.Popen[bytes]":
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        options.append(f"-Dlog4j2.configurationFile={self.folder}/log4j2.xml")
        with (self.folder / "log.txt").open("ab") as log:
            command = [str(java / "bin" / "java"), *options, "-cp", classpath, main, *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _wait(self) -> None:
        end = time.monotonic() + _START_SECONDS
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        while time.monotonic() < end and self._process is not None and self._process.poll() is None:
            try:
                admin.list_topics(timeout=2)
            except KafkaException:
                time.sleep(0.2)
            else:
                return
        log = (self.folder / "log.txt").read_text(errors="replace")
        self.stop()
        raise TimeoutError(f"the broker does not answer on port {self.port}:\n{log[-3000:]}")


@contextmanager
def broker(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A broker that runs until the block ends."""
    started = Broker(folder, settings or {})
    started.start()
    try:
        yield started
    finally:
        started.stop()


def _classpath() -> tuple[str, Path]:
    """The JARs of the broker, and the Java that runs them."""
    cache = cache_directory(os.environ)
    java = wrap_java(find_java(os.environ), cache)
    resolve = spark_resolver(_SPARK_HOME, java, {}, _NOT_FETCHED)
    coordinates = [f"org.apache.kafka:kafka_2.13:{VERSION}"]
    jars = provide_folder(cache / "jars" / f"kafka-broker-{VERSION}", "Kafka's broker", coordinates, resolve)
    shipped = [jar for name in _SHIPPED for jar in sorted((_SPARK_HOME / "jars").glob(f"{name}.jar"))]
    return ":".join(map(str, [*jars, *shipped])), java


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
