"""Writes the joined table: a plain Delta table that a batch changes in one commit."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from lakejoin.storage.delta_log.transaction_id import Settled, Transaction
from lakejoin.storage.delta_table.commits import append, merge, overwrite, replace
from lakejoin.storage.delta_table.direct_scan import APPENDED_PROPERTIES, ENCODING
from lakejoin.storage.delta_table.file_pruning import Count, ignored
from lakejoin.storage.delta_table.footer_statistics import STATISTICS
from lakejoin.storage.delta_table.merging import replacing
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.delta_table.uncommitted_files import Written
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from lakejoin.transforms.model.declaration import DELETION_VECTORS, UNDECLARED, Declaration
from lakejoin.transforms.model.keys import Keys
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, VALID_FROM, VALID_TO, named, quoted

MERGE = "spark.lakejoin.merge"
"""Setting: `true` changes the joined table by MERGE, through Delta's public API alone; slower at any size."""
_FEED = {"delta.enableChangeDataFeed": "true"}
PROPERTIES = {DELETION_VECTORS: "true", **_FEED, **ENCODING}
"""An update then writes the rows that changed and marks the old ones, instead of rewriting their files; and from these
Delta derives the Change Data Feed, for which our commits write nothing (MERGE would). Who reads deletion vectors reads
the encodings, too."""
OF_HISTORIES = {
    DELETION_VECTORS: "true", STATISTICS: f"{BATCH},{VALID_FROM},{VALID_TO}", **ENCODING,
}  # fmt: skip
"""Of the history of a result: a version that ends is marked as deleted, and written once more with its end.

The columns are those that each history has: one that begins anew by another time keeps the properties of its table.
"""
OF_STREAMS = {**APPENDED_PROPERTIES, **_FEED}
"""The joined table of a stream only grows: readers that know neither can read it."""


def properties_of(usual: Mapping[str, str], declared: Declaration) -> dict[str, str]:
    """Return the properties of the table of a result, or of its history: the usual ones, and those declared.

    Readers that lack deletion vectors lack the encodings, too. What rows are clustered by has statistics.
    """
    kept = {name: value for name, value in usual.items() if declared.deletion_vectors or name not in ENCODING}
    if STATISTICS in kept and declared.cluster_by:
        more = [quoted(name) for name in declared.cluster_by if name not in kept[STATISTICS].split(",")]
        kept[STATISTICS] = ",".join([kept[STATISTICS], *more])
    return {**kept, **declared.stated}


def declared_properties(usual: Mapping[str, str], declared: Declaration) -> dict[str, str]:
    """Return those of `properties_of` that are not the usual ones: what a table that is there is given."""
    return {name: value for name, value in properties_of(usual, declared).items() if usual.get(name) != value}


def apply_emissions(  # noqa: PLR0913
    emissions: DataFrame, path: str, join: ResultSpec, transaction: Transaction, ready: Callable[[], Mapping[str, int]],
    *, few: bool, begun: DeltaTransaction | None = None, count: Count = ignored, marks: bool = True,
) -> None:  # fmt: skip
    """Bring a batch's emissions into the joined table: at most one for each key, tombstones delete.

    `emissions`: columns of `joined_schema` and `TOMBSTONE`; none make no commit. `ready`: asked before the commit,
    returns when those are made that it must not precede, and says how many `emissions` there are, and `tombstones` of
    them. `few`: they fit one task. `begun`: a commit to the table that has begun. `count`: told how many files of the
    table are looked through. `marks`: whether rows may be marked as deleted; else their files are written anew.
    """

    def settled() -> Settled | None:
        counts = ready()
        rows = counts["emissions"] - counts["tombstones"]
        return Settled(rows, {"counts": dict(counts)}) if counts["emissions"] else None

    if not marks or emissions.sparkSession.conf.get(MERGE, "false") == "true":
        if (state := settled()) is not None:
            _merge(emissions, path, join, transaction.stating(state.metadata))
        return
    keys = Keys(emissions.select(*map(named, join.joined_key)), few, null_matches=join.key_may_be_null)
    rows, key = joined_rows(emissions, join), join.joined_key_type
    replace(rows, keys, key, path, transaction, ready=settled, begun=begun, count=count)


def create_joined(
    emissions: DataFrame, path: str, join: ResultSpec, transaction: Transaction, first: Written | None = None,
    declared: Declaration = UNDECLARED,
) -> None:  # fmt: skip
    """Make the joined table of a batch's emissions, in the place of one that is there from before.

    `first`: its rows in files, where there is none.
    """
    rows, properties = joined_rows(emissions, join), properties_of(PROPERTIES, declared)
    if first is None:
        overwrite(rows, path, transaction, properties, declared)
    else:
        append(rows, path, transaction, properties, first=first, declared=declared)


def joined_rows(emissions: DataFrame, join: ResultSpec) -> DataFrame:
    """The rows that emissions bring into the joined table."""
    return emissions.where(~named(TOMBSTONE)).select(*[named(name) for name in joined_schema(join).names])


def _merge(emissions: DataFrame, path: str, join: ResultSpec, transaction: Transaction) -> None:
    names = joined_schema(join).names
    builder = replacing(emissions, names, join.joined_key, TOMBSTONE, path, null_matches=join.key_may_be_null)
    merge(emissions.sparkSession, builder, path, transaction)
