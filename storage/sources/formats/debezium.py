"""Reads JSON lines as Debezium writes them: events of a database, each with its row before and after."""

from pyspark.sql import DataFrame, SparkSession

from storage.sources.column_preview import json_objects, names_of
from storage.sources.files import FoundFile
from storage.sources.formats.source_format import NO_CSV, NO_OP, Ranges
from storage.sources.formats.text_format import TextFormat
from storage.sources.text_lines import read_lines
from transforms.model.specs import TableSpec
from transforms.parsing.debezium import members, take_apart
from transforms.parsing.debezium_envelope import SEQUENCE_NAMES
from transforms.parsing.options import ParseOptions, Parts
from transforms.parsing.questions import Members
from transforms.parsing.row_ops import RowOp
from transforms.parsing.schema_drift import event_rows


class Debezium(TextFormat):
    """Events as they go through a topic, or their values alone."""

    not_for = NO_OP | NO_CSV
    envelope = SEQUENCE_NAMES
    truncates = True
    has_key_beside = True
    is_flat = False
    has_rows = False

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the last state of each event's row, wherever the envelope is wrapped."""
        return names_of(map(_row, json_objects(file)))

    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Read each line as an event."""
        return [take_apart(read_lines(spark, ranges), table, options)]

    def may_describe(self, options: ParseOptions) -> bool:
        """An event may come with its schema."""
        return True

    def members(self, table: TableSpec, options: ParseOptions) -> Members:
        """The row after an event has names of its own."""
        return members(table, options)

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read the row after each event."""
        return event_rows(read_lines(spark, ranges), options)


def _row(event: object) -> object:
    value = event.get("value", event) if isinstance(event, dict) else None
    if isinstance(value, dict) and "payload" in value:
        value = value["payload"]
    return (value.get("after") or value.get("before")) if isinstance(value, dict) else None
