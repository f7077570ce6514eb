"""Compares two tables of DuckDB by key, cell by cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lakejoin.storage.delta_log.arrow_query import identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Kind = Literal["missing", "extra", "doubled", "different"]
MOST = 10
"""How many differences of each kind are told one by one."""
_CLOSE = 1e-9
"""How much of its value an average may differ by: its last digit is rounded."""


@dataclass(frozen=True)
class Difference:
    """A row in which two tables differ."""

    kind: Kind
    """`missing`: only the first one has it; `extra`: only the second; `doubled`: the second has several of its key."""
    key: Mapping[str, Any]
    cells: Mapping[str, tuple[Any, Any]]
    """Of a `different` row each column that differs, in the first table and in the second."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "kind": self.kind,
            "key": {name: _text(value) for name, value in self.key.items()},
            "cells": {name: [_text(a), _text(b)] for name, (a, b) in self.cells.items()},
        }


@dataclass(frozen=True)
class Comparison:
    """What was found."""

    rows: int
    """Of the second table, that were compared."""
    kinds: Mapping[Kind, int]
    """How many rows differ, by how."""
    columns: Mapping[str, int]
    """How many rows differ in each column, where any does."""
    first: Sequence[Difference]
    """The first of each kind by key."""

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not any(self.kinds.values())

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "rows": self.rows,
            "equal": self.equal,
            "kinds": dict(self.kinds),
            "columns": dict(self.columns),
            "first": [one.plain() for one in self.first],
        }


def compare(
    connection: "DuckDBPyConnection", tables: tuple[str, str], key: Sequence[str], columns: Sequence[str],
    rounded: frozenset[str] = frozenset(),
) -> Comparison:  # fmt: skip
    """Compare two tables that have these columns. Null equals null, and -0.0 equals 0.0.

    key: what identifies a row; `rounded`: columns of which a small part may differ.
    """
    # no declared column begins so
    sides = {side: f"_lj_{side}" for side in ("a", "b")}
    same_key = " AND ".join(_equal(name, "IS NOT DISTINCT FROM") for name in key)
    columns_of = {
        f"_lj_d{n}": f"_lj_there_a AND _lj_there_b AND {_differs(name, rounded=name in rounded)}"
        for n, name in enumerate(columns)
    }
    for n, name in enumerate(columns):
        columns_of |= {f"_lj_{side}{n}": f"{alias}.{identifier(name)}" for side, alias in sides.items()}
    for n, name in enumerate(key):
        shown = identifier(name)
        columns_of[f"_lj_k{n}"] = f"CASE WHEN _lj_there_b THEN _lj_b.{shown} ELSE _lj_a.{shown} END"
    any_differs = " OR ".join(f"_lj_d{n}" for n in range(len(columns))) or "false"
    kind = (
        "CASE WHEN _lj_there_b IS NULL THEN 'missing' WHEN _lj_there_a IS NULL THEN 'extra' "
        f"WHEN {any_differs} THEN 'different' END"
    )
    listed = ", ".join(f"{sql} AS {alias}" for alias, sql in columns_of.items())
    first, second = (
        f"(SELECT *, true AS _lj_there_{side} FROM {table}) AS {alias}"
        for (side, alias), table in zip(sides.items(), tables, strict=True)
    )
    met = f"SELECT _lj_there_a, _lj_there_b, {listed} FROM {first} FULL JOIN {second} ON {same_key}"
    connection.execute(
        f"CREATE TEMP TABLE _lj_met AS SELECT * FROM (SELECT *, {kind} AS _lj_kind FROM ({met})) "
        "WHERE _lj_kind IS NOT NULL"
    )
    return _found(connection, tables[1], key, columns)


def _found(
    connection: "DuckDBPyConnection", second: str, key: Sequence[str], columns: Sequence[str]
) -> Comparison:  # fmt: skip
    def ask(sql: str) -> list[tuple[Any, ...]]:
        return connection.execute(sql).fetchall()

    kinds: dict[Kind, int] = dict(ask("SELECT _lj_kind, count(*) FROM _lj_met GROUP BY _lj_kind"))
    listed = ", ".join(map(identifier, key))
    again = f"SELECT {listed} FROM {second} GROUP BY {listed} HAVING count(*) > 1"
    if doubled := ask(f"SELECT count(*) FROM ({again})")[0][0]:
        kinds["doubled"] = doubled
    first = [
        Difference("doubled", dict(zip(key, row, strict=True)), {})
        for row in ask(f"{again} ORDER BY {listed} LIMIT {MOST}")
    ]
    places = ", ".join(f"_lj_k{n}" for n in range(len(key)))
    each = f"row_number() OVER (PARTITION BY _lj_kind ORDER BY {places}) <= {MOST}"
    cursor = connection.execute(f"SELECT * FROM _lj_met QUALIFY {each} ORDER BY _lj_kind, {places}")
    names = [column[0] for column in cursor.description or ()]
    first += [
        _difference(dict(zip(names, values, strict=True)), key, columns) for values in cursor.fetchall()
    ]
    counted = ", ".join(f"count(*) FILTER (WHERE _lj_d{n})" for n in range(len(columns))) or "0"
    by_column = dict(zip(columns, ask(f"SELECT {counted} FROM _lj_met")[0], strict=False))
    rows = ask(f"SELECT count(*) FROM {second}")[0][0]
    return Comparison(rows, kinds, {name: count for name, count in by_column.items() if count}, first)


def _difference(row: Mapping[str, Any], key: Sequence[str], columns: Sequence[str]) -> Difference:
    different = [
        (n, name) for n, name in enumerate(columns) if row["_lj_kind"] == "different" and row[f"_lj_d{n}"]
    ]
    return Difference(
        row["_lj_kind"],
        {name: row[f"_lj_k{n}"] for n, name in enumerate(key)},
        {name: (row[f"_lj_a{n}"], row[f"_lj_b{n}"]) for n, name in different},
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _equal(name: str, operator: str) -> str:
    return f"_lj_a.{identifier(name)} {operator} _lj_b.{identifier(name)}"


def _differs(name: str, *, rounded: bool) -> str:
    differs = _equal(name, "IS DISTINCT FROM")
    if not rounded:
        return f"({differs})"
    a, b = f"_lj_a.{identifier(name)}", f"_lj_b.{identifier(name)}"
    near = f"abs({a} - {b}) <= {_CLOSE} * greatest(abs({a}), abs({b}))"
    return f"({differs} AND NOT coalesce({near}, false))"
