"""Tells why an expression of the configuration failed for records of a batch."""

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.expressions import EXPRESSION_FAILED, RowExpression
from lakejoin.transforms.model.schemas import DETAIL, POSITION, REASON

_CAUSES = 10
"""Of so many different inputs of a batch Spark is asked why an expression fails; each is a job."""


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
