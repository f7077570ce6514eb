"""Reads Parquet files: flat rows of typed columns, one of which says what a row does."""

from collections.abc import Mapping, Sequence

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakejoin.storage.filesystem import open_file_system
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.formats.source_format import Ranges
from lakejoin.storage.sources.formats.typed_format import TypedFormat
from lakejoin.storage.sources.parquet.parquet_files import parquet_schema, parse_parquet
from lakejoin.storage.sources.parquet.parquet_size import check_parquet
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions


class Parquet(TypedFormat):
    """Rows with a schema in the footer."""

    is_columnar = True

    def count_rows(self, path: str, size: int, limits: FileLimits) -> int:
        """Look at the footer, and at the headers of pages."""
        return check_parquet(path, size, limits)

    def names(self, path: str) -> list[str]:
        """Look at the schema in the footer."""
        system, inner = open_file_system(path)
        return list(pq.read_schema(inner, filesystem=system).names)

    def schema(
        self, spark: SparkSession, path: str, declared: Sequence[str]
    ) -> Mapping[str, DataType | None]:
        """Look at the footer."""
        return parquet_schema(path, declared)

    def parse(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[DataFrame]:
        """Read files by the numbers that their rows have."""
        return parse_parquet(spark, table, options, ranges)
