"""Tells which expressions of the configuration may fail for a record of a batch, and why one did."""

from collections.abc import Iterable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from orchestration.batch.context import Batch
from orchestration.config.schema.expressions import referenced_columns
from transforms.model.expressions import EXPRESSION_FAILED, RowExpression, may_raise
from transforms.model.schemas import DETAIL, POSITION, REASON

_CAUSES = 10
"""Of so many different inputs of a batch Spark is asked why an expression fails; each is a job."""


def foreign_keys(batch: Batch, name: str) -> list[RowExpression]:
    """The foreign keys of a table or stream in a batch that may raise for one of its records."""
    specs = [batch.pipeline.spec_of_join(join) for join in batch.plan.joins]
    return _of_records(
        (f"foreign key of {spec.name}", text)
        for spec in specs
        if spec.left == name
        for text in spec.foreign_key
    )


def conditions(batch: Batch, name: str) -> list[RowExpression]:
    """What the records of a stream must meet, as far as it may raise for one of them; nothing for a table."""
    stream = batch.pipeline.streams.get(name)
    if stream is None or stream.condition is None:
        return []
    return _of_records([(f"where of {name}", stream.condition)])


def _of_records(expressions: Iterable[tuple[str, str]]) -> list[RowExpression]:
    """Those of some expressions, by their role, that may raise for one record and not for another."""
    found = [
        RowExpression(role, sql, tuple(referenced_columns([sql])))
        for role, sql in expressions
        if may_raise(sql)
    ]
    return [expression for expression in found if expression.columns]


def with_causes(records: DataFrame, expressions: Sequence[RowExpression]) -> DataFrame:
    """Add to the details of records that an expression refused what Spark says, for the first `_CAUSES` details.

    `records`: rows with the declared columns, position, reason and detail; read several times.
    """
    failed = records.where(F.col(REASON) == EXPRESSION_FAILED)
    first = failed.groupBy(DETAIL).agg(F.min(POSITION).alias(POSITION)).orderBy(POSITION).limit(_CAUSES)
    detail = F.col(DETAIL)
    for (told,) in first.select(DETAIL).collect():
        text = next(e.text for e in expressions if told.startswith(e.told))
        row = failed.where(F.col(DETAIL) == told).limit(1)
        try:
            row.select(F.expr(text)).collect()
        except PySparkException as error:
            cause = str(error).splitlines()[0]
            detail = F.when(F.col(DETAIL) == told, F.lit(f"{told}: {cause}")).otherwise(detail)
    return records.withColumn(DETAIL, detail)
