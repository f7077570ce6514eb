"""Lists the formats of change data by the names under which they are declared."""

from storage.sources.database.queries import Query
from storage.sources.formats.avro import Avro
from storage.sources.formats.csv import Csv
from storage.sources.formats.debezium import Debezium
from storage.sources.formats.delta import Delta
from storage.sources.formats.jdbc import Jdbc
from storage.sources.formats.jsonl import Jsonl
from storage.sources.formats.kafka import VALUES, DebeziumTopic
from storage.sources.formats.orc import Orc
from storage.sources.formats.parquet import Parquet
from storage.sources.formats.source_format import SourceFormat
from storage.sources.kafka.topics import Topics

FORMATS: dict[str, SourceFormat] = {
    "debezium": Debezium(),
    "jsonl": Jsonl(),
    "csv": Csv(),
    "parquet": Parquet(),
    "avro": Avro(),
    "orc": Orc(),
    "delta": Delta(),
    "kafka": DebeziumTopic(),
    "jdbc": Jdbc(),
}


def format_of(
    name: str, value: str | None = None, topics: Topics | None = None, query: Query | None = None
) -> SourceFormat:
    """Return a format by its name. `value`: of topics, what their values are; `topics`, `query`: of the source."""
    if query is not None:
        return Jdbc(query)
    is_topic = name == "kafka" and value in VALUES
    return VALUES[value or ""](topics) if is_topic else FORMATS[name]
