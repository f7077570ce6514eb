"""Describes what a store reads: which tables hold its rows, and which columns are key, time, rank and value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lakejoin.storage.stores.scan.order import Between, Column

NONE: Mapping[Column, frozenset[Any]] = MappingProxyType({})


@dataclass(frozen=True)
class Source:
    """A Delta table at a version, or a part of it."""

    path: str
    version: int | None = None
    """None: the newest each time it is read."""
    where: Mapping[Column, frozenset[Any]] = field(default_factory=lambda: NONE)
    """Only rows that hold one of these values."""
    limits: Mapping[Column, Between] = field(default_factory=dict)
    """Only rows within these limits, which no null is: of a log, what a base does not hold yet."""
    named: Mapping[str, str] = field(default_factory=dict)
    """Columns of the store that have another name in this table."""

    def stored(self, column: Column) -> Column:
        """Return a column of the store as this table has it."""
        return (self.named.get(column[0], column[0]), *column[1:])


@dataclass(frozen=True)
class Shape:
    """The columns that a store reads, the same in all its tables."""

    key: tuple[Column, ...]
    times: tuple[Column, ...] = ()
    rank: tuple[Column, ...] = ()
    """Of several rows at one place, that with the greatest values here counts; nulls are least."""
    gone: Mapping[Column, frozenset[Any]] = field(default_factory=lambda: NONE)
    """A row with one of these values is a tombstone: it hides those before it, and itself."""
    columns: tuple[str, ...] = ()
    """Columns that are read of a row."""
    every: bool = False
    """Whether all rows at a place count, by rising rank."""

    @property
    def order(self) -> tuple[Column, ...]:
        """What rows are ordered by."""
        return (*self.key, *self.times)


def paths(names: Iterable[str]) -> tuple[Column, ...]:
    """Columns that are no fields of structs, by their names."""
    return tuple((name,) for name in names)


def dotted(column: Column) -> str:
    """A column as Parquet files and Delta's statistics name it."""
    return ".".join(column)
