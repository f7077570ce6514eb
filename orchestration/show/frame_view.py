"""Filters and sorts the rows of a table of the lake for `show`, with or without internal columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.show.key_ranges import json_array, part_text
from lakejoin.orchestration.spark_errors import reason_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import is_internal, named


@dataclass(frozen=True)
class View:
    """Rows that can be shown, filtered and sorted."""

    name: str
    rows: DataFrame
    key: Mapping[str, Column]
    """What identifies a row for its user, by name; empty where nothing does."""
    order: tuple[Column, ...]
    structs: tuple[str, ...] = ()
    """Columns that hold a key as a struct."""

    def where(self, condition: str) -> "View":
        """Keep the rows that an SQL condition holds for; it may use internal columns. Raises `WrongUsage`."""
        try:
            return replace(self, rows=self.rows.where(condition))
        except (AnalysisException, ParseException) as error:
            columns = ", ".join(self.rows.columns)
            raise WrongUsage(
                f"--where {condition!r}: {reason_of(error)}", f"columns of {self.name}: {columns}"
            ) from None

    def of_key(self, text: str) -> "View":
        """Keep the rows of a key: its text, or a JSON array of a composite one. Raises `WrongUsage`."""
        if not self.key:
            raise WrongUsage(f"{self.name} has no key; use --where")
        values = _key_values(self, text)
        types = self.rows.select(*self.key.values()).schema
        rows = self.rows
        for (name, column), value, field in zip(self.key.items(), values, types, strict=True):
            wanted = F.lit(value).try_cast(field.dataType)
            if rows.sparkSession.range(1).where(wanted.isNull()).head(1):
                expected = field.dataType.simpleString()
                raise WrongUsage(f"--key {text!r}: {name} is {expected}, found {value!r}")
            rows = rows.where(column == wanted)
        return replace(self, rows=rows)

    def shown(self, *, internal: bool) -> DataFrame:
        """Return the rows in the order of their key, with or without the internal columns."""
        columns = [name for name in self.rows.columns if internal or not is_internal(name)]
        return self.rows.orderBy(*self.order).select(*[named(name) for name in columns])


Open = Callable[[State], View]
"""Opens a table of a lake at the versions of a state."""


def _key_values(view: View, text: str) -> list[str]:
    values = [text] if len(view.key) == 1 else json_array(text)
    if values is None or len(values) != len(view.key):
        names = ", ".join(view.key)
        raise WrongUsage(f"--key {text!r}: the key of {view.name} is a JSON array of {names}")
    return [part_text("--key", text, value) for value in values]


def view_by_key(name: str, rows: DataFrame, key: tuple[str, ...], *then: Column) -> View:
    """Rows that columns of theirs identify: they are shown in the order of these, then of others."""
    columns = {column: named(column) for column in key}
    return View(name, rows, columns, (*columns.values(), *then))
