"""Finds the columns of results that depend on the order in which rows came: floating sums, and what is made of them."""

from pyspark.sql.types import DoubleType, FloatType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.expressions import referenced_columns
from lakejoin.transforms.model.group_spec import Aggregate, GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec


def order_dependent(pipeline: Pipeline, name: str) -> set[str]:
    """Return these columns of a result, or of its history; none of a table or stream.

    Floating sums and averages of groups, and through results that are made of them whatever reads such a column.
    """
    if name not in pipeline.joins:
        return set()
    spec = pipeline.spec_of_join(name)
    read = {
        f"{prefix}{column}" for side, prefix in _sides(spec) for column in order_dependent(pipeline, side)
    }
    if isinstance(spec, GroupSpec):
        keys = {key.name for key in spec.by if _reads(key.sql, read)}
        return keys | {
            one.name
            for one in spec.aggregates
            if _adds_floats(one) or any(_reads(text, read) for text in one.expressions)
        }
    if spec.select is None:
        return read
    return {entry.name for entry in spec.select if _reads(entry.sql, read)}


def _sides(spec: ResultSpec) -> list[tuple[str, str]]:
    """Return what a result reads, with what stands before the names of its columns."""
    rights = () if isinstance(spec, GroupSpec) else spec.parts  # that of groups is the groups themselves
    return [(spec.left, ""), *[(part.right, part.prefix) for part in rights]]


def _reads(sql: str, columns: set[str]) -> bool:
    return bool(columns) and not columns.isdisjoint(referenced_columns([sql]))


def _adds_floats(one: Aggregate) -> bool:
    return one.function in {"sum", "avg"} and isinstance(one.of, FloatType | DoubleType)
