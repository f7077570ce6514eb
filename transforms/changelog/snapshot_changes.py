"""Finds what changed between the rows of a table and a snapshot, which is the whole table at a later time.

A row whose hash is that of the stored one gives no record. A key that the snapshot lacks was deleted. A bad record
whose key can be read says that its key is there, and leaves the row as it was.
"""

from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms.model.hashing import value_hash
from transforms.model.schemas import CONTEXT, DELETED, DERIVED, HASH, OP, POSITION, REASON, SEQUENCE, named
from transforms.model.specs import TableSpec

_FOUND, _STORED, _COPIES = "_lj_found", "_lj_stored", "_lj_copies"


def snapshot_changes(records: DataFrame, rows: DataFrame, table: TableSpec, end: Column) -> DataFrame:
    """Return the records of a snapshot that change a row or are bad, and a derived delete for each key that is gone.

    `records`: all of one snapshot, as the parsers yield them, ordered by position. `rows`: the stored rows (key, hash,
    deleted). `end`: the position behind the snapshot's last record. Of a key that stands twice all records stay: the
    last one counts.
    """
    key = [named(name) for name in table.key]
    copies = F.count("*").over(Window.partitionBy(*key))
    found = records.withColumns({_FOUND: value_hash(table.columns), _COPIES: copies})
    stored = rows.where(~F.col(DELETED)).select(*key, named(HASH).alias(_STORED))
    both = found.join(stored, list(table.key), "full_outer")
    is_gone, is_good = F.col(POSITION).isNull(), F.col(REASON).isNull()
    is_same = ~is_gone & is_good & (F.col(_COPIES) == 1) & F.col(_FOUND).eqNullSafe(F.col(_STORED))
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
    return both.where(~is_same).select(*columns)


def is_found_gone() -> Column:
    """Whether a record of `snapshot_changes` stands for a key that the snapshot lacks."""
    return F.col(DERIVED) & (F.col(OP) == "delete")


def hides_its_key(table: TableSpec) -> Column:
    """Whether a record is so bad that nobody knows which key is there: then no other can be called gone."""
    return F.col(REASON).isNotNull() & reduce(or_, [named(name).isNull() for name in table.key])
