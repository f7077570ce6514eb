"""Lists the formats of change data by the names under which they are declared."""

from storage.sources.formats.csv import Csv
from storage.sources.formats.debezium import Debezium
from storage.sources.formats.delta import Delta
from storage.sources.formats.jsonl import Jsonl
from storage.sources.formats.parquet import Parquet
from storage.sources.formats.source_format import SourceFormat

FORMATS: dict[str, SourceFormat] = {
    "debezium": Debezium(),
    "jsonl": Jsonl(),
    "csv": Csv(),
    "parquet": Parquet(),
    "delta": Delta(),
}
