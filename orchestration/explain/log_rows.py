"""Reads the rows of a key from the tables of a lake, at the versions of a snapshot and without a JVM."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql.types import BinaryType, DataType, StringType, StructType, TimestampNTZType, TimestampType

from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.explain.explanation import shown
from lakejoin.orchestration.show.key_ranges import json_array, part_text, typed_part
from lakejoin.orchestration.show.row_texts import text_of
from lakejoin.storage.delta_log.arrow_query import identifier, query, text_literal
from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan

Row = dict[str, Any]
MOST = 10
"""How many records, messages or answers of a key are read: the newest."""


@dataclass(frozen=True)
class Key:
    """Values of the columns of a key."""

    columns: StructType
    values: tuple[Any, ...]

    @property
    def texts(self) -> list[str | None]:
        """Each value as `lakejoin show` writes it."""
        return [
            value_text(value, column.dataType)
            for value, column in zip(self.values, self.columns, strict=True)
        ]

    def __str__(self) -> str:
        """Return the values as people read them."""
        return ", ".join(map(shown, self.texts))

    def among(self, names: Sequence[str], struct: str = "") -> str:
        """Return the SQL condition that columns, or fields of a struct, have these values."""
        conditions = [
            f"{place} IS NULL" if value is None else f"{place} = {_literal(value, column.dataType)}"
            for name, value, column in zip(names, self.values, self.columns, strict=True)
            for place in [f"{identifier(struct)}[{text_literal(name)}]" if struct else identifier(name)]
        ]
        return " AND ".join(conditions)

    def in_struct(self, struct: str) -> str:
        """Return the condition that a struct has the fields of this key with these values."""
        return self.among(self.columns.names, struct)


@dataclass(frozen=True)
class Logs:
    """The tables of a lake as a finished batch left them."""

    lake: Lake
    plan: Plan
    raw: Callable[[str, Row], str] | None = None
    """Gives the text of a record of a table or stream, where that is asked for."""

    @property
    def batch(self) -> int:
        """Number of that batch."""
        return self.plan.batch - 1

    def has(self, table: str) -> bool:
        """Whether a table was there."""
        return table in self.plan.versions

    def rows(
        self, table: str, columns: Iterable[str], where: str, *, last_by: Sequence[str] = (), most: int = MOST
    ) -> list[Row]:
        """Return the rows that a condition holds for, of many the last ones in an order, in that order.

        columns: names, or SQL that ends in `AS name`. Raises `LakeUnusable` and `LakeInconsistent`.
        """
        newest_first = ", ".join(f"{text} DESC NULLS LAST" for text in last_by)
        order = f"ORDER BY {newest_first} LIMIT {most}" if last_by else f"LIMIT {most}"
        found = self.ask(table, f"SELECT {', '.join(map(_column, columns))} FROM rows WHERE {where} {order}")
        return found[::-1] if last_by else found

    def count(self, table: str, where: str) -> int:
        """Return how many rows a condition holds for."""
        found = self.ask(table, f"SELECT count(*) AS n FROM rows WHERE {where}")
        return int(found[0]["n"]) if found else 0

    def ask(self, table: str, sql: str) -> list[Row]:
        """Return what SQL makes of a table, which it calls `rows`; nothing of one that was not there."""
        if not self.has(table):
            return []
        path = self.lake.path(table)
        with reading_table(path):
            found = query(sql, {"rows": opened(path, self.plan.versions[table])}).read_all()
        rows: list[Row] = found.to_pylist(maps_as_pydicts="lossy")
        return rows


def key_of(option: str, text: str, columns: StructType, *, nulls: bool = False) -> Key:
    """Return the key that an option has: a value, or a JSON array of the values of several columns.

    nulls: whether null is a value like others. Raises `WrongUsage`.
    """
    elements = json_array(text) if len(columns) > 1 or (nulls and text.startswith("[")) else [text]
    if elements is None or len(elements) != len(columns):
        raise WrongUsage(
            f"{option} {text!r}: expected a JSON array of {', '.join(columns.names)}, such as "
            f"'[{', '.join('...' for _ in columns)}]'"
        )
    values: list[Any] = []
    for element, column in zip(elements, columns, strict=True):
        if element is None and nulls:
            values.append(None)
            continue
        values.append(typed_part(option, text, part_text(option, text, element), column))
    return Key(columns, tuple(values))


def value_text(value: Any, kind: DataType) -> str | None:
    """Return a value as `lakejoin show` writes it; None for null."""
    return None if value is None else text_of(value, kind)


def time_text(value: datetime) -> str:
    """Return a time as `lakejoin show` writes it."""
    return text_of(value, TimestampType()) or ""


def _column(text: str) -> str:
    return text if " AS " in text else identifier(text)


def _literal(value: Any, kind: DataType) -> str:
    """Return a value as a literal of DataFusion's SQL, of the type that the column has."""
    match kind:
        case StringType():
            return text_literal(value)
        case BinaryType():
            return f"decode('{value.hex()}', 'hex')"
        case TimestampType():
            return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case TimestampNTZType():
            return f"arrow_cast('{value.isoformat()}', 'Timestamp(Microsecond, None)')"
    return f"CAST('{value}' AS {_SQL_NAMES.get(kind.typeName(), kind.simpleString())})"


_SQL_NAMES = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
