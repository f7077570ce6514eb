"""Tells which expressions of the configuration may fail for a record of a batch, and which for rows that are none."""

from collections.abc import Iterable

from orchestration.config import Pipeline
from orchestration.config.schema.expressions import referenced_columns
from storage.lake.plan import Plan
from transforms.model.expressions import RowExpression, may_raise
from transforms.model.specs import JoinSpec


def foreign_keys(pipeline: Pipeline, plan: Plan, name: str) -> list[RowExpression]:
    """The foreign keys of a table or stream in a batch that may raise for one of its records."""
    specs = [pipeline.spec_of_join(join) for join in plan.joins]
    return [key for spec in specs if spec.left == name for key in _foreign_key(spec)]


def foreign_key_not_asked(pipeline: Pipeline, plan: Plan, name: str) -> list[RowExpression]:
    """The foreign key of a join, as far as it may raise for left rows that no batch has refused for it.

    Those are the rows that a join begins with, those of another join, and those of a table whose records may leave
    values out: a record is asked before it has them.
    """
    spec = pipeline.spec_of_join(name)
    left = pipeline.inputs.get(spec.left)
    all_asked = left is not None and not left.leaves_values_out and name not in plan.bootstrap
    return [] if all_asked else _foreign_key(spec)


def conditions(pipeline: Pipeline, name: str) -> list[RowExpression]:
    """What the records of a stream must meet, as far as it may raise for one of them; nothing for a table."""
    stream = pipeline.streams.get(name)
    if stream is None or stream.condition is None:
        return []
    return _of_records([(f"where of {name}", stream.condition)])


def _foreign_key(spec: JoinSpec) -> list[RowExpression]:
    return _of_records((f"foreign key of {spec.name}", text) for text in spec.foreign_key)


def _of_records(expressions: Iterable[tuple[str, str]]) -> list[RowExpression]:
    """Those of some expressions, by their role, that may raise for one record and not for another."""
    found = [
        RowExpression(role, sql, tuple(referenced_columns([sql])))
        for role, sql in expressions
        if may_raise(sql)
    ]
    return [expression for expression in found if expression.columns]
