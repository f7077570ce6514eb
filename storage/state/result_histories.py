"""Takes rows out of the history of a result: what a batch that is given up did to it, and what ended long ago."""

from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from storage.delta_log.open_table import opened
from storage.delta_log.snapshot import reading_table
from storage.delta_log.transaction_id import Transaction
from storage.delta_table.commits import delete_rows, remove_batch, update_rows
from storage.lake.journal import Journal
from storage.lake.layout import Lake
from transforms.foreign_key_join.history import IS_CURRENT, UNTIL
from transforms.model.event_time import instant
from transforms.model.schemas import VALID_TO


def take_back(spark: SparkSession, path: str, ended: Transaction, begun: Transaction) -> None:
    """Make the versions that a batch ended current again, and remove those that it began: each in a commit, if any.

    `ended`, `begun`: the identifiers of these. A history by event time, where no batch ends a version, stays as it is:
    its join begins anew, and then it is compared with all that the join has.
    """
    columns = spark.read.format("delta").load(path).columns
    if UNTIL not in columns:
        return
    again = {VALID_TO: F.lit(None), UNTIL: F.lit(None)}
    if IS_CURRENT in columns:
        again[IS_CURRENT] = F.lit(True)
    update_rows(spark, path, F.col(UNTIL) == ended.batch, again, ended)
    remove_batch(spark, path, begun)


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
