"""Measures text files: what all formats of files share whose records are lines or rows of text."""

from pyspark.sql import DataFrame, SparkSession

from storage.sources.column_preview import json_objects, names_of, says_types
from storage.sources.files import FoundFile, MeasuredFile, changed
from storage.sources.fingerprint import FileContent, scan_text
from storage.sources.formats.file_format import FileFormat
from storage.sources.formats.source_format import Ranges
from storage.sources.formats.text_records import LineRecords, TextRecords
from storage.sources.limits import FileLimits
from storage.sources.text_lines import read_lines
from transforms.parsing.csv_dialect import CsvDialect
from transforms.parsing.options import ParseOptions
from transforms.parsing.row_ops import RowOp


class TextFormat(TextRecords, FileFormat):
    """A format of text, with a record a line unless fields may hold line ends."""

    dialect: CsvDialect | None = None
    """Of CSV, whose fields may hold line ends within quotes."""

    def scan(self, found: FoundFile, known: MeasuredFile | None, limits: FileLimits) -> FileContent:
        """Pass over a file's bytes. Raises `SourceChanged` where they do not begin with what is known."""
        boundary = known.size if known is not None else None
        content = scan_text(found.path, found.size, boundary=boundary, dialect=self.dialect, limits=limits)
        if known is not None:
            _check_appended(found, known, content)
        return content

    def says_types(self, ranges: Ranges) -> bool:
        """Look at the beginnings of some files."""
        return says_types([part.path for part in ranges])


class LineFormat(LineRecords, TextFormat):
    """A format of JSON, with a record a line."""

    def lines(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read lines of files."""
        return read_lines(spark, ranges)

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the first records."""
        return names_of(self.row_of(found, row_op) for found in json_objects(file))


def _check_appended(found: FoundFile, known: MeasuredFile, content: FileContent) -> None:
    if content.beginning != known.fingerprint:
        raise changed(found, f"differs within its first {known.size} bytes, which were read")
    ends_line = content.appended in {b"", b"\r\n"} or content.appended.startswith(b"\n")
    if content.continued or not (known.complete or ends_line):
        raise changed(found, f"line {known.lines} had no end when it was read, and has grown")
