"""Refuses records that could be parsed, with a reason, what is wrong, and the row as text."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms.model.schemas import DETAIL, RAW, REASON, named


def refuse(records: DataFrame, names: Sequence[str], reason: Column, detail: Column) -> DataFrame:
    """Give records a reason and a detail; those whose `reason` is null keep what they have.

    `names`: the declared columns, which make the text of a record that has none.
    """
    refused = reason.isNotNull()
    row = F.to_json(F.struct(*map(named, names)))
    return records.withColumns(
        {
            REASON: F.coalesce(reason, REASON),
            DETAIL: F.when(refused, detail).otherwise(F.col(DETAIL)),
            RAW: F.when(refused, F.coalesce(RAW, row)).otherwise(F.col(RAW)),
        }
    )
