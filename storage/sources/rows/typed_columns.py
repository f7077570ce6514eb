"""Reads rows of files that have a schema: columns by name, each as the file has it, then as its table declares it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, StructField, StructType, TimestampNTZType, TimestampType

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import named
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.flat_rows import take_rows_apart
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.typed_values import from_nanos
from lakejoin.transforms.parsing.validation import finish_records


@dataclass(frozen=True)
class Stored:
    """The type of a column of a file."""

    read: DataType
    """What Spark reads it as."""
    meant: DataType
    """What its values are, where Spark reads times as something else: as counts of nanoseconds, or as if they had a
    zone."""


Columns = Mapping[str, Stored]


def declared_of(table: TableSpec, options: ParseOptions) -> tuple[str, ...]:
    """The names of the columns that are read: those of the table, and those that say what a row does."""
    return (*table.as_written.columns.names, *options.row_op.columns)


def found_in(path: str, there: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield those of the names that a file has. Raises `SourceBroken` where another differs in capitals only."""
    for name in dict.fromkeys(names):
        same = [other for other in there if other.lower() == name.lower()]
        if name in same and len(same) > 1:
            raise SourceBroken(f"{path}: Spark cannot tell the columns {same} apart; rename all but one")
        if name in same:
            yield name


def types_of(there: Sequence[str], columns: Columns) -> dict[str, DataType | None]:
    """By the names that a file has, what the values of those columns are; None for others."""
    return dict.fromkeys(there) | {name: stored.meant for name, stored in columns.items()}


def read_as(columns: Columns) -> StructType:
    """The schema that Spark reads columns by."""
    return StructType([StructField(name, stored.read) for name, stored in columns.items()])


def parse_files(
    table: TableSpec,
    options: ParseOptions,
    ranges: Sequence[PlannedFile],
    columns_of: Callable[[str, Sequence[str]], Columns],
    rows_of: Callable[[Columns, Sequence[PlannedFile]], DataFrame],
) -> list[DataFrame]:
    """Read files into records, one frame for those that have the same columns.

    `columns_of`: which of some names a file has, by its path; each file is asked once. `rows_of`: reads files by their
    columns into rows (position, context).
    """
    names = declared_of(table, options)
    found: dict[str, tuple[Columns, list[PlannedFile]]] = {}
    for part in ranges:
        columns = columns_of(part.path, names)
        found.setdefault(repr(columns), (columns, []))[1].append(part)
    return [parse_rows(rows_of(columns, parts), table, options, columns) for columns, parts in found.values()]


def parse_rows(rows: DataFrame, table: TableSpec, options: ParseOptions, columns: Columns) -> DataFrame:
    """Turn rows (position, context) that were read by their columns into records."""
    row = F.struct(*[named(name) for name in columns])
    raw = F.to_json(row, {"ignoreNullFields": "false"}) if columns else F.lit("{}")
    typed = {name: (_value(name, stored), stored.meant) for name, stored in columns.items()}
    return finish_records(take_rows_apart(rows, table, options, typed, raw), table)


def _value(name: str, stored: Stored) -> Column:
    column = named(name)
    match stored.read, stored.meant:
        case LongType(), TimestampType():
            return from_nanos(column)
        case LongType(), TimestampNTZType():
            return from_nanos(column).cast(stored.meant)
        case read, meant if read != meant:
            return column.cast(meant)
    return column
