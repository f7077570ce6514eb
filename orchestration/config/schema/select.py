"""Reads the `select` of a join: which columns its result has."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql.types import DataType, StructType

from lakejoin.orchestration.config.problems import listed
from lakejoin.orchestration.config.schema.expression_types import Columns, unknown_column
from lakejoin.orchestration.config.schema.expressions import referenced_columns, type_by_rule
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec, Selected
from lakejoin.transforms.model.schemas import quoted
from lakejoin.transforms.model.specs import JoinSpec, StarSpec, StreamJoinSpec

Pair = TypeVar("Pair", JoinSpec, StreamJoinSpec)
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


def with_selected(spec: Pair, select: Sequence[Entry] | None, where: str | None) -> Pair:
    """A join with one right side, with the columns that its result has, and its condition."""
    return replace(spec, select=_selected_of(spec, select), where=_condition_of(spec, where))


def with_result(
    spec: JoinSpec, select: Sequence[Entry] | None, where: str | None, *, of_join: bool
) -> JoinSpec:
    """The same of a join of tables, with those columns of its sides that it reads for them.

    `of_join`: the left side is a join itself.
    """
    made = with_selected(spec, select, where)
    return made if select is None else _of_what_is_read(made, _read(made), of_join=of_join)


def star_with_result(
    spec: StarSpec, select: Sequence[Entry] | None, where: str | None, *, of_join: bool
) -> StarSpec:
    """The same of a star."""
    columns = _selected_of(spec, select)
    rights = tuple(replace(part, select=columns) for part in spec.rights)
    made = replace(spec, select=columns, where=_condition_of(spec, where), rights=rights)
    if select is None:
        return made
    read = _read(made)
    rights = tuple(_of_what_is_read(part, read, of_join=of_join) for part in rights)
    left = rights[0]
    return replace(made, rights=rights, left_columns=left.left_columns, left_whole=left.left_whole)


def _selected_of(spec: ResultSpec, select: Sequence[Entry] | None) -> tuple[Selected, ...] | None:
    if select is None:
        return None
    types: Columns = {field.name: field.dataType for field in spec.pair_columns}
    return tuple(_selected(column, types) for column in chosen(select, types))


def _condition_of(spec: ResultSpec, where: str | None) -> str | None:
    return None if where is None else as_sql([where], spec.pair_columns.names)[0]


def sources_of(spec: ResultSpec) -> dict[str, list[tuple[str, str]]]:
    """What each column of a result is made of, as the names of tables, streams or joins and of their columns."""
    pair = {name: (spec.left, name) for name in spec.left_columns.names}
    if isinstance(spec, GroupSpec):
        by = {entry.name: [entry.sql] for entry in spec.by}
        texts = by | {entry.name: [*entry.expressions] for entry in spec.aggregates}
        return {name: [pair[read] for read in referenced_columns(found)] for name, found in texts.items()}
    for part in spec.parts:
        pair |= {part.prefix + name: (part.right, name) for name in part.right_columns.names}
    if spec.select is None:
        return {name: [source] for name, source in pair.items()}
    return {entry.name: [pair[name] for name in referenced_columns([entry.sql])] for entry in spec.select}


def _selected(column: Chosen, types: Columns) -> Selected:
    dtype = type_of_value(column.text, types)
    assert dtype is not None, "all types are known once the file was checked"
    (sql,) = as_sql([column.text], types)
    return Selected(column.name, dtype, sql, column.text if column.text in types else None)


def _read(spec: ResultSpec) -> set[str]:
    """The columns of its rows that a join reads: for its result and its condition, and its keys."""
    texts = [
        *[entry.sql for entry in spec.select or ()], *filter(None, [spec.where]),
        *spec.foreign_key_texts,
    ]  # fmt: skip
    right_keys = [part.prefix + name for part in spec.parts for name in part.right_key]
    return {*spec.left_key, *referenced_columns(texts), *right_keys}


def _of_what_is_read(spec: JoinSpec, read: Collection[str], *, of_join: bool) -> JoinSpec:
    left = StructType([field for field in spec.left_columns if field.name in read])
    right = StructType([field for field in spec.right_columns if spec.prefix + field.name in read])
    return replace(
        spec,
        left_columns=left,
        right_columns=right,
        left_whole=of_join or len(left) == len(spec.left_columns),
        right_whole=len(right) == len(spec.right_columns),
    )
