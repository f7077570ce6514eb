"""Proposes joins: a column of a table whose values are among the keys of another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakejoin.orchestration.proposals.keys import is_there, singular
from lakejoin.orchestration.proposals.names import free_name
from lakejoin.orchestration.proposals.tables import Table

_ENOUGH = 0.9
"""The share of values that must be among the keys where no name speaks for a join."""
_DISTINCT = 3
"""How many different values there must be then."""


@dataclass(frozen=True)
class Join:
    """A join as it is proposed."""

    left: str
    right: str
    foreign_key: tuple[str, ...]
    prefix: str
    name: str
    found: int
    """How many different values of the foreign key are among the keys of the right table."""
    values: int
    """How many there are."""

    @property
    def note(self) -> str:
        """What the samples say for the join."""
        columns = ", ".join(self.foreign_key)
        return (
            f"{self.found:,} of {self.values:,} values of {self.left}.{columns} in the sample "
            f"({self.found / self.values:.0%}) are keys of {self.right}"
        )


def joins_of(tables: Sequence[Table]) -> list[Join]:
    """Return the joins that names and values speak for, those of a left table after each other."""
    found: list[Join] = []
    for left in tables:
        for right in tables:
            if left.name != right.name:
                found += _between(left, right)
    # of two tables with the same key, one is the right side of the other
    both = {(join.left, join.right) for join in found if join.foreign_key == _by_name(tables)[join.left].key}
    dropped = {(left, right) for left, right in both if (right, left) in both and left > right}
    return _named([join for join in found if (join.left, join.right) not in dropped], _by_name(tables))


def _by_name(tables: Sequence[Table]) -> Mapping[str, Table]:
    return {table.name: table for table in tables}


def _between(left: Table, right: Table) -> Iterator[Join]:
    keys = _values(right, right.key)
    for columns in _candidates(left, right):
        values = _values(left, columns)
        among = len(values & keys)
        speaks = len(columns) > 1 or speaks_for(columns[0], right.name, right.key[0])
        is_text = all(left.columns[column].type == "string" for column in columns)
        believed = is_text and len(values) >= _DISTINCT and among >= _ENOUGH * len(values)
        if among and (speaks or believed):
            yield Join(left.name, right.name, columns, "", "", among, len(values))


def _candidates(left: Table, right: Table) -> Iterator[tuple[str, ...]]:
    """Columns of the left table that have the types of the right key."""
    wanted = [right.columns[column].type for column in right.key]
    if len(wanted) > 1:
        if all(column in left.columns for column in right.key) and left.key != right.key:
            yield right.key
        return
    for column, said in left.columns.items():
        if said.type == wanted[0]:
            yield (column,)


def _values(table: Table, columns: tuple[str, ...]) -> set[tuple[Any, ...]]:
    """The different values of columns in the sample, as texts, for one source has numbers where another has texts."""
    rows = ([row.get(column) for column in columns] for row in table.rows)
    return {tuple(map(str, values)) for values in rows if all(map(is_there, values))}


def speaks_for(column: str, table: str, key: str) -> bool:
    """Tell whether the name of a column says that it refers to the key of a table.

    >>> speaks_for("customer_id", "customers", "id"), speaks_for("tailnum", "planes", "tailnum")
    (True, True)
    >>> speaks_for("seats", "planes", "id"), speaks_for("id", "customers", "id")
    (False, False)
    """
    name, key, one = column.lower(), key.lower(), singular(table)
    if name == key:
        return key not in {"id", "_id", "key", "code", "name"}
    plain = name.removesuffix("id").removesuffix("key").removesuffix("code").removesuffix("no").rstrip("_")
    return (
        plain in {one, table}
        or name.endswith((f"_{one}", f"_{one}_id"))
        or (len(key) > 3 and name.endswith(f"_{key}"))
    )


def _named(joins: Sequence[Join], tables: Mapping[str, Table]) -> list[Join]:
    """The joins with names and prefixes that nothing else has."""
    named: list[Join] = []
    taken = set(tables)
    for join in joins:
        name, several = f"{join.left}_with_{join.right}", [
            other for other in joins if (other.left, other.right) == (join.left, join.right)
        ]  # fmt: skip
        word = singular(join.right)
        if len(several) > 1:
            name, word = f"{name}_by_{'_'.join(join.foreign_key).lower()}", "_".join(join.foreign_key).lower()
        name = free_name(
            "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in name)[:60], taken
        )
        taken.add(name)
        prefix = f"{word}_"
        left = {column.lower() for column in tables[join.left].columns}
        others = iter([f"{join.right}_", *(f"right_{number}_" for number in range(1, len(left) + 2))])
        while any(f"{prefix}{column}".lower() in left for column in tables[join.right].columns):
            prefix = next(others)
        named.append(Join(join.left, join.right, join.foreign_key, prefix, name, join.found, join.values))
    return named
