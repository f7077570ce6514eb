"""Holds the columns of new source files against the declared ones, as a source with `on_schema_change: fail` wants.

The schema of Parquet files and Delta tables stands in a footer or a log. JSON and CSV have none: their rows are read,
once more than a batch does, and counted by file and column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import DataType

from storage.sources.csv_files import csv_rows
from storage.sources.files import FileRange
from storage.sources.parquet_files import parquet_schema
from storage.sources.reader import read_lines
from transforms.model.specs import TableSpec
from transforms.parsing.options import ParseOptions
from transforms.parsing.schema_drift import always_fits, facts, json_rows, undeclared

SHOWN = 20
"""How many undeclared columns are told of."""


@dataclass(frozen=True)
class Difference:
    """A column of a file that is not as declared."""

    place: str
    """The file, with a line where one shows it."""
    column: str
    expected: str
    found: str

    def __str__(self) -> str:
        """The difference as a part of a sentence."""
        return f"{self.place}: {self.column}: expected {self.expected}, found {self.found}"


def differences(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[FileRange], *, strict: bool
) -> list[Difference]:
    """Compare the columns of files, or of versions of a Delta table, with the declared ones.

    `strict`: columns that are not declared are differences, too. Raises `SourceError` for a file that cannot be read.
    """
    match options.format:
        case "parquet":
            found = ((part.name, parquet_schema(part.path, table.columns.names)) for part in ranges)
            return [one for name, schema in found for one in _of_schema(name, schema, table, strict=strict)]
        case "delta":
            path, version = ranges[-1].path, ranges[-1].to_line
            state = spark.read.format("delta").option("versionAsOf", version).load(path)
            schema: dict[str, DataType | None] = {field.name: field.dataType for field in state.schema}
            return list(_of_schema(f"{path} (version {version})", schema, table, strict=strict))
        case "csv":
            rows = csv_rows(spark, ranges)
        case _:
            rows = json_rows(read_lines(spark, ranges), options)
    return _of_rows(rows, table, options, len(ranges) if strict else None)


def _of_schema(
    place: str, schema: dict[str, DataType | None], table: TableSpec, *, strict: bool
) -> Iterator[Difference]:
    """`schema`: the types of the declared columns that there are, and the names of others."""
    for field in table.columns:
        expected, found = field.dataType.simpleString(), schema.get(field.name)
        if found is None:
            yield Difference(place, field.name, expected, "no such column")
        elif not always_fits(found, field.dataType):
            yield Difference(place, field.name, expected, found.simpleString())
    for name in undeclared(list(schema), table) if strict else ():
        yield Difference(place, name, "no such column (strict)", "one")


def _of_rows(
    rows: DataFrame, table: TableSpec, options: ParseOptions, strict_files: int | None
) -> list[Difference]:
    """`strict_files`: how many files there are, if columns that are not declared count."""
    counted, strict = facts(rows, table, options), strict_files is not None
    name = counted["name"]
    declared = name.isNull() | name.isin(table.columns.names)
    if strict_files is None:
        counted = counted.where(declared)
    else:
        most = strict_files * (len(table.columns) + 1) + SHOWN
        counted = counted.orderBy(~declared, "file", "first").limit(most)
    files: dict[str, dict[str | None, Row]] = {}
    for row in counted.collect():
        files.setdefault(row["file"], {})[row["name"]] = row
    return [
        one
        for file, found in sorted(files.items())
        for one in _of_file(file, found, table, options, strict=strict)
    ]


def _of_file(
    file: str, found: dict[str | None, Row], table: TableSpec, options: ParseOptions, *, strict: bool
) -> Iterator[Difference]:
    total = found[None]["rows"]
    for field in table.columns:
        expected, column = field.dataType.simpleString(), found.get(field.name)
        if column is None:
            # an event has its key beside the row, too
            if not (options.format == "debezium" and field.name in table.key):
                yield Difference(file, field.name, expected, f"no such column in any of {total:,} rows")
        elif column["values"] and not column["fits"]:
            text = f'"{column["misfit"]}", and none of {column["values"]:,} values fits'
            yield Difference(f"{file}:{column['line']}", field.name, expected, text)
    for name in undeclared([name for name in found if name], table) if strict else ():
        yield Difference(f"{file}:{found[name]['first']}", name, "no such column (strict)", "one")
