"""Measures text files: what all formats of files share whose records are lines or rows of text."""

from collections.abc import Sequence
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.files.fingerprint import FileContent, scan_text
from lakejoin.storage.sources.files.limits import WIDE, WIDE_TEXT, FileLimits
from lakejoin.storage.sources.files.source_files import Counted, FoundFile, MeasuredFile, changed
from lakejoin.storage.sources.formats.file_format import FileFormat
from lakejoin.storage.sources.formats.source_format import Ranges
from lakejoin.storage.sources.formats.text_records import LineRecords, TextRecords
from lakejoin.storage.sources.text.column_preview import json_objects, names_of, says_types
from lakejoin.storage.sources.text.text_lines import read_lines
from lakejoin.storage.sources.text.whole_texts import count_pieces, read_pieces
from lakejoin.transforms.parsing.csv_dialect import CsvDialect
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.row_ops import RowOp


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


class JsonFormat(LineRecords, TextFormat):
    """A format of JSON, with a record a line unless it is declared that they lie otherwise."""

    def __init__(self, *, one_per_line: bool = True, lists: Sequence[str] = ()) -> None:
        self.one_per_line, self._lists = one_per_line, lists

    def written_as(
        self, dialect: CsvDialect, *, one_per_line: bool = True, lists: Sequence[str] = ()
    ) -> Self:
        """Files of records that lie so."""
        return type(self)(one_per_line=one_per_line, lists=lists)

    def lines(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read the records of files."""
        return read_lines(spark, ranges) if self.one_per_line else read_pieces(spark, ranges, self._lists)

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the first records."""
        found = json_objects(file, one_per_line=self.one_per_line)
        return names_of(self.row_of(record, row_op) for record in found)

    def scan(self, found: FoundFile, known: MeasuredFile | None, limits: FileLimits) -> FileContent:
        """Pass over a file's bytes; what lies over several lines is read whole, and never grows."""
        if not self.one_per_line and known is not None and found.size > known.size:
            raise changed(found, "has grown, which only files of a record a line may")
        content = super().scan(found, known, limits)
        if not self.one_per_line:
            limits.check_memory(found.path, f"the file{WIDE_TEXT}", content.size * WIDE)
        return content

    def count(
        self, found: FoundFile, known: MeasuredFile | None, content: FileContent, spark: SparkSession | None
    ) -> Counted:
        """Count the lines, or else what Spark finds in them."""
        if self.one_per_line or not found.size:
            return super().count(found, known, content, spark)
        if known is not None:
            return Counted(known.lines)
        if spark is None:
            raise ValueError(f"{found.path}: a file that is read whole is counted by Spark the first time")
        return Counted(count_pieces(spark, found.path, self._lists))


def _check_appended(found: FoundFile, known: MeasuredFile, content: FileContent) -> None:
    if content.beginning != known.fingerprint:
        raise changed(found, f"differs within its first {known.size} bytes, which were read")
    ends_line = content.appended in {b"", b"\r\n"} or content.appended.startswith(b"\n")
    if content.continued or not (known.complete or ends_line):
        raise changed(found, f"line {known.lines} had no end when it was read, and has grown")
