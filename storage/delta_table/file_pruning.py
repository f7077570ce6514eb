"""Finds which files of a table, and which pages in them, may hold the keys of a batch; the others need not be read.

Delta keeps the least and the greatest value of a column in each file (Delta protocol, "Per-file Statistics"). Bases are
folded in ranges of their key, so each of their files holds one range. In a joined table new keys stand in new files. So
where the keys of a batch lie near each other, as those of new rows do, most files are passed over. Parquet keeps the
same of each page (Parquet format, "Page Index"). So where there are few keys, only pages that hold one are read,
wherever they lie.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import or_
from threading import Lock
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, IntegralType, StringType, StructType

from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.transforms.model.schemas import by_reference, named

WORTH_ROWS = 20_000_000
"""From so many rows in large files on it pays to ask: that takes a job, which is shorter than to read their keys."""
LARGE_FILE = 250_000
"""Rows of a file that is asked about. Smaller ones are read: they hold what recent batches added."""
MOST_RANGES = 200
"""So many are asked about one by one; of more files, neighbours together."""
MOST_VALUES = 2_000
"""So many keys are told to Parquet one by one. Each costs a task 0.1 to 0.2 ms, for each file."""
WORTH_VALUES = 2_000_000
"""From so many rows in large files on it pays to tell them: they are collected for that, by a job of its own."""
TOLD_TOGETHER = 250
"""So many values are one condition to Spark (`spark.sql.parquet.pushdown.inFilterThreshold`), of a longer one it tells
Parquet only the least and the greatest."""
SMALL_PAGES = {"parquet.page.row.count.limit": "2000"}
"""The rows of a page, for what is written to be looked up by its order; by default 20,000."""
BY_PAGES = {"parquet.filter.dictionary.enabled": "false"}
"""How Parquet is read by many values: it would look each up in a dictionary that it reads anew each time."""
_NULL = "null"

Count = Callable[[int, int], None]
"""Told how many files of a table are read, of how many."""


class FilesRead:
    """How many files the stages of a batch read of each table, and how many there were; several may tell it at once."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}
        self._lock = Lock()

    def add(self, table: str, read: int, held: int) -> None:
        """A table was read once more, so many files of so many."""
        with self._lock:
            counts = self._counts.setdefault(table, {"read": 0, "held": 0})
            counts["read"] += read
            counts["held"] += held

    @property
    def by_table(self) -> dict[str, dict[str, int]]:
        """The counts `read` and `held` of each table."""
        with self._lock:
            return {table: dict(counts) for table, counts in self._counts.items()}


def ignored(_read: int, _held: int) -> None:
    """Count nothing: the default of `count`."""


@dataclass(frozen=True)
class Few:
    """Keys that fit one task, by which a table is read."""

    keys: DataFrame
    column: str
    """A column of them and of the table, by which its files are ordered, if by any; of a struct its first field is."""
    most: int | None = None
    """At most so many, where that is known."""
    null_matches: bool = False
    """Whether a null in a key is a value like others; the bounds of a file say nothing of it."""

    def values(self) -> list[Any] | None:
        """The values of the column, or of its first field, each once; None where there are many, or none is sure.

        A text that is not UTF-8 would be another one in Python.
        """
        dtype = _first(self.column, self.keys.schema)[1]
        if self.most is None or self.most > MOST_VALUES or not _is_told(dtype):
            return None
        value = _value(self.column, self.keys.schema)
        sure = F.is_valid_utf8(value) if isinstance(dtype, StringType) else F.lit(True)
        found = self.keys.select(value, sure).limit(MOST_VALUES + 1).collect()
        if len(found) > MOST_VALUES or any(is_sure is False for _, is_sure in found):
            return None
        if self.null_matches and any(value is None for value, _ in found):
            return None
        return sorted({value for value, _ in found if value is not None})


@dataclass(frozen=True)
class Range:
    """The range of values that a file may hold; without bounds, any value."""

    rows: int
    least: Any
    greatest: Any

    @property
    def is_asked_about(self) -> bool:
        """Whether it is large enough, and says what it holds."""
        return self.rows >= LARGE_FILE and None not in (self.least, self.greatest)


def statistics_of(column: str, schema: StructType) -> str | None:
    """What delta-rs calls the statistics of a column, or of a struct's first field.

    None for types of which they are cut (times), made into others (decimals) or ordered otherwise (collations).
    """
    names, dtype = _first(column, schema)
    is_ordered_alike = isinstance(dtype, DateType) or _is_told(dtype)
    return ".".join(names) if is_ordered_alike and not any("." in name for name in names) else None


def _first(column: str, schema: StructType) -> tuple[list[str], DataType]:
    """The name and the type of a column, or of a struct's first field."""
    dtype = schema[column].dataType
    return (
        ([column, dtype.names[0]], dtype[0].dataType) if isinstance(dtype, StructType) else ([column], dtype)
    )


def _is_told(dtype: DataType) -> bool:
    """Whether a value of a type is the same in Python, where years before 1 and after 9999 are none."""
    return isinstance(dtype, IntegralType) or dtype == StringType()


def condition(few: Few, files: Sequence[Range], schema: StructType) -> tuple[list[bool], Column | None]:
    """Return for each file whether it may hold some of the keys, and what to ask of the rows of the others.

    `schema`: of the table. The condition is true of every row that has one of the keys, and of some more. It is None
    where it is not worth while to ask.
    """
    asked = [file for file in files if file.is_asked_about]
    worth = sum(file.rows for file in asked) >= WORTH_VALUES
    values = few.values() if worth else None
    if values is None:
        return holding(few, files), None
    value = _value(few.column, schema)
    together = [values[n : n + TOLD_TOGETHER] for n in range(0, len(values), TOLD_TOGETHER)]
    within = reduce(or_, [value.isin(some) for some in together], F.lit(False))
    return [not file.is_asked_about or _within(values, file) for file in files], within


def _within(values: Sequence[Any], file: Range) -> bool:
    """Whether a file's range has one of the values, which are in order."""
    place = bisect_left(values, file.least)
    return place < len(values) and values[place] <= file.greatest


def holding(few: Few, files: Sequence[Range]) -> list[bool]:
    """Return for each file whether it may hold some of the keys; true of all where it is not worth while to ask."""
    asked = sorted((n for n, file in enumerate(files) if file.is_asked_about), key=lambda n: files[n].least)
    if sum(files[n].rows for n in asked) < WORTH_ROWS:
        return [True] * len(files)
    size = -(-len(asked) // MOST_RANGES)
    groups = [asked[start : start + size] for start in range(0, len(asked), size)]
    value = _value(few.column, few.keys.schema)
    within = [
        value.between(_bound(files[group[0]].least), _bound(max(files[n].greatest for n in group)))
        for group in groups
    ]
    is_null = [value.isNull().alias(_NULL)] * few.null_matches
    inside = few.keys.select(*[is_within.alias(str(n)) for n, is_within in enumerate(within)], *is_null)
    found = aggregated(inside, *[F.bool_or(name).alias(name) for name in inside.columns])
    if few.null_matches and found[_NULL]:
        return [True] * len(files)
    passed_over = {n for number, group in enumerate(groups) if not found[str(number)] for n in group}
    return [n not in passed_over for n in range(len(files))]


def _value(column: str, schema: StructType) -> Column:
    name, *field = _first(column, schema)[0]
    return named(name)[field[0]] if field else named(name)


def _bound(value: Any) -> Column:
    # statistics of a joined table change with each batch: written into the code, they would be compiled anew
    if isinstance(value, date):  # PySpark writes years without leading zeros, which Java does not read
        return by_reference(F.lit(value.isoformat()).cast("date"))
    return by_reference(F.lit(value))
