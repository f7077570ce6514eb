"""Reads Avro files: flat rows, each a record of an object container file; one of its fields says what it does."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakejoin.storage.sources.avro.avro_blocks import check_avro
from lakejoin.storage.sources.avro.avro_files import avro_names, avro_schema, parse_avro
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.formats.source_format import Ranges
from lakejoin.storage.sources.formats.typed_format import TypedFormat
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions


class Avro(TypedFormat):
    """Records behind a header with their schema."""

    def count_rows(self, path: str, size: int, limits: FileLimits) -> int:
        """Walk through the blocks."""
        return check_avro(path, size, limits)

    def names(self, path: str) -> list[str]:
        """Look at the schema in the header."""
        return avro_names(path)

    def schema(
        self, spark: SparkSession, path: str, declared: Sequence[str]
    ) -> Mapping[str, DataType | None]:
        """Look at the header."""
        return avro_schema(spark, path, declared)

    def parse(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[DataFrame]:
        """Read files by their headers."""
        return parse_avro(spark, table, options, ranges)
