"""Writes down in SQL of DuckDB what a result is, over the current rows of what it is made of.

It shares no code with the engine: neither messages nor hashes, and none of Spark's expressions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DecimalType, FloatType, IntegralType, MapType, StructType

from lakejoin.orchestration.config.schema.standard_sql import translated
from lakejoin.storage.delta_log.arrow_query import identifier
from lakejoin.transforms.model.group_spec import Aggregate, GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec

_AGGREGATES = {"count": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max"}
_ALIAS = "left_row"


class Unverifiable(Exception):
    """A result is made by an expression that DuckDB may understand otherwise; the text says which."""


@dataclass(frozen=True)
class Recomputed:
    """A result as DuckDB computes it."""

    sql: str
    """Rows with the key and the columns that are compared."""
    columns: Sequence[str]
    """Those beside the key that are compared."""
    rounded: frozenset[str]
    """Those of them whose last digit may be another: averages."""
    left_out: Sequence[str]
    """Those that are not compared, and why."""


def recomputed(result: ResultSpec) -> Recomputed:
    """Return the SQL of a result over tables that are called as what it reads. Raises `Unverifiable`."""
    return _grouped(result) if isinstance(result, GroupSpec) else _joined(result)


def _joined(result: ResultSpec) -> Recomputed:
    left = [f"{_ALIAS}.{identifier(name)} AS {identifier(name)}" for name in result.left_columns.names]
    sides, rights = [], []
    for number, part in enumerate(result.parts):
        alias = f"right_row{number}"
        rights += [
            f"{alias}.{identifier(name)} AS {identifier(part.prefix + name)}"
            for name in part.right_columns.names
        ]
        equals = "IS NOT DISTINCT FROM" if part.null_refers else "="
        met = " AND ".join(
            f"({_sure(text, result.left_columns, 'its foreign key', _ALIAS)}) {equals} {alias}.{identifier(name)}"
            for text, name in zip(part.foreign_key, part.right_key, strict=True)
        )
        sides.append(f"{part.how} JOIN {identifier(part.right)} AS {alias} ON {met}")
    pairs = (
        f"SELECT {', '.join([*left, *rights])} FROM {identifier(result.left)} AS {_ALIAS} {' '.join(sides)}"
    )
    where = (
        "" if result.where is None else f" WHERE {_sure(result.where, result.pair_columns, 'its condition')}"
    )
    entries: dict[str, str | None] = {name: identifier(name) for name in result.columns.names}
    if result.select is not None:
        entries = {
            entry.name: identifier(entry.column)
            if entry.column
            else translated(entry.sql, result.pair_columns)
            for entry in result.select
        }
    return _compared(result, f"({pairs}){where}", entries, {}, frozenset())


def _grouped(group: GroupSpec) -> Recomputed:
    entries = {
        entry.name: identifier(entry.column)
        if entry.column
        else f"({_sure(entry.sql, group.left_columns, 'what its rows share')})"
        for entry in group.by
    }
    totals = {one.name: _aggregate(one, group.left_columns) for one in group.aggregates}
    rounded = {one.name for one in group.aggregates if one.function == "avg"}
    having = ""
    if group.having is not None:
        if lacking := [name for name, sql in totals.items() if sql is None]:
            raise Unverifiable(
                f"its condition, {group.having}: {', '.join(lacking)} cannot be computed surely"
            )
        having = f" WHERE {_sure(group.having, group.columns, 'its condition')}"
    whole = {**entries, **totals}
    made = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in whole.items() if sql is not None)
    rows = f"(SELECT {made} FROM {identifier(group.left)} GROUP BY {', '.join(entries.values())})"
    shown = {name: None if sql is None else identifier(name) for name, sql in whole.items()}
    reasons = {one.name: f"{one.function}({', '.join(one.arguments) or '*'})" for one in group.aggregates}
    return _compared(group, rows + having, shown, reasons, frozenset(rounded))


def _compared(
    result: ResultSpec,
    rows: str,
    entries: dict[str, str | None],
    reasons: dict[str, str],
    rounded: frozenset[str],
) -> Recomputed:
    texts = {entry.name: entry.sql for entry in result.select or ()} | reasons
    if lacking := [name for name in result.joined_key if entries[name] is None]:
        raise Unverifiable(f"its key, {', '.join(texts[name] for name in lacking)}")
    known = {name: sql for name, sql in entries.items() if sql is not None}
    listed = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in known.items())
    return Recomputed(
        f"SELECT {listed} FROM {rows}",
        [name for name in known if name not in result.joined_key],
        rounded,
        [f"{name}: {texts[name]}" for name, sql in entries.items() if sql is None],
    )


def _aggregate(one: Aggregate, columns: StructType) -> str | None:
    function = _AGGREGATES.get(one.function)
    arguments = [translated(text, columns) for text in one.arguments]
    if function is None or None in arguments or len(arguments) > 1 or not _is_sure(one):
        return None
    return f"{function}({arguments[0] if arguments else '*'})"


def _is_sure(one: Aggregate) -> bool:
    """Whether the aggregate has one right value: sums of floating-point numbers depend on the order of rows.

    Averages of decimals are rounded to a scale by Spark; nested values are in another order.
    """
    if one.function == "count" or one.of is None:
        return True
    if one.function in {"sum", "avg"}:
        exact = isinstance(one.of, IntegralType)
        return exact or (one.function == "sum" and isinstance(one.of, DecimalType))
    return not isinstance(one.of, ArrayType | MapType | StructType | FloatType)


def _sure(text: str, columns: StructType, what: str, table: str = "") -> str:
    found = translated(text, columns, table)
    if found is None:
        raise Unverifiable(f"{what}, {text}: DuckDB may understand it otherwise than Spark")
    return found
