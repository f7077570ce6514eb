"""Reads files with a schema that are written once: what Parquet, Avro and ORC share."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakejoin.storage.errors import SourceError
from lakejoin.storage.sources.files.fingerprint import FileContent, scan_whole
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile, MeasuredFile, changed
from lakejoin.storage.sources.formats.file_format import FileFormat
from lakejoin.storage.sources.formats.source_format import (
    NO_CSV,
    NO_LINES,
    OF_EVENTS,
    OF_MEMBERS,
    Asked,
    Ranges,
)
from lakejoin.storage.sources.planned.planned_file import sizes
from lakejoin.storage.sources.rows.ambiguous_rows import ask_typed
from lakejoin.storage.sources.rows.schema_check import Difference, of_schema
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Answer
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.row_ops import RowOp


class TypedFormat(FileFormat):
    """Rows of typed columns; nothing is ever added to a file."""

    not_for = OF_EVENTS | OF_MEMBERS | NO_CSV | NO_LINES

    @abstractmethod
    def count_rows(self, path: str, size: int, limits: FileLimits) -> int:
        """Return how many rows a file has. Raises `SourceBroken`, and `SourceTooLarge` beyond the limits."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """Return the names of a file's columns. Raises `OSError`, `ValueError` or `SourceError`."""

    @abstractmethod
    def schema(
        self, spark: SparkSession, path: str, declared: Sequence[str]
    ) -> Mapping[str, DataType | None]:
        """Types of the declared columns that a file has, and names of its others. Raises `SourceBroken`."""

    @abstractmethod
    def parse(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[DataFrame]:
        """Read files into records, in as many frames as they differ. Raises `SourceBroken`."""

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the file's schema."""
        try:
            return self.names(file.path)
        except (OSError, ValueError, SourceError):
            return []

    def scan(self, found: FoundFile, known: MeasuredFile | None, limits: FileLimits) -> FileContent:
        """Pass over a file's bytes and count its rows; nothing may be added behind them."""
        content = scan_whole(found.path, found.size, self.count_rows, limits)
        if known is not None and content.fingerprint != known.fingerprint:
            raise changed(found, "has other content now")
        return content

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read files by their schemas."""
        sizes(ranges)
        return reduce(DataFrame.unionByName, self.parse(spark, table, options, ranges))

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Ask schemas for names, and columns of whole numbers that are read as times."""
        declared = table.as_written.columns.names
        parts = [(part, self.schema(spark, part.path, declared)) for part in ranges]
        return ask_typed(
            table, options, parts, lambda other, options: self.read(spark, other, options, ranges)
        )

    def differences(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, strict: bool
    ) -> list[Difference]:
        """Compare the schemas of the files."""
        written = table.as_written
        found = ((part.name, self.schema(spark, part.path, written.columns.names)) for part in ranges)
        return [
            one for name, schema in found for one in of_schema(name, schema, written, options, strict=strict)
        ]
