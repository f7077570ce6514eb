"""The joined table: a plain Delta table that every batch changes in exactly one commit."""

from collections.abc import Callable, Mapping

from delta.tables import DeltaTable
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from storage.commits import Transaction, merge, overwrite, replace
from storage.data_files import TIMED_LOG_PROPERTIES
from storage.frames import SMALL
from transforms.resolution import LEFT_HASH, RIGHT_HASH, TOMBSTONE
from transforms.schemas import BATCH, HASH, HASH_TYPE, named, quoted
from transforms.specs import JoinSpec

MERGE = "spark.lakejoin.merge"
"""Setting: `true` changes the joined table by MERGE, through Delta's public API alone; slower at any size."""
_FEED = {"delta.enableChangeDataFeed": "true"}
PROPERTIES = {"delta.enableDeletionVectors": "true", **_FEED}
"""An update then writes the rows that changed and marks the old ones, instead of rewriting their files; and from these
Delta derives the Change Data Feed, for which our commits write nothing (MERGE would)."""
OF_STREAMS = {**TIMED_LOG_PROPERTIES, **_FEED}
"""The joined table of a stream only grows."""


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
    emissions: DataFrame, counts: Mapping[str, int], path: str, join: JoinSpec, transaction: Transaction,
    ready: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """Bring a batch's emissions into the joined table: at most one for each key, tombstones delete.

    `emissions`: columns of `joined_schema` and `TOMBSTONE`. `counts`: how many `emissions`, and `tombstones` of them.
    `ready`: returns when the commits are made that this one must not precede; the rows that end are looked for before.
    """
    if emissions.sparkSession.conf.get(MERGE, "false") == "true":
        ready()
        _merge(emissions, path, join, transaction)
        return
    keys = emissions.select(*[named(name) for name in join.joined_key])
    count = counts["emissions"] - counts["tombstones"]
    small = counts["emissions"] <= SMALL
    replace(
        _rows(emissions, join), count, keys, join.joined_key_type, path, transaction, small=small, ready=ready
    )


def create_joined(emissions: DataFrame, path: str, join: JoinSpec, transaction: Transaction) -> None:
    """Make the joined table of a batch's emissions, in the place of one that is there from before."""
    overwrite(_rows(emissions, join), path, transaction, PROPERTIES)


def _rows(emissions: DataFrame, join: JoinSpec) -> DataFrame:
    return emissions.where(~named(TOMBSTONE)).select(*[named(name) for name in joined_schema(join).names])


def _merge(emissions: DataFrame, path: str, join: JoinSpec, transaction: Transaction) -> None:
    same_key = " AND ".join(f"joined.{quoted(name)} = emission.{quoted(name)}" for name in join.joined_key)
    every = {quoted(name): f"emission.{quoted(name)}" for name in joined_schema(join).names}
    tombstone = f"emission.{quoted(TOMBSTONE)}"
    spark = emissions.sparkSession
    builder = (
        DeltaTable.forPath(spark, path)
        .alias("joined")
        .merge(emissions.alias("emission"), same_key)
        .whenMatchedDelete(tombstone)
        .whenMatchedUpdate(set=dict(every))
        .whenNotMatchedInsert(f"NOT {tombstone}", values=dict(every))
    )
    merge(spark, builder, path, transaction)
