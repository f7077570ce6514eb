"""Translates declared groups for the stages: their columns, with what each is made of."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from pyspark.sql.types import StructType

from lakejoin.orchestration.config.schema.aggregates import aggregate
from lakejoin.orchestration.config.schema.expression_types import Columns, unknown_column
from lakejoin.orchestration.config.schema.expressions import referenced_columns, type_by_rule
from lakejoin.orchestration.config.schema.joins import Group
from lakejoin.orchestration.config.schema.select import Chosen, Entry, as_sql
from lakejoin.transforms.model.group_spec import Aggregate, GroupSpec
from lakejoin.transforms.model.result_spec import Selected

_RULE = "what rows have in common is a column or a deterministic scalar expression over a row"


def columns_of_key(by: Sequence[Entry]) -> list[Chosen]:
    """What the rows of a group have in common, as the file says it: the name of each column, and what it is."""
    return [
        column
        for entry in by
        for column in (
            [Chosen(entry, entry)]
            if isinstance(entry, str)
            else [Chosen(name, text) for name, text in entry.items()]
        )
    ]


def key_column(column: Chosen, columns: Columns) -> Selected | None:
    """A column of the key as the stages take it; None where a type is not known. Raises `ValueError`.

    `columns`: of a row.
    """
    if column.name == column.text and column.text not in columns:
        raise ValueError(
            f"{unknown_column(column.text, columns)}; an expression needs a name: {{name: {column.text}}}"
        )
    dtype = type_by_rule(column.text, columns, _RULE)
    if dtype is None and None not in columns.values():
        raise ValueError(
            f"{column.text!r} has a type that only Spark can tell; say it: cast({column.text} as …)"
        )
    if dtype is None:
        return None
    (sql,) = as_sql([column.text], columns)
    return Selected(column.name, dtype, sql, column.text if column.text in columns else None)


def as_group(
    name: str, group: Group, columns: StructType, row_key: tuple[str, ...], *, of_join: bool
) -> GroupSpec:
    """Declared groups as the stages take them.

    `columns`, `row_key`: of what is grouped; `of_join`: it is a join, or groups, itself.
    """
    types: Columns = {field.name: field.dataType for field in columns}
    by = [key for column in columns_of_key(group.by) if (key := key_column(column, types))]
    aggregates = [value for own, text in group.select.items() if (value := aggregate(own, text, types))]
    read = _read(by, aggregates, row_key)
    kept = StructType([field for field in columns if field.name in read])
    spec = GroupSpec(
        name=name,
        left=group.of,
        left_columns=kept,
        left_key=row_key,
        by=tuple(by),
        aggregates=tuple(aggregates),
        changelog=group.changelog,
        history=group.history_spec,
        left_whole=of_join or len(kept) == len(columns),
    )
    having = None if group.having is None else as_sql([group.having], spec.columns.names)[0]
    return replace(spec, having=having)


def _read(by: Sequence[Selected], aggregates: Sequence[Aggregate], key: Collection[str]) -> set[str]:
    texts = [*[entry.sql for entry in by], *[text for entry in aggregates for text in entry.expressions]]
    return {*key, *referenced_columns(texts)}
