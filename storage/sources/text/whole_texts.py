"""Reads and counts the records of files of JSON that are read whole, for a record need not have a line of its own."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.filesystem import spark_path
from lakejoin.storage.sources.planned.planned_file import PlannedFile, sizes
from lakejoin.storage.sources.rows.line_numbers import number_pieces
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW
from lakejoin.transforms.parsing.json_pieces import is_cut_off, pieces_in, record_of, single_rows

_TEXT = "value"


def read_pieces(spark: SparkSession, ranges: Sequence[PlannedFile], lists: Sequence[str] = ()) -> DataFrame:
    """Read records: position, context, raw. Raises `SourceError`.

    `lists`: members of a record that hold a row for each that a statement changed; each such row is a record.
    """
    sizes(ranges)
    scan = _scan(spark, [part.path for part in ranges])
    return number_pieces(scan, _records(lists), ranges).select(
        POSITION, CONTEXT, record_of(F.col(RAW)).alias(RAW)
    )


def count_pieces(spark: SparkSession, path: str, lists: Sequence[str] = ()) -> int:
    """Count the records of a file as reading it will number them. Raises `SourceBroken` for one that is cut off."""
    counted = _scan(spark, [path]).select(
        F.size(_records(lists)).alias("count"), is_cut_off(F.col(_TEXT)).alias("cut")
    )
    found = counted.first()
    if found is None:
        return 0
    if found["cut"]:
        raise SourceBroken(
            f"{path}: ends within a list that has no `]`, so that records may be missing; put the whole file there"
        )
    return int(found["count"])


def _records(lists: Sequence[str]) -> Column:
    pieces = pieces_in(F.col(_TEXT))
    return F.flatten(F.transform(pieces, lambda piece: single_rows(piece, lists))) if lists else pieces


def _scan(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    # `text` sets `wholetext` itself, whatever an option says
    return spark.read.text([spark_path(path) for path in paths], wholetext=True, recursiveFileLookup=True)
