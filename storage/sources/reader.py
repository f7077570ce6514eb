"""Reads the parts of a source that a batch works on into records."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.formats.source_format import SourceFormat
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import empty
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions, records_schema


def read_records(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[PlannedFile],
    source_format: SourceFormat | None = None,
) -> DataFrame:  # fmt: skip
    """Read parts of a table's source by their format, as `transforms.parsing.options.records_schema` says.

    `source_format`: one that knows where its source is, by default the one that the options name.

    Every line in the ranges gives one record that is not derived, and the line before each range one more as
    context; what versions of a Delta table give, `storage.sources.change_data_feed.feed_reader` says. Raises
    `SourceError` for a file that is gone, shorter than planned or not of the format.
    """
    if not ranges:
        return empty(spark, records_schema(table))
    known = source_format or FORMATS[options.format].written_as(options.dialect)
    return known.read(spark, table, options, ranges)
