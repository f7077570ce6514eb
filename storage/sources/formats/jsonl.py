"""Reads rows in JSON: each a flat row, or a record that holds one, with a member that says what the row does."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.formats.source_format import NO_CSV, OF_EVENTS, Ranges
from lakejoin.storage.sources.formats.text_format import JsonFormat
from lakejoin.storage.sources.formats.text_records import LineRecords
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.json_rows import members, take_apart
from lakejoin.transforms.parsing.options import ParseOptions, Parts
from lakejoin.transforms.parsing.questions import Members
from lakejoin.transforms.parsing.row_ops import RowOp
from lakejoin.transforms.parsing.schema_drift import json_rows

_NOT_FOR = {
    path: why for path, why in OF_EVENTS.items() if path not in {("tables",), ("snapshots",)}
} | NO_CSV


class JsonRecords(LineRecords):
    """Rows as JSON objects."""

    not_for = _NOT_FOR
    may_nest = True
    is_one_object = True

    def row_of(self, record: Any, row_op: RowOp) -> Any:
        """The row within the record, or the record."""
        row = record.get("payload", record) if row_op.wrapped and isinstance(record, dict) else record
        return row.get(row_op.row) if row_op.row is not None and isinstance(row, dict) else row

    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Read each line as a row."""
        return [take_apart(self.lines(spark, options, ranges), table, options)]

    def may_describe(self, options: ParseOptions) -> bool:
        """A row that was taken out of an event may still come with its schema."""
        return options.row_op.wrapped

    def members(self, table: TableSpec, options: ParseOptions) -> Members:
        """A row has names of its own."""
        return members(table, options)

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each whole line that is no delete."""
        return json_rows(self.lines(spark, options, ranges), options)


class Jsonl(JsonRecords, JsonFormat):
    """Files of rows."""
