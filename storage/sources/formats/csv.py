"""Reads CSV files: flat rows below a header, with a column that says what a row does."""

import csv
import io
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.files.fingerprint import FileContent
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import Counted, FoundFile, MeasuredFile
from lakejoin.storage.sources.formats.source_format import NO_LINES, OF_EVENTS, OF_MEMBERS, Asked, Ranges
from lakejoin.storage.sources.formats.text_format import TextFormat
from lakejoin.storage.sources.planned.planned_file import sizes
from lakejoin.storage.sources.rows.ambiguous_rows import ask_columns
from lakejoin.storage.sources.text.column_preview import beginning
from lakejoin.storage.sources.text.csv_files import count_records, csv_rows, take_csv_apart
from lakejoin.storage.sources.text.csv_text import check_records, codec_name, read_header, records_of
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Answer
from lakejoin.transforms.parsing.csv_dialect import RFC_4180, CsvDialect
from lakejoin.transforms.parsing.options import ParseOptions, Parts
from lakejoin.transforms.parsing.row_ops import RowOp


class Csv(TextFormat):
    """Rows as in RFC 4180, whose fields may hold line ends: only the reader itself can count them."""

    not_for = OF_EVENTS | OF_MEMBERS | NO_LINES

    def __init__(self, dialect: CsvDialect = RFC_4180) -> None:
        self.dialect: CsvDialect = dialect

    def written_as(
        self, dialect: CsvDialect, *, one_per_line: bool = True, lists: Sequence[str] = ()
    ) -> "Csv":
        """CSV of that dialect."""
        return Csv(dialect)

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the header, or the names that are declared."""
        if self.dialect.names:
            return list(self.dialect.names)
        text = beginning(file, codec_name(self.dialect))
        try:
            return next(records_of(io.StringIO(text, newline=""), self.dialect), [])
        except csv.Error:
            return []

    def scan(self, found: FoundFile, known: MeasuredFile | None, limits: FileLimits) -> FileContent:
        """Pass over a file's bytes, and once more over its lines if quotes might make one record of very many."""
        content = super().scan(found, known, limits)
        if content.long_record:
            check_records(found.path, limits, self.dialect)
        return content

    def count(
        self, found: FoundFile, known: MeasuredFile | None, content: FileContent, spark: SparkSession | None
    ) -> Counted:
        """Count the records of a file that is new or has grown."""
        if not found.size:
            return Counted(content.lines)
        if known is not None and (spark is None or found.size == known.size):
            return Counted(known.lines, known.stray_quotes)
        if spark is None:
            raise ValueError(f"{found.path}: a CSV file that is read for the first time is counted by Spark")
        return count_records(spark, found.path, self.dialect)

    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Read files by their headers."""
        sizes(ranges)
        return take_csv_apart(spark, table, options, ranges)

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Ask headers for names, and rows for values."""
        headers = [
            (part, header.names) for part in ranges if (header := read_header(part.path, self.dialect)).names
        ]
        found = super().ambiguities(spark, table, options, ranges, records, begun=begun)
        return ask_columns(table, headers) + found

    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each whole record that is no delete."""
        return csv_rows(spark, options, ranges)
