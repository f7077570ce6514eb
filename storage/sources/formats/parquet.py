"""Reads Parquet files: flat rows of typed columns, one of which says what a row does."""

from functools import reduce

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from storage.filesystem import open_file_system
from storage.sources.ambiguous_rows import ask_typed
from storage.sources.files import FoundFile, MeasuredFile, changed
from storage.sources.fingerprint import FileContent, scan_parquet
from storage.sources.formats.file_format import FileFormat
from storage.sources.formats.source_format import NO_CSV, NO_LINES, OF_EVENTS, OF_MEMBERS, Asked, Ranges
from storage.sources.limits import FileLimits
from storage.sources.parquet_files import parquet_schema, parse_parquet
from storage.sources.planned_file import sizes
from storage.sources.schema_check import Difference, of_schema
from transforms.model.specs import TableSpec
from transforms.parsing.ambiguity import Answer
from transforms.parsing.options import ParseOptions
from transforms.parsing.row_ops import RowOp


class Parquet(FileFormat):
    """Rows with a schema, in files that are written once."""

    not_for = OF_EVENTS | OF_MEMBERS | NO_CSV | NO_LINES
    is_columnar = True

    def columns_of(self, file: FoundFile, row_op: RowOp) -> list[str]:
        """Look at the schema in the footer."""
        system, inner = open_file_system(file.path)
        try:
            return list(pq.read_schema(inner, filesystem=system).names)
        except (OSError, ValueError):
            return []

    def scan(self, found: FoundFile, known: MeasuredFile | None, limits: FileLimits) -> FileContent:
        """Pass over a file's bytes and read its footer; nothing can be added behind that."""
        content = scan_parquet(found.path, found.size, limits)
        if known is not None and content.fingerprint != known.fingerprint:
            raise changed(found, "has other content now")
        return content

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read files by their schemas."""
        sizes(ranges)
        return reduce(DataFrame.unionByName, parse_parquet(spark, table, options, ranges))

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Ask footers for names, and columns of whole numbers that are read as times."""
        declared = table.as_written.columns.names
        parts = [(part, parquet_schema(part.path, declared)) for part in ranges]
        return ask_typed(
            table, options, parts, lambda other, options: self.read(spark, other, options, ranges)
        )

    def differences(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, strict: bool
    ) -> list[Difference]:
        """Compare the schemas in the footers."""
        written = table.as_written
        found = ((part.name, parquet_schema(part.path, written.columns.names)) for part in ranges)
        return [
            one for name, schema in found for one in of_schema(name, schema, written, options, strict=strict)
        ]
