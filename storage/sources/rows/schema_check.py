"""Compares the columns of new source files with the declared ones, for a source with `on_schema_change: fail`.

The schema of Parquet, Avro and ORC files and of Delta tables stands in a footer, a header or a log. JSON and CSV have
none: their rows are read, once more than a batch does, and counted by file and column.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import DataType

from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.schema_drift import always_fits, facts, undeclared

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


def of_schema(
    place: str,
    schema: Mapping[str, DataType | None],
    table: TableSpec,
    options: ParseOptions,
    *,
    strict: bool,
) -> Iterator[Difference]:
    """Compare a schema with the declared columns: types of those that there are, and names of others."""
    for field in table.columns:
        expected, found = field.dataType.simpleString(), schema.get(field.name)
        if found is None:
            yield Difference(place, field.name, expected, "no such column")
        elif not always_fits(found, field.dataType):
            yield Difference(place, field.name, expected, found.simpleString())
    for name in undeclared(list(schema), table, options) if strict else ():
        yield Difference(place, name, "no such column (strict)", "one")


def of_rows(
    rows: DataFrame,
    table: TableSpec,
    options: ParseOptions,
    strict_files: int | None,
    *,
    may_lack: Sequence[str] = (),
) -> list[Difference]:
    """Compare what rows (position, entries) have with the declared columns.

    `strict_files`: how many files there are, if columns that are not declared count. `may_lack`: columns that no row
    need have.
    """
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
        for one in _of_file(file, found, table, options, may_lack, strict=strict)
    ]


def _of_file(
    file: str,
    found: dict[str | None, Row],
    table: TableSpec,
    options: ParseOptions,
    may_lack: Sequence[str],
    *,
    strict: bool,
) -> Iterator[Difference]:
    total = found[None]["rows"]
    for field in table.columns:
        expected, column = field.dataType.simpleString(), found.get(field.name)
        if column is None:
            if field.name not in may_lack:
                yield Difference(file, field.name, expected, f"no such column in any of {total:,} rows")
        elif column["values"] and not column["fits"]:
            text = f'"{column["misfit"]}", and none of {column["values"]:,} values fits'
            yield Difference(f"{file}:{column['line']}", field.name, expected, text)
    for name in undeclared([name for name in found if name], table, options) if strict else ():
        yield Difference(f"{file}:{found[name]['first']}", name, "no such column (strict)", "one")
