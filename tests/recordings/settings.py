"""Says how Debezium is set in each recording, and in which form what it captured is written."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from recordings.engine import payload
from recordings.kafka import Kafka

NOTIFICATIONS = "notifications"
"""The topic in which Debezium says how far its snapshots are."""
_CONNECTORS = {
    "postgres": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "plugin.name": "pgoutput",
        "database.user": "postgres", "database.password": "none", "database.dbname": "postgres",
        "publication.autocreate.mode": "filtered", "signal.data.collection": "public.signals",
    },
    "mariadb": {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector", "database.user": "debezium",
        "database.password": "debezium", "database.include.list": "shop", "database.ssl.mode": "disable",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "signal.data.collection": "shop.signals", "snapshot.locking.mode": "none",
    },
}  # fmt: skip
_COMMON = {
    "topic.prefix": "shop", "database.hostname": "127.0.0.1", "snapshot.mode": "initial",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore", "offset.flush.interval.ms": "1000",
    "incremental.snapshot.chunk.size": "5", "notification.enabled.channels": "sink",
    "notification.sink.topic.name": NOTIFICATIONS, "tombstones.on.delete": "true",
}  # fmt: skip
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_AVRO = {
    **{
        f"{part}.converter{name}": value
        for part in ("key", "value")
        for name, value in (
            ("", "io.apicurio.registry.utils.converter.AvroConverter"), (".apicurio.registry.auto-register", "true"),
        )
    },
    "schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro",
}  # fmt: skip
_UNWRAP = {
    "transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
}  # fmt: skip


def _with_schemas(on: bool) -> dict[str, str]:
    return {
        f"{part}.converter{name}": value
        for part in ("key", "value")
        for name, value in (("", _JSON), (".schemas.enable", str(on).lower()))
    }


def _whole(line: str) -> str:
    """A whole record: its key and its value."""
    event = json.loads(line)
    return _compact({"key": event["key"], "value": event["value"]})


def _value(line: str) -> str:
    """The value alone, as console consumers print it."""
    return _compact(json.loads(line)["value"])


def _printed(line: str) -> str:
    """As `kcat -J` prints a record: key and value are texts."""
    event = json.loads(line)
    key, value = (None if part is None else _compact(part) for part in (event["key"], event["value"]))
    return _compact({"topic": event["topic"], "key": key, "payload": value})


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sent(line: str) -> str:
    """A record of Kafka: where the broker put it, its key and its value as they were sent, in base64."""
    event = json.loads(line)
    return _compact({name: event[name] for name in ("topic", "partition", "offset", "key", "value")})


def is_end_of_snapshot(line: str) -> bool:
    """Whether a line of the recorder says that an incremental snapshot has ended."""
    event = json.loads(line)
    if event["topic"] != NOTIFICATIONS:
        return False
    if isinstance(event["value"], str):  # Avro writes texts as they are
        said = base64.b64decode(event["value"])
        return b"Incremental Snapshot" in said and b"COMPLETED" in said
    said = payload(event["value"])
    return bool(said["aggregate_type"] == "Incremental Snapshot" and said["type"] == "COMPLETED")


@dataclass(frozen=True)
class Setting:
    """How one recording is made."""

    properties: Mapping[str, str]
    form: Callable[[str], str]
    """What becomes of a line of the recorder."""
    alone: bool = True
    """Events of each table have files of their own."""
    without: Iterable[str] = ()
    """Tables that this setting cannot capture."""
    in_kafka: bool = False
    """It is sent to a broker of Kafka, its schemas to a registry."""


SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    "postgres": {
        # what Debezium does when nothing is set
        "default": Setting(_with_schemas(on=True), _whole, alone=False),
        # its default types, rows without envelope and schema
        "unwrapped": Setting(
            {
                **_with_schemas(on=False),
                **_UNWRAP,
                "transforms.unwrap.add.fields": "op,lsn,source.ts_ms,table",
            },
            _value,
        ),
        # whatever can be a text is one
        "texts": Setting(
            {
                **_with_schemas(on=False),
                "decimal.handling.mode": "string",
                "time.precision.mode": "isostring",
                "interval.handling.mode": "string",
                "binary.handling.mode": "hex",
                "hstore.handling.mode": "map",
                "provide.transaction.metadata": "true",
            },
            _printed,
        ),
        # Kafka Connect's own types, and rows with their schema but without envelope
        "connect": Setting(
            {
                **_with_schemas(on=True),
                **_UNWRAP,
                "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
                "transforms.unwrap.add.fields": "op,lsn",
                "decimal.handling.mode": "double",
                "time.precision.mode": "connect",
                "binary.handling.mode": "base64-url-safe",
            },
            _value,
        ),
        # Avro in topics of Kafka; the schemas in the registry refer to others
        "avro": Setting({**_AVRO, "hstore.handling.mode": "map"}, _sent, in_kafka=True),
    },
    "mariadb": {
        "default": Setting(_with_schemas(on=True), _whole, alone=False),
        "unwrapped": Setting(
            {
                **_with_schemas(on=False),
                **_UNWRAP,
                "bigint.unsigned.handling.mode": "precise",
                "transforms.unwrap.add.fields": "op,source.file,source.pos,source.row,source.ts_ms",
            },
            _value,
        ),
        # each schema of Avro complete in itself
        "avro": Setting(
            {
                **_AVRO,
                **{
                    f"{part}.converter.apicurio.registry.dereference-schema": "true"
                    for part in ("key", "value")
                },
                "bigint.unsigned.handling.mode": "precise",
            },
            _sent,
            in_kafka=True,
        ),
    },
}


def properties(
    kind: str, name: str, port: int, tables: Iterable[str], folder: str, kafka: Kafka | None
) -> dict[str, str]:
    """The properties of an engine. `kafka`: needed by a setting that is sent there."""
    setting = SETTINGS[kind][name]
    schema = {"postgres": "public", "mariadb": "shop"}[kind]
    included = [f"{schema}.{table}" for table in tables if table not in setting.without]
    own = {"table.include.list": ",".join(included), "database.port": str(port)}
    if kind == "postgres":
        own |= {"slot.name": f"slot_{name}", "publication.name": f"publication_{name}"}
    else:
        server = 100 + list(SETTINGS[kind]).index(name)
        own |= {
            "topic.prefix": f"shop_{name}",  # metrics are registered by it
            "database.server.id": str(server),
            "schema.history.internal.file.filename": f"{folder}/{name}.history",
        }
    if setting.in_kafka:
        assert kafka is not None
        own |= {f"{part}.converter.apicurio.registry.url": kafka.registry for part in ("key", "value")}
        own |= {"producer.bootstrap.servers": kafka.servers}
    return {**_COMMON, **_CONNECTORS[kind], **own, **setting.properties}


def is_mark(line: str, number: int) -> bool:
    """Whether a line of the recorder is of the row with which a step ended."""
    event = json.loads(line)
    if not event["topic"].endswith(".marks"):
        return False
    if isinstance(event["key"], str):  # Avro doubles a small number, behind the number of the schema
        return base64.b64decode(event["key"])[5:] == bytes([2 * number])
    return bool(payload(event["key"]) == {"id": number})
