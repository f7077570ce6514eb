"""Says where topics of Kafka are and how they are reached, for its two clients: Spark's, and the one without a JVM.

Passwords stand in no file: each client is handed them from the environment, and no plan, message or log has them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from lakejoin.storage.errors import SourceUnreadable
from lakejoin.storage.sources.planned.planned_file import TOPIC, PlannedFile

USERNAME, PASSWORD, KEY_PASSWORD = (
    f"LAKEJOIN_KAFKA_{name}" for name in ("USERNAME", "PASSWORD", "KEY_PASSWORD")
)
REGISTRY_USERNAME, REGISTRY_PASSWORD = (f"LAKEJOIN_REGISTRY_{name}" for name in ("USERNAME", "PASSWORD"))
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
Start = Literal["earliest", "latest"] | datetime | Mapping[int, int]
"""Where a topic is read from at first: its ends, a time, or an offset for each partition."""
_LOGIN = "org.apache.kafka.common.security"
_DIGITS = 5
"""Of the number of a partition in a name: a cluster has some hundred thousand partitions at most, a topic fewer."""


@dataclass(frozen=True)
class Security:
    """How a broker is spoken to."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    ca: str | None = None
    """A PEM file with the certificates that the broker's is signed by; None for those that the machine trusts."""
    certificate: str | None = None
    """A PEM file with a certificate and its private key, for brokers that ask for one."""


@dataclass(frozen=True)
class Topics:
    """Topics that are one source."""

    servers: str
    """Some brokers, as `host:port`, apart by commas."""
    names: tuple[str, ...]
    start: Start = "earliest"
    security: Security = Security()
    registry: str | None = None
    """Where schemas are that a record names by a number."""
    is_ordered: bool = field(default=False, compare=False)
    """Something else than the place of a record orders the changes of a key."""

    def path(self, topic: str) -> str:
        """A topic as messages and plans show it."""
        return f"{TOPIC}{self.servers}/{topic}"


def part_name(topic: str, partition: int) -> str:
    """What plans and positions call a partition: names of one topic sort as their numbers do."""
    return f"{topic}+{partition:0{_DIGITS}d}"


def partition_of(part: PlannedFile) -> tuple[str, int]:
    """The topic and partition of a part."""
    topic, _, number = part.name.rpartition("+")
    return topic, int(number)


def client_settings(topics: Topics, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings of the client without a JVM, secrets among them. Raises `SourceUnreadable`."""
    security, found = topics.security, {"bootstrap.servers": topics.servers}
    if security.protocol != "PLAINTEXT":
        found["security.protocol"] = security.protocol
    if security.mechanism is not None:
        username, password = _login(topics, environment)
        found |= {
            "sasl.mechanism": security.mechanism,
            "sasl.username": username,
            "sasl.password": password,
        }
    if security.ca is not None:
        found["ssl.ca.location"] = _file(topics, security.ca)
    if security.certificate is not None:
        path = _file(topics, security.certificate)
        found |= {"ssl.certificate.location": path, "ssl.key.location": path}
        if KEY_PASSWORD in environment:
            found["ssl.key.password"] = environment[KEY_PASSWORD]
    return found


def spark_options(topics: Topics, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the options of Spark's source, secrets among them. Raises `SourceUnreadable`."""
    security = topics.security
    found = {
        "kafka.bootstrap.servers": topics.servers,
        "kafka.isolation.level": "read_committed",
        "failOnDataLoss": "true",
    }
    if security.protocol != "PLAINTEXT":
        found["kafka.security.protocol"] = security.protocol
    if security.mechanism is not None:
        username, password = (_quoted(text) for text in _login(topics, environment))
        module = "plain.PlainLoginModule" if security.mechanism == "PLAIN" else "scram.ScramLoginModule"
        found |= {
            "kafka.sasl.mechanism": security.mechanism,
            "kafka.sasl.jaas.config": f"{_LOGIN}.{module} required username={username} password={password};",
        }
    if security.ca is not None:
        path = _file(topics, security.ca)
        found |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": path}
    if security.certificate is not None:
        path = _file(topics, security.certificate)
        found |= {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": path}
        if KEY_PASSWORD in environment:
            found["kafka.ssl.key.password"] = environment[KEY_PASSWORD]
    return found


def _login(topics: Topics, environment: Mapping[str, str]) -> tuple[str, str]:
    missing = [name for name in (USERNAME, PASSWORD) if not environment.get(name)]
    if missing:
        raise SourceUnreadable(
            f"{topics.path(topics.names[0])}: {' and '.join(missing)} are not set in the environment, which security "
            f"mechanism {topics.security.mechanism} needs; set them where Lakejoin runs"
        )
    return environment[USERNAME], environment[PASSWORD]


def _file(topics: Topics, path: str) -> str:
    if not Path(path).is_file():
        raise SourceUnreadable(
            f"{topics.path(topics.names[0])}: {path}: no such file, which security names; put the PEM file there"
        )
    return path


def _quoted(text: str) -> str:
    """A text as the configuration of a login takes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
