"""The joined table: a plain Delta table that every batch changes in exactly one commit."""

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from storage.commits import Transaction, append, merge
from transforms.resolution import LEFT_HASH, RIGHT_HASH, TOMBSTONE
from transforms.schemas import BATCH, HASH, HASH_TYPE, JoinSpec, named, quoted

PROPERTIES = {"delta.enableDeletionVectors": "true"}
"""An update then writes the rows that changed and marks the old ones, instead of rewriting their files."""


def joined_schema(join: JoinSpec) -> StructType:
    """Schema of `joins/J/joined`: left columns, right columns with the prefix, internal columns."""
    return StructType(
        [
            *join.columns,
            StructField(BATCH, LongType()),
            StructField(HASH, HASH_TYPE),
            StructField(LEFT_HASH, HASH_TYPE),
            StructField(RIGHT_HASH, HASH_TYPE),
        ]
    )


def apply_emissions(
    spark: SparkSession,
    emissions: DataFrame,
    path: str,
    join: JoinSpec,
    transaction: Transaction,
    *,
    exists: bool,
) -> None:
    """Bring a batch's emissions into the joined table: at most one for each key, tombstones delete.

    `emissions`: columns of `joined_schema` and `TOMBSTONE`. Where the table does not exist yet, this makes it.
    """
    columns = [named(name) for name in joined_schema(join).names]
    if not exists:
        append(emissions.where(~named(TOMBSTONE)).select(*columns), path, transaction, PROPERTIES)
        return
    same_key = " AND ".join(f"joined.{quoted(name)} = emission.{quoted(name)}" for name in join.left_key)
    every = {quoted(name): f"emission.{quoted(name)}" for name in joined_schema(join).names}
    tombstone = f"emission.{quoted(TOMBSTONE)}"
    builder = (
        DeltaTable.forPath(spark, path)
        .alias("joined")
        .merge(emissions.alias("emission"), same_key)
        .whenMatchedDelete(tombstone)
        .whenMatchedUpdate(set=dict(every))
        .whenNotMatchedInsert(f"NOT {tombstone}", values=dict(every))
    )
    merge(spark, builder, transaction)
