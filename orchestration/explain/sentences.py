"""Puts the values of rows into the words of sentences."""

from collections.abc import Mapping, Sequence

from pyspark.sql.types import StructType

from lakejoin.orchestration.explain.explanation import shown
from lakejoin.orchestration.explain.log_rows import Row, time_text, value_text
from lakejoin.transforms.model.schemas import POSITION, VALID_FROM, VALID_TO, is_internal


def place(row: Row) -> str:
    """Where a record stood: file and line, or topic, partition and offset."""
    position = row.get(POSITION, row)
    return f"{position['file']}:{position['line']}" if position and position["file"] else "no line of its own"


def shown_values(row: Row, columns: StructType) -> dict[str, str | None]:
    """Return the values of columns as `lakejoin show` writes them."""
    return {
        field.name: value_text(row[field.name], field.dataType)
        for field in columns
        if not is_internal(field.name)
    }


def listed(values: Mapping[str, str | None]) -> str:
    """Return columns with their values, as a sentence lists them."""
    return ", ".join(f"{name} {shown(text)}" for name, text in values.items())


def counted(number: int, what: str) -> str:
    """Return a number of things, as a sentence has it. `what`: one of them.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def some(first: Sequence[str], *, more: bool) -> str:
    """Return the first of some keys, as a sentence lists them."""
    return "; ".join(first) + (", …" if more else "")


def first_of(number: int, first: Sequence[str]) -> str:
    """Return the first of some keys, as a sentence lists them behind their number."""
    return f": {some(first, more=number > len(first))}" if first else ""


def valid(version: Row) -> str:
    """Return from when until when a version is valid."""
    end = "on" if version[VALID_TO] is None else f"until {time_text(version[VALID_TO])}"
    return f"from {time_text(version[VALID_FROM])} {end}"
