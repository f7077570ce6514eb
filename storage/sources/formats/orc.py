"""Reads ORC files: flat rows of typed columns, one of which says what a row does."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.formats.source_format import Ranges
from lakejoin.storage.sources.formats.typed_format import TypedFormat
from lakejoin.storage.sources.orc.orc_files import orc_names, orc_schema, parse_orc
from lakejoin.storage.sources.orc.orc_size import check_orc
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions


class Orc(TypedFormat):
    """Rows with a schema in the footer."""

    is_columnar = True

    def count_rows(self, path: str, size: int, limits: FileLimits) -> int:
        """Look at the footer."""
        return check_orc(path, size, limits)

    def names(self, path: str) -> list[str]:
        """Look at the schema in the footer."""
        return orc_names(path)

    def schema(
        self, spark: SparkSession, path: str, declared: Sequence[str]
    ) -> Mapping[str, DataType | None]:
        """Look at the footer."""
        return orc_schema(path, declared)

    def parse(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[DataFrame]:
        """Read files by their footers."""
        return parse_orc(spark, table, options, ranges)
