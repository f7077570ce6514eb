"""Reads JSON lines as Debezium writes them: events of a database, each with its row before and after."""

from pyspark.sql import DataFrame, SparkSession

from storage.sources.ambiguous_rows import ask
from storage.sources.column_preview import json_objects, names_of
from storage.sources.files import FoundFile
from storage.sources.formats.source_format import Ranges
from storage.sources.formats.text_format import TextFormat
from storage.sources.text_lines import read_lines
from transforms.model.specs import TableSpec
from transforms.parsing.ambiguity import Answer
from transforms.parsing.debezium import parse_debezium
from transforms.parsing.debezium_envelope import SEQUENCE_NAMES
from transforms.parsing.options import ParseOptions
from transforms.parsing.questions import of_events, questions
from transforms.parsing.schema_drift import event_rows


class Debezium(TextFormat):
    """Events as they go through a topic, or their values alone."""

    envelope = SEQUENCE_NAMES
    truncates = True
    has_key_beside = True
    is_flat = False

    def columns_of(self, file: FoundFile) -> list[str]:
        """Look at the last state of each event's row, wherever the envelope is wrapped."""
        return names_of(map(_row, json_objects(file)))

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each line as an event."""
        return parse_debezium(read_lines(spark, ranges), table, options)

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, begun: bool
    ) -> list[Answer]:
        """Ask of values and columns, and of what orders events and whose they are."""
        rows = of_events(read_lines(spark, ranges), options)
        return ask(rows, questions(table, options, events=True, begun=begun))

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read the row after each event."""
        return event_rows(read_lines(spark, ranges), options)


def _row(event: object) -> object:
    value = event.get("value", event) if isinstance(event, dict) else None
    if isinstance(value, dict) and "payload" in value:
        value = value["payload"]
    return (value.get("after") or value.get("before")) if isinstance(value, dict) else None
