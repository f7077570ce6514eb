"""Takes from a table the rows that do not meet its condition (`where`): to the table their records are deletes.

Such a record ends the row that its key has, and stands in the log as the tombstone of a key that has none: an older
record that does meet the condition may come later. Of its values the key and the time stay.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.expressions import meets
from lakejoin.transforms.model.schemas import OP, REASON, UNAVAILABLE, named
from lakejoin.transforms.model.specs import TableSpec

FILTERED = "filtered"
"""What such a record does: an `Op`."""


def filtered(records: DataFrame, table: TableSpec, *, filled: bool = False) -> DataFrame:
    """Make deletes of the records whose rows do not meet the table's condition.

    `records`: what the parsers yield. `filled`: whether those that had left values out have them by now; else a record
    that leaves out what the condition reads stays as it is.
    """
    if table.where is None:
        return records
    unmet = is_unmet(table, filled=filled)
    kept = {*table.key, table.event_time, *(f.name for f in table.sequence)}
    others = [name for name in table.columns.names if name not in kept]
    nulls = {name: F.when(~unmet, named(name)) for name in (*others, UNAVAILABLE) if name in records.columns}
    return records.withColumns({OP: F.when(unmet, FILTERED).otherwise(F.col(OP)), **nulls})


def is_unmet(table: TableSpec, *, filled: bool = False) -> Column:
    """Whether a record is a row that is known not to meet the condition of its table."""
    assert table.where is not None
    unmet = (F.col(OP) == "upsert") & F.col(REASON).isNull() & ~meets(table.where.text)
    if not filled:
        reads = F.array(*map(F.lit, table.where.columns)).cast("array<string>")
        unmet &= ~F.coalesce(F.arrays_overlap(UNAVAILABLE, reads), F.lit(False))
    return F.coalesce(unmet, F.lit(False))
