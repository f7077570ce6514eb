"""Finds which files of a table may hold the keys of a batch; the others need not be read.

Delta keeps the least and the greatest value of a column in each file (Delta protocol, "Per-file Statistics"). Bases are
folded in ranges of their key, so each of their files holds one range. In a joined table new keys stand in new files. So
where the keys of a batch lie near each other, as those of new rows do, most files are passed over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, IntegralType, StringType, StructType

from storage.spark.kept_frames import aggregated
from transforms.model.schemas import by_reference, named

WORTH_ROWS = 20_000_000
"""From so many rows in large files on it pays to ask: that takes a job, which is shorter than to read their keys."""
LARGE_FILE = 250_000
"""Rows of a file that is asked about. Smaller ones are read: they hold what recent batches added."""
MOST_RANGES = 200
"""So many are asked about one by one; of more files, neighbours together."""


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
    names, dtype = [column], schema[column].dataType
    if isinstance(dtype, StructType):
        names, dtype = [column, dtype.names[0]], dtype[0].dataType
    is_ordered_alike = isinstance(dtype, (IntegralType, DateType)) or dtype == StringType()
    return ".".join(names) if is_ordered_alike and not any("." in name for name in names) else None


def holding(few: Few, files: Sequence[Range]) -> list[bool]:
    """Return for each file whether it may hold some of the keys; true of all where it is not worth while to ask."""
    asked = sorted((n for n, file in enumerate(files) if file.is_asked_about), key=lambda n: files[n].least)
    if sum(files[n].rows for n in asked) < WORTH_ROWS:
        return [True] * len(files)
    size = -(-len(asked) // MOST_RANGES)
    groups = [asked[start : start + size] for start in range(0, len(asked), size)]
    value = _value(few)
    within = [
        value.between(_bound(files[group[0]].least), _bound(max(files[n].greatest for n in group)))
        for group in groups
    ]
    inside = few.keys.select(*[is_within.alias(str(n)) for n, is_within in enumerate(within)])
    found = aggregated(inside, *[F.bool_or(name).alias(name) for name in inside.columns])
    passed_over = {n for number, group in enumerate(groups) if not found[str(number)] for n in group}
    return [n not in passed_over for n in range(len(files))]


def _value(few: Few) -> Column:
    dtype = few.keys.schema[few.column].dataType
    value = named(few.column)
    return value[dtype.names[0]] if isinstance(dtype, StructType) else value


def _bound(value: Any) -> Column:
    # statistics of a joined table change with each batch: written into the code, they would be compiled anew
    if isinstance(value, date):  # PySpark writes years without leading zeros, which Java does not read
        return by_reference(F.lit(value.isoformat()).cast("date"))
    return by_reference(F.lit(value))
