"""Lists the formats of change data by the names under which they are declared."""

from lakejoin.storage.sources.database.queries import Query
from lakejoin.storage.sources.formats.avro import Avro
from lakejoin.storage.sources.formats.csv import Csv
from lakejoin.storage.sources.formats.debezium import Debezium
from lakejoin.storage.sources.formats.delta import Delta
from lakejoin.storage.sources.formats.jdbc import Jdbc
from lakejoin.storage.sources.formats.jsonl import Jsonl
from lakejoin.storage.sources.formats.kafka import VALUES, DebeziumTopic
from lakejoin.storage.sources.formats.orc import Orc
from lakejoin.storage.sources.formats.parquet import Parquet
from lakejoin.storage.sources.formats.source_format import SourceFormat
from lakejoin.storage.sources.kafka.topics import Topics

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
