"""Tells which expressions of the configuration may fail for a record of a batch, and which for rows that are none."""

from collections.abc import Iterable

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.expressions import referenced_columns, renamed
from lakejoin.storage.lake.plan import Plan
from lakejoin.transforms.model.expressions import RowExpression, may_raise
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.specs import JoinSpec


def of_joins(pipeline: Pipeline, plan: Plan, name: str) -> list[RowExpression]:
    """What the joins of a batch compute of a table or stream alone, and what may raise for one of its records.

    That is foreign keys, and what is selected or asked for by the columns of one side. A value of both sides is
    computed when they meet (`transforms.model.selection`).
    """
    specs = [pipeline.spec_of_join(join) for join in plan.joins]
    left = [key for spec in specs if spec.left == name for key in (*_foreign_keys(spec), *_of_left(spec))]
    return [
        *left,
        *[
            result
            for spec in specs
            for part in spec.parts
            if part.right == name
            for result in _of_right(spec, part)
        ],
    ]


def _of_left(spec: ResultSpec) -> list[RowExpression]:
    return [result for result in _results(spec) if set(result.columns) <= set(spec.left_columns.names)]


def _of_right(spec: ResultSpec, part: JoinSpec) -> list[RowExpression]:
    """Those over the columns of one right side, by the names that these have in their table."""
    names = {part.prefix + name: name for name in part.right_columns.names}
    return [
        RowExpression(result.role, renamed(result.text, names), tuple(names[c] for c in result.columns))
        for result in _results(spec)
        if set(result.columns) <= names.keys()
    ]


def _results(spec: ResultSpec) -> list[RowExpression]:
    if isinstance(spec, GroupSpec):
        texts = [(entry.name, text) for entry in spec.aggregates for text in entry.expressions]
        return _of_records((f"{name} of {spec.name}", text) for name, text in texts)
    selected = [(f"select of {spec.name}", entry.sql) for entry in spec.select or () if entry.column is None]
    condition = [] if spec.where is None else [(f"where of {spec.name}", spec.where)]
    return _of_records([*selected, *condition])


def foreign_key_not_asked(pipeline: Pipeline, plan: Plan, name: str) -> list[RowExpression]:
    """The foreign keys of a join, as far as it may raise for left rows that no batch has refused for it.

    Those are the rows that a join begins with, those of another join, and those of a table whose records may leave
    values out: a record is asked before it has them.
    """
    spec = pipeline.spec_of_join(name)
    left = pipeline.inputs.get(spec.left)
    all_asked = left is not None and not left.leaves_values_out and name not in plan.bootstrap
    return [] if all_asked else _foreign_keys(spec)


def conditions(pipeline: Pipeline, name: str) -> list[RowExpression]:
    """What the records of a table or stream must meet, as far as it may raise for one of them."""
    asked = pipeline.inputs[name].asked
    return [] if asked is None else _that_may_raise([asked])


def _foreign_keys(spec: ResultSpec) -> list[RowExpression]:
    what = "by" if isinstance(spec, GroupSpec) else "foreign key"
    return _of_records((f"{what} of {part.name}", text) for part in spec.parts for text in part.foreign_key)


def _of_records(expressions: Iterable[tuple[str, str]]) -> list[RowExpression]:
    """Those of some expressions, by their role, that may raise for one record and not for another."""
    return _that_may_raise(
        RowExpression(role, sql, tuple(referenced_columns([sql]))) for role, sql in expressions
    )


def _that_may_raise(expressions: Iterable[RowExpression]) -> list[RowExpression]:
    return [expression for expression in expressions if expression.columns and may_raise(expression.text)]
