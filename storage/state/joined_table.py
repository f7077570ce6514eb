"""Writes the joined table: a plain Delta table that a batch changes in one commit."""

from collections.abc import Callable, Mapping

from delta.tables import DeltaTable
from pyspark.sql import DataFrame

from storage.delta_log.transaction_id import Settled, Transaction
from storage.delta_table.commits import append, merge, overwrite, replace
from storage.delta_table.direct_scan import APPENDED_PROPERTIES, ENCODING
from storage.delta_table.file_pruning import Count, ignored
from storage.delta_table.footer_statistics import STATISTICS
from storage.delta_table.private_transaction import DeltaTransaction
from storage.delta_table.uncommitted_files import Written
from transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from transforms.model.keys import Keys
from transforms.model.result_spec import ResultSpec
from transforms.model.schemas import BATCH, VALID_FROM, VALID_TO, named, quoted

MERGE = "spark.lakejoin.merge"
"""Setting: `true` changes the joined table by MERGE, through Delta's public API alone; slower at any size."""
_FEED = {"delta.enableChangeDataFeed": "true"}
PROPERTIES = {"delta.enableDeletionVectors": "true", **_FEED, **ENCODING}
"""An update then writes the rows that changed and marks the old ones, instead of rewriting their files; and from these
Delta derives the Change Data Feed, for which our commits write nothing (MERGE would). Who reads deletion vectors reads
the encodings, too."""
OF_HISTORIES = {
    "delta.enableDeletionVectors": "true", STATISTICS: f"{BATCH},{VALID_FROM},{VALID_TO}", **ENCODING,
}  # fmt: skip
"""Of the history of a result: a version that ends is marked as deleted, and written once more with its end.

The columns are those that each history has: one that begins anew by another time keeps the properties of its table.
"""
OF_STREAMS = {**APPENDED_PROPERTIES, **_FEED}
"""The joined table of a stream only grows: readers that know neither can read it."""


def apply_emissions(  # noqa: PLR0913
    emissions: DataFrame, path: str, join: ResultSpec, transaction: Transaction, ready: Callable[[], Mapping[str, int]],
    *, few: bool, begun: DeltaTransaction | None = None, count: Count = ignored,
) -> None:  # fmt: skip
    """Bring a batch's emissions into the joined table: at most one for each key, tombstones delete.

    `emissions`: columns of `joined_schema` and `TOMBSTONE`; none make no commit. `ready`: asked before the commit,
    returns when those are made that it must not precede, and says how many `emissions` there are, and `tombstones` of
    them. `few`: they fit one task. `begun`: a commit to the table that has begun. `count`: told how many files of the
    table are looked through.
    """

    def settled() -> Settled | None:
        counts = ready()
        rows = counts["emissions"] - counts["tombstones"]
        return Settled(rows, {"counts": dict(counts)}) if counts["emissions"] else None

    if emissions.sparkSession.conf.get(MERGE, "false") == "true":
        if (state := settled()) is not None:
            _merge(emissions, path, join, transaction.stating(state.metadata))
        return
    keys = Keys(emissions.select(*map(named, join.joined_key)), few, null_matches=join.key_may_be_null)
    rows, key = joined_rows(emissions, join), join.joined_key_type
    replace(rows, keys, key, path, transaction, ready=settled, begun=begun, count=count)


def create_joined(
    emissions: DataFrame, path: str, join: ResultSpec, transaction: Transaction, first: Written | None = None
) -> None:
    """Make the joined table of a batch's emissions, in the place of one that is there from before.

    `first`: its rows in files, where there is none.
    """
    rows = joined_rows(emissions, join)
    if first is None:
        overwrite(rows, path, transaction, PROPERTIES)
    else:
        append(rows, path, transaction, PROPERTIES, first=first)


def joined_rows(emissions: DataFrame, join: ResultSpec) -> DataFrame:
    """The rows that emissions bring into the joined table."""
    return emissions.where(~named(TOMBSTONE)).select(*[named(name) for name in joined_schema(join).names])


def _merge(emissions: DataFrame, path: str, join: ResultSpec, transaction: Transaction) -> None:
    equal = "<=>" if join.key_may_be_null else "="
    names = map(quoted, join.joined_key)
    same_key = " AND ".join(f"joined.{name} {equal} emission.{name}" for name in names)
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
