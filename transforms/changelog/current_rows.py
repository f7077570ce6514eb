"""Picks the current rows of a table from its folded base and the changes behind it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import BATCH, CURRENT, named

_LATEST = "_lj_latest"


def latest_rows(rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """The last row of each key by batch; `rows` holds at most one row of a key for each batch."""
    columns = [named(name) for name in rows.columns if name not in key]
    latest = F.max_by(F.struct(*columns), named(BATCH)).alias(_LATEST)
    # most keys have one row: grouped before they are shuffled, they would be sorted twice for nothing
    together = rows.repartition(*[named(name) for name in key])
    grouped = together.groupBy(*[named(name) for name in key]).agg(latest)
    return grouped.select(*[named(name) for name in key], f"{_LATEST}.*").select(*map(named, rows.columns))


def settled(changes: DataFrame, columns: list[str]) -> DataFrame:
    """The changes that are their key's state after their batch, as rows of the base."""
    return changes.where(CURRENT).select(*[named(name) for name in columns])
