"""Numbers the rows of text files by their line, without moving the rows.

Spark numbers rows within a task only. A task that reads one file from its start counts the lines as they are; for many
files, and for a large one that several tasks share, one small job counts what is read of each before.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.errors import SourceChanged
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW

_FILE, _BLOCK, _ID, _LINE = "_lj_file", "_lj_block", "_lj_id", "_lj_line"
_IN_TASK = (1 << 33) - 1
"""The part of `monotonically_increasing_id` that counts within a task."""
_LOCAL = re.compile("^file:/+")
_PLACES = (
    f"ARRAY<STRUCT<{_FILE}: STRING, {_BLOCK}: BIGINT, _lj_shift: BIGINT, _lj_date: DATE, _lj_name: STRING, "
    "_lj_from_line: BIGINT, _lj_to_line: BIGINT>>"
)


@dataclass(frozen=True)
class _Place:
    """A block of a file: its rows have the number that Spark gave them, plus `shift`."""

    file: str
    block: int
    shift: int
    part: PlannedFile


def number_lines(scan: DataFrame, ranges: Sequence[PlannedFile], *, one_task: bool) -> DataFrame:
    """Put position and context beside the rows of a scan, and leave out those beyond the ranges.

    `scan`: what Spark reads of just these files. `one_task`: none of them is read by several tasks. The line
    before a range stays, as context. Raises `SourceChanged` for a file that has lost lines.
    """
    number = F.monotonically_increasing_id()
    if len(ranges) == 1 and one_task:
        numbered = _numbered(scan, number.bitwiseAND(F.lit(_IN_TASK)))
        return _in_ranges(numbered, [_Place("", 0, 1, ranges[0])])
    numbered = _numbered(scan, number)
    return _in_ranges(numbered, list(_count_blocks(numbered, ranges)))


def number_rows(scan: DataFrame, ranges: Sequence[PlannedFile]) -> DataFrame:
    """Do the same for Parquet files, which know the numbers of their rows."""
    numbered = _numbered(scan, F.col("_metadata.row_index"), F.lit(0).cast("bigint"))
    return _in_ranges(numbered, _whole_files(scan, ranges))


def number_pieces(scan: DataFrame, pieces: Column, ranges: Sequence[PlannedFile]) -> DataFrame:
    """Do the same for files that are each one row. `pieces`: an array of what each holds; one makes a row."""
    files = _numbered(scan, F.lit(0), F.lit(0).cast("bigint"))
    numbered = files.select(_FILE, _BLOCK, F.posexplode(pieces).alias(_ID, RAW))
    return _in_ranges(numbered, _whole_files(scan, ranges))


def _whole_files(scan: DataFrame, ranges: Sequence[PlannedFile]) -> list[_Place]:
    """A block for each file of a scan, in which rows are counted from 0."""
    by_path = {_without_scheme(part.path): part for part in ranges}
    files = [_without_scheme(file) for file in scan.inputFiles()]
    return [_Place(file, 0, 1, by_path[unquote(file)]) for file in files]


def _numbered(scan: DataFrame, number: Column, block: Column | None = None) -> DataFrame:
    start = F.col("_metadata.file_block_start") if block is None else block
    file = F.regexp_replace(F.col("_metadata.file_path"), _LOCAL.pattern, "/")
    return scan.select("*", file.alias(_FILE), start.alias(_BLOCK), number.alias(_ID))


def _count_blocks(numbered: DataFrame, ranges: Sequence[PlannedFile]) -> Iterator[_Place]:
    """Count the lines before each block, in its file and in its task."""
    counted = numbered.groupBy(_FILE, _BLOCK).agg(F.min(_ID).alias("first"), F.count("*").alias("rows"))
    blocks = sorted(counted.collect(), key=lambda block: (block[_FILE], block[_BLOCK]))
    by_path = {_without_scheme(part.path): part for part in ranges}
    lines = dict.fromkeys(by_path, 0)
    for block in blocks:
        path = unquote(block[_FILE])
        yield _Place(block[_FILE], block[_BLOCK], lines[path] - block["first"] + 1, by_path[path])
        lines[path] += block["rows"]
    for path, part in by_path.items():
        if lines[path] < part.to_line:
            raise SourceChanged(
                f"{part.path}: has {lines[path]} lines now, had {part.lines} when the batch was planned; put "
                "the old file back"
            )


def _in_ranges(numbered: DataFrame, places: Sequence[_Place]) -> DataFrame:
    if len(places) == 1:
        part = places[0].part
        shift, from_line, to_line = (F.lit(n) for n in (places[0].shift, part.from_line, part.to_line))
        day, name = F.lit(part.date).cast("date"), F.lit(part.name)
    else:
        numbered = numbered.join(F.broadcast(_table(numbered.sparkSession, places)), [_FILE, _BLOCK])
        shift, day, name, from_line, to_line = (
            F.col(f"_lj_{column}") for column in ("shift", "date", "name", "from_line", "to_line")
        )
    line = (F.col(_ID) + shift).alias("line")
    frame = numbered.withColumn(_LINE, line).where(
        F.col(_LINE).between(F.greatest(from_line, F.lit(1)), to_line)
    )
    return frame.withColumns(
        {
            POSITION: F.struct(day.alias("date"), name.alias("file"), F.col(_LINE).alias("line")),
            CONTEXT: F.col(_LINE) == from_line,
        }
    )


def _table(spark: SparkSession, places: Sequence[_Place]) -> DataFrame:
    """The places as a frame; `createDataFrame` would read them through a Python process at every use."""
    rows = [
        {
            _FILE: place.file,
            _BLOCK: place.block,
            "_lj_shift": place.shift,
            "_lj_date": place.part.date.isoformat() if place.part.date else None,
            "_lj_name": place.part.name,
            "_lj_from_line": place.part.from_line,
            "_lj_to_line": place.part.to_line,
        }
        for place in places
    ]
    return spark.range(1).select(
        F.inline(F.from_json(F.lit(json.dumps(rows)), _PLACES, {"mode": "FAILFAST"}))
    )


def _without_scheme(path: str) -> str:
    """A local path, however it is written; another URI as it is."""
    return _LOCAL.sub("/", path)
