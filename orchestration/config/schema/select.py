"""Reads the `select` of a join: which columns its result has."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql.types import DataType, StructType

from orchestration.config.problems import listed
from orchestration.config.schema.expression_types import Columns, unknown_column
from orchestration.config.schema.expressions import referenced_columns, type_by_rule
from transforms.model.schemas import quoted
from transforms.model.specs import JoinSpec, Selected

Spec = TypeVar("Spec", bound=JoinSpec)
Entry = str | Mapping[str, str]
"""A column, `*`, `* except (…)`, or columns of the result with what each is."""
_STAR = re.compile(r"\*\s*(?:except\s*\((?P<but>[^()]*)\)\s*)?", re.IGNORECASE)
_SELECTED = "a selected value is a deterministic scalar expression over the two rows"


@dataclass(frozen=True)
class Chosen:
    """A column of a result, as the file chooses it."""

    name: str
    text: str
    """A column of the two rows, or SQL over them."""


def chosen(select: Sequence[Entry] | None, columns: Collection[str]) -> list[Chosen]:
    """The columns of a result, in their order; without `select` all that there are.

    `columns`: those of the left row, then the prefixed ones of the right row. Raises `ValueError` for a name that is
    none of them.
    """
    return [column for entry in select or ("*",) for column in _entry(entry, columns)]


def _entry(entry: Entry, columns: Collection[str]) -> list[Chosen]:
    if not isinstance(entry, str):
        return [Chosen(name, text) for name, text in entry.items()]
    if entry in columns:
        return [Chosen(entry, entry)]
    star = _STAR.fullmatch(entry.strip())
    if star is None:
        raise ValueError(f"{unknown_column(entry, columns)}; an expression needs a name: {{name: {entry}}}")
    but = [name.strip().strip("`") for name in (star["but"] or "").split(",") if name.strip()]
    for name in but:
        if name not in columns:
            raise ValueError(unknown_column(name, columns))
    return [Chosen(name, name) for name in columns if name not in but]


def type_of_value(text: str, columns: Columns) -> DataType | None:
    """The type of a selected value, None where a column's is not known. Raises `ValueError` for what may not be one."""
    dtype = type_by_rule(text, columns, _SELECTED)
    if dtype is None and text not in columns and None not in columns.values():
        raise ValueError(
            f"{text!r} has a type that only Spark can tell; say it, for the result has to keep it: "
            f"cast({text} as …)"
        )
    return dtype


def twice(names: Iterable[str]) -> list[str]:
    """The names that stand there twice, capitals apart."""
    seen, found = set[str](), list[str]()
    for name in names:
        if name.lower() in seen:
            found.append(name)
        seen.add(name.lower())
    return found


def missing_key(of_result: Sequence[Chosen], key: Iterable[str]) -> str | None:
    """What is said of key columns that a result lacks; None where it has them all."""
    there = {column.text for column in of_result}
    if lacking := [name for name in key if name not in there]:
        return (
            f"lacks {listed(lacking)} of the key; add it, under this or another name: {{name: {lacking[0]}}}"
        )
    return None


def as_sql(texts: Iterable[str], columns: Collection[str]) -> tuple[str, ...]:
    """Texts of the file as SQL: one that is the name of a column is that column, whatever signs it holds."""
    return tuple(quoted(text) if text in columns else text for text in texts)


def with_result(spec: Spec, select: Sequence[Entry] | None, where: str | None) -> Spec:
    """A join with the columns that its result has, and its condition."""
    names = spec.pair_columns.names
    where = None if where is None else as_sql([where], names)[0]
    if select is None:
        return replace(spec, where=where)
    types: Columns = {field.name: field.dataType for field in spec.pair_columns}
    columns = [_selected(column, types) for column in chosen(select, names)]
    return replace(spec, select=tuple(columns), where=where)


def sources_of(spec: JoinSpec) -> dict[str, list[tuple[str, str]]]:
    """What each column of a result is made of, as the names of tables, streams or joins and of their columns."""
    pair = {name: (spec.left, name) for name in spec.left_columns.names}
    pair |= {spec.prefix + name: (spec.right, name) for name in spec.right_columns.names}
    if spec.select is None:
        return {name: [source] for name, source in pair.items()}
    return {entry.name: [pair[name] for name in referenced_columns([entry.sql])] for entry in spec.select}


def _selected(column: Chosen, types: Columns) -> Selected:
    dtype = type_of_value(column.text, types)
    assert dtype is not None, "all types are known once the file was checked"
    (sql,) = as_sql([column.text], types)
    return Selected(column.name, dtype, sql, column.text if column.text in types else None)


def of_what_is_read(spec: JoinSpec, *, of_join: bool) -> JoinSpec:
    """A join of tables with those columns of its sides that it reads. `of_join`: the left one is a join itself."""
    if spec.select is None:
        return spec
    read = {*spec.left_key, *referenced_columns(spec.foreign_key)}
    read |= {spec.prefix + name for name in spec.right_key}
    read |= {*referenced_columns(entry.sql for entry in spec.select)}
    read |= {*referenced_columns(filter(None, [spec.where]))}
    left = StructType([field for field in spec.left_columns if field.name in read])
    right = StructType([field for field in spec.right_columns if spec.prefix + field.name in read])
    return replace(
        spec,
        left_columns=left,
        right_columns=right,
        left_whole=of_join or len(left) == len(spec.left_columns),
        right_whole=len(right) == len(spec.right_columns),
    )
