"""Reads JSON lines: each a flat row, with a member that says what the row does."""

from pyspark.sql import DataFrame, SparkSession

from storage.sources.ambiguous_rows import ask
from storage.sources.column_preview import json_objects, names_of
from storage.sources.files import FoundFile
from storage.sources.formats.source_format import OF_EVENTS, Ranges
from storage.sources.formats.text_format import TextFormat
from storage.sources.text_lines import read_lines
from transforms.model.specs import TableSpec
from transforms.parsing.ambiguity import Answer
from transforms.parsing.flat_rows import parse_jsonl
from transforms.parsing.options import ParseOptions
from transforms.parsing.questions import of_json_rows, questions
from transforms.parsing.schema_drift import json_rows


class Jsonl(TextFormat):
    """Rows as JSON objects."""

    not_for = OF_EVENTS
    is_one_object = True

    def columns_of(self, file: FoundFile) -> list[str]:
        """Look at the members of the first objects."""
        return names_of(json_objects(file))

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each line as a row."""
        return parse_jsonl(read_lines(spark, ranges), table, options)

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, begun: bool
    ) -> list[Answer]:
        """Ask of values and columns."""
        rows = of_json_rows(read_lines(spark, ranges), options)
        return ask(rows, questions(table, options, events=False, begun=begun))

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each whole line that is no delete."""
        return json_rows(read_lines(spark, ranges), options)
