"""Tells where a column of a joined row comes from: a column of one of its sides, or an expression over some."""

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from lakejoin.orchestration.explain.explanation import Explanation, Finding, shown
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.specs import JoinSpec


def pair_columns(
    left: Mapping[str, Finding], rights: Mapping[JoinSpec, Explanation | None]
) -> dict[str, Finding]:  # fmt: skip
    """Return what the columns of a pair are, by their names in `ResultSpec.pair_columns`."""
    made = dict(left)
    for part, right in rights.items():
        for field in part.right_columns:
            why = right.answer if right else "the foreign key is null"
            absent = Finding(f"there is no row of {part.right} to take it from: {why}", {"value": None})
            made[part.prefix + field.name] = right.columns.get(field.name, absent) if right else absent
    return made


def column_of(join: ResultSpec, name: str, text: str | None, made: Mapping[str, Finding]) -> Finding:
    """Return where a column of a joined row comes from. `made`: what the columns of the pair are."""
    says = f"{name} of {join.name} is {shown(text)}"
    entry = next((entry for entry in join.select or () if entry.name == name), None)
    if entry is None or entry.column is not None:
        source = made.get(name if entry is None or entry.column is None else entry.column)
        return Finding(says, {"value": text}, () if source is None else (source,))
    names = {found.name.lower() for found in sqlglot.parse_one(entry.sql, read="spark").find_all(exp.Column)}
    used = [made[column] for column in join.pair_columns.names if column.lower() in names and column in made]
    return Finding(f"{says}, computed as {entry.sql}", {"value": text}, tuple(used))
