"""Reads JSON lines as Debezium writes them: events of a database, each with its row before and after."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.formats.source_format import NO_CSV, NO_OP, Ranges
from lakejoin.storage.sources.formats.text_format import JsonFormat
from lakejoin.storage.sources.formats.text_records import LineRecords
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.debezium import members, take_apart
from lakejoin.transforms.parsing.debezium_envelope import SEQUENCE_NAMES
from lakejoin.transforms.parsing.options import ParseOptions, Parts
from lakejoin.transforms.parsing.questions import Members
from lakejoin.transforms.parsing.row_ops import RowOp
from lakejoin.transforms.parsing.schema_drift import event_rows


class DebeziumRecords(LineRecords):
    """Events as they go through a topic, or their values alone."""

    not_for = NO_OP | NO_CSV
    envelope: Sequence[str] = SEQUENCE_NAMES
    truncates = True
    has_key_beside = True
    has_rows = False

    def row_of(self, record: Any, row_op: RowOp) -> Any:
        """The last state of an event's row, wherever the envelope is wrapped."""
        value = record.get("value", record) if isinstance(record, dict) else None
        if isinstance(value, dict) and "payload" in value:
            value = value["payload"]
        return (value.get("after") or value.get("before")) if isinstance(value, dict) else None

    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Read each line as an event."""
        return [take_apart(self.lines(spark, options, ranges), table, options)]

    def may_describe(self, options: ParseOptions) -> bool:
        """An event may come with its schema."""
        return True

    def members(self, table: TableSpec, options: ParseOptions) -> Members:
        """The row after an event has names of its own."""
        return members(table, options)

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read the row after each event."""
        return event_rows(self.lines(spark, options, ranges), options)


class Debezium(DebeziumRecords, JsonFormat):
    """Files of events."""

    is_flat = False
