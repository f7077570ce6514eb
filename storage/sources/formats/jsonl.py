"""Reads JSON lines: each a flat row, with a member that says what the row does."""

from pyspark.sql import DataFrame, SparkSession

from storage.sources.column_preview import json_objects, names_of
from storage.sources.files import FoundFile
from storage.sources.formats.source_format import OF_EVENTS, Ranges
from storage.sources.formats.text_format import TextFormat
from storage.sources.text_lines import read_lines
from transforms.model.specs import TableSpec
from transforms.parsing.flat_rows import members, take_apart
from transforms.parsing.options import ParseOptions, Parts
from transforms.parsing.questions import Members
from transforms.parsing.schema_drift import json_rows


class Jsonl(TextFormat):
    """Rows as JSON objects."""

    not_for = OF_EVENTS
    is_one_object = True

    def columns_of(self, file: FoundFile) -> list[str]:
        """Look at the members of the first objects."""
        return names_of(json_objects(file))

    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Read each line as a row."""
        return [take_apart(read_lines(spark, ranges), table, options)]

    def members(self, table: TableSpec, options: ParseOptions) -> Members:
        """A row has names of its own."""
        return members(options)

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each whole line that is no delete."""
        return json_rows(read_lines(spark, ranges), options)
