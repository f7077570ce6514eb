"""Finds what changed between the rows of a table and a snapshot, which is the whole table at a later time.

A row whose hash is that of the stored one gives no record. A key that the snapshot lacks was deleted. A bad record
whose key can be read says that its key is there, and leaves the row as it was.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.schemas import (
    CONTEXT,
    DELETED,
    DERIVED,
    HASH,
    OP,
    POSITION,
    REASON,
    SEQUENCE,
    named,
)
from lakejoin.transforms.model.specs import TableSpec

WAS_THERE = "_lj_was_there"
"""Column of what a snapshot changes: whether there is a row of the key."""
_FOUND, _STORED, _COPIES, _NEWER = "_lj_found", "_lj_stored", "_lj_copies", "_lj_newer"


def snapshot_changes(
    records: DataFrame, rows: DataFrame, table: TableSpec, end: Column, at: Column | None = None
) -> DataFrame:
    """Return the records of a snapshot that change a row or are bad, and a derived delete for each key that is gone.

    `records`: all of one snapshot, as the parsers yield them, ordered by position. `rows`: the stored rows (key, hash,
    deleted; with `at` their sequence). `end`: the position behind the snapshot's last record. `at`: the sequence that
    the snapshot has among changes; newer rows and tombstones stay as they are. Of a key that stands twice all records
    stay: the last one counts. `WAS_THERE` stands beside each.
    """
    key = [named(name) for name in table.key]
    copies = F.count("*").over(Window.partitionBy(*key))
    found = records.withColumns({_FOUND: value_hash(table.columns), _COPIES: copies})
    newer = F.lit(False) if at is None else F.col(SEQUENCE) > at
    stored = rows.where(~F.col(DELETED) | newer).select(
        *key, F.when(~F.col(DELETED), named(HASH)).alias(_STORED), newer.alias(_NEWER)
    )
    both = found.join(stored, list(table.key), "full_outer")
    is_gone, is_good = F.col(POSITION).isNull(), F.col(REASON).isNull()
    is_same = ~is_gone & is_good & (F.col(_COPIES) == 1) & F.col(_FOUND).eqNullSafe(F.col(_STORED))
    is_same |= F.coalesce(F.col(_NEWER), F.lit(False)) & (is_gone | is_good)
    of_deletes = {
        OP: F.lit("delete"),
        DERIVED: F.lit(True),
        CONTEXT: F.lit(False),
        POSITION: end,
        SEQUENCE: end,
    }
    columns = [
        F.when(is_gone, of_deletes[name]).otherwise(named(name)).alias(name)
        if name in of_deletes
        else named(name)
        for name in records.columns
    ]
    return both.where(~is_same).select(*columns, F.col(_STORED).isNotNull().alias(WAS_THERE))


def is_found_gone() -> Column:
    """Whether a record of `snapshot_changes` stands for a key that the snapshot lacks."""
    return F.col(DERIVED) & (F.col(OP) == "delete")


def difference_counts(table: TableSpec) -> list[Column]:
    """What `snapshot_changes` found, to be counted.

    `missing` keys have no row; `different` ones have another; `gone` ones are not in the snapshot. `bad` records cannot
    be read; `hidden` are those of which nobody knows the key, so that no other can be called gone.
    """
    is_good = F.col(REASON).isNull() & ~is_found_gone()
    hides = F.col(REASON).isNotNull() & reduce(or_, [named(name).isNull() for name in table.key])
    return [
        F.count_if(is_good & ~F.col(WAS_THERE)).alias("missing"),
        F.count_if(is_good & F.col(WAS_THERE)).alias("different"),
        F.count_if(is_found_gone()).alias("gone"),
        F.count_if(F.col(REASON).isNotNull()).alias("bad"),
        F.count_if(hides).alias("hidden"),
    ]
