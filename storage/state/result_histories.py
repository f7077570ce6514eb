"""Changes the history of a result: brings versions in, takes back those of a batch, removes what ended long ago."""

from collections.abc import Callable
from datetime import datetime

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.delta_log.transaction_id import Settled, Transaction
from lakejoin.storage.delta_table.commits import delete_rows, merge, remove_batch, replace, update_rows
from lakejoin.storage.delta_table.merging import replacing, same_key
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.foreign_key_join.event_history import GONE
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT, UNTIL, history_schema
from lakejoin.transforms.model.event_time import instant
from lakejoin.transforms.model.keys import Keys
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import VALID_FROM, VALID_TO, named


def apply_versions(  # noqa: PLR0913
    versions: DataFrame, path: str, join: ResultSpec, transaction: Transaction, ready: Callable[[], int],
    *, few: bool, marks: bool,
) -> None:  # fmt: skip
    """Bring versions that end, with their ends, and versions that begin into a history, in one commit.

    `versions`: columns of `history_schema`, for each key at most one of either. `ready`: asked before the commit,
    returns how many they are once those commits are made that it must not precede. `few`: they fit one task. `marks`:
    whether rows may be marked as deleted; else their files are written anew.
    """
    if not marks:
        ready()
        _merge(versions, path, join, transaction)
        return
    ended = versions.where(F.col(UNTIL).isNotNull()).select(*map(named, join.joined_key))
    keys, key = Keys(ended, few, null_matches=join.key_may_be_null), join.joined_key_type
    current_only = history_schema(join)[UNTIL]
    replace(versions, keys, key, path, transaction, ready=lambda: Settled(ready(), {}), unless=current_only)


def _merge(versions: DataFrame, path: str, join: ResultSpec, transaction: Transaction) -> None:
    same = same_key(join.joined_key, null_matches=join.key_may_be_null)
    builder = (
        DeltaTable.forPath(versions.sparkSession, path)
        .alias("old")
        .merge(versions.alias("new"), f"{same} AND old.{UNTIL} IS NULL AND new.{UNTIL} IS NOT NULL")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
    )
    merge(versions.sparkSession, builder, path, transaction)


def apply_revisions(  # noqa: PLR0913
    revised: DataFrame, path: str, join: ResultSpec, transaction: Transaction, ready: Callable[[], int],
    *, few: bool, marks: bool,
) -> None:  # fmt: skip
    """Bring what changes of a history by event time into it, in one commit; arguments as for `apply_versions`.

    `revised`: columns of `history_schema`, and `GONE`; one row for each left key and time from which a row was true.
    """
    schema, columns = history_schema(join), (*join.joined_left_key, VALID_FROM)
    if not marks:
        ready()
        builder = replacing(revised, schema.names, columns, GONE, path, null_matches=False)
        merge(revised.sparkSession, builder, path, transaction)
        return
    rows, keys = revised.where(~F.col(GONE)).drop(GONE), Keys(revised.select(*map(named, columns)), few)
    key = StructType([schema[name] for name in columns])
    replace(rows, keys, key, path, transaction, ready=lambda: Settled(ready(), {}))


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
