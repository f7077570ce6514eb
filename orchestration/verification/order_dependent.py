"""Finds the columns of results that depend on the order in which rows came: floating sums, and what is made of them."""

from collections.abc import Iterator

from pyspark.sql.types import DoubleType, FloatType

from lakejoin.orchestration.config import Join, Pipeline, Star, StreamJoin
from lakejoin.orchestration.config.schema.expressions import referenced_columns
from lakejoin.transforms.model.group_spec import Aggregate, GroupSpec


def order_dependent(pipeline: Pipeline, name: str) -> set[str]:
    """Return these columns of a result, or of its history; none of a table or stream.

    Floating sums and averages of groups, and through results that are made of them whatever reads such a column.
    """
    if name not in pipeline.joins:
        return set()
    spec = pipeline.spec_of_join(name)
    read = {
        f"{prefix}{column}"
        for side, prefix in _sides(pipeline, name)
        for column in order_dependent(pipeline, side)
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


def _sides(pipeline: Pipeline, name: str) -> Iterator[tuple[str, str]]:
    """Yield what a result reads, with what stands before the names of its columns."""
    join = pipeline.joins[name]
    yield join.left_side, ""
    match join:
        case Join():
            yield join.right, join.prefix
        case Star():
            for side, right in join.rights.items():
                yield right.table, right.prefix_of(side)
        case StreamJoin():
            yield join.table, join.prefix


def _reads(sql: str, columns: set[str]) -> bool:
    return bool(columns) and not columns.isdisjoint(referenced_columns([sql]))


def _adds_floats(one: Aggregate) -> bool:
    return one.function in {"sum", "avg"} and isinstance(one.of, FloatType | DoubleType)
