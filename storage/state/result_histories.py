"""Takes rows out of the history of a result: what a batch that is given up did to it, and what ended long ago."""

from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from storage.delta_log.open_table import opened
from storage.delta_log.snapshot import reading_table
from storage.delta_log.transaction_id import Transaction
from storage.delta_table.commits import delete_rows, remove_batch, update_rows
from storage.delta_table.schema_evolution import schema_of
from storage.lake.journal import Journal
from storage.lake.layout import Lake
from transforms.foreign_key_join.history import IS_CURRENT, UNTIL
from transforms.model.event_time import instant
from transforms.model.schemas import VALID_TO


def take_back(spark: SparkSession, lake: Lake, journal: Journal, table: str, given_up: Transaction) -> None:
    """Make the versions that the batch of a transaction ended current again, and remove those that it began."""
    snapshot = lake.snapshot(table)
    assert snapshot is not None, "the batch has committed to it"
    again = {VALID_TO: F.lit(None), UNTIL: F.lit(None), IS_CURRENT: F.lit(True)}
    values = {name: value for name, value in again.items() if name in schema_of(snapshot.delta).names}
    reopened = journal.transaction_apart("reopened", table)
    update_rows(spark, lake.path(table), F.col(UNTIL) == given_up.batch, values, reopened)
    remove_batch(spark, lake.path(table), given_up)


def first_end(path: str) -> datetime | None:
    """When the first version ended that a history has, as far as the statistics of its files tell; without a JVM."""
    with reading_table(path):
        actions = pa.table(opened(path).get_add_actions(flatten=True))
    least = actions[f"min.{VALID_TO}"].to_pylist() if f"min.{VALID_TO}" in actions.column_names else []
    return min((end for end in least if end is not None), default=None)


def forget(spark: SparkSession, lake: Lake, journal: Journal, table: str, cutoff: datetime) -> None:
    """Remove the versions that ended before a time."""
    ended = F.col(VALID_TO) < instant(cutoff)
    delete_rows(spark, lake.path(table), ended, journal.transaction_apart("forgotten", table))
