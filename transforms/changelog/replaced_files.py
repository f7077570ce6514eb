"""Applies a source file that was exported again in the place of its old content.

The keys of the old and the new file are applied anew, to everything else that is known of them and to the new records.
Afterwards the table is what it would be if the old file had never been read.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType

from lakejoin.transforms.model.schemas import (
    BATCH,
    CHANGED,
    CONTEXT,
    CURRENT,
    DELETED,
    DERIVED,
    DETAIL,
    EXISTED,
    HASH,
    HASH_TYPE,
    INSERTED,
    OP,
    POSITION,
    POSITION_TYPE,
    RAW,
    REASON,
    SEQUENCE,
    TIE,
    TIME,
    UNAVAILABLE,
    VERDICT,
    changes_schema,
    named,
)
from lakejoin.transforms.model.specs import TableSpec

_STORED, _FINAL, _SAME = "_lj_stored", "_lj_final", "_lj_same"


def replaced(files: Mapping[str, int]) -> Column:
    """Whether a change comes from a file that was replaced. `files`: by name, the batch that last replaced it."""
    conditions = [(F.col(POSITION)["file"] == name) & (F.col(BATCH) < batch) for name, batch in files.items()]
    return F.coalesce(reduce(or_, conditions, F.lit(False)), F.lit(False))


def as_records(changes: DataFrame, table: TableSpec) -> DataFrame:
    """Rows of `tables/T/changes` as records that can be applied once more, without those that a replacement derived.

    A tombstone line takes the sequence of its key again, which may be another one now.
    """
    own = table.sequence == POSITION_TYPE or set(table.sequence.names) <= {"offset"}
    inherits = F.lit(not own) & (F.col(OP) == "tombstone")
    return (
        changes.where(~F.col(OP).isin("restored", "truncate"))
        .withColumn(SEQUENCE, F.when(~inherits, F.col(SEQUENCE)))
        .select(
            *[named(name) for name in table.columns.names], POSITION, OP, SEQUENCE, TIME, DERIVED,
            F.lit(False).alias(CONTEXT),
            F.lit(None).cast(ArrayType(StringType())).alias(UNAVAILABLE),
            *[F.lit(None).cast("string").alias(name) for name in (REASON, DETAIL, RAW)],
        )
    )  # fmt: skip


def settle_replaced(
    judged: DataFrame, before: DataFrame, gone: DataFrame, table: TableSpec, names: list[str]
) -> DataFrame:
    """The judged records of the new files, and beside them a change for each key whose state no new record gives.

    `judged`: what `apply_changes` returns for the keys, as if none were known. `before`: their stored rows. `gone`:
    key, position and time of the last change of each key in the old files. `names`: of the files. Returns the columns
    of `judged`. A key that is what it was before is not changed: its new records are duplicates.
    """
    keys = [named(name) for name in table.key]
    content = F.struct(F.col(HASH).alias("hash"), F.col(DELETED).alias("deleted"))
    final = judged.where(CURRENT).select(
        *keys, F.struct(SEQUENCE, POSITION, content.alias("content")).alias(_FINAL)
    )
    stored = before.select(*keys, F.struct(SEQUENCE, POSITION, content.alias("content")).alias(_STORED))
    known = stored.join(final, list(table.key), "full_outer").withColumn(_SAME, _is_same())
    beside = judged.join(known, list(table.key), "left")
    is_new = F.col(POSITION)["file"].isin(*names)
    own = beside.where(is_new)
    # another file's record is the key's state, and was not before
    others = beside.where(~is_new & F.col(CURRENT) & ~F.col(_STORED).eqNullSafe(F.col(_FINAL)))
    lost = gone.join(known, list(table.key)).where(F.col(_FINAL).isNull() & F.col(_STORED).isNotNull())
    rows = [_judged(own), _judged(_restored(others)), _judged(_deleted(lost, table))]
    columns = [named(name) for name in judged.columns]
    return reduce(DataFrame.unionByName, [row.select(*columns) for row in rows])


def _is_same() -> Column:
    """Whether a key has the row it had; a tombstone is as good as none."""
    none = F.struct(F.lit(None).cast(HASH_TYPE).alias("hash"), F.lit(True).alias("deleted"))
    now, then = (F.coalesce(F.col(side)["content"], none) for side in (_FINAL, _STORED))
    return now.eqNullSafe(then)


def _judged(rows: DataFrame) -> DataFrame:
    """Compare rows with what their key was: a record that changes nothing is not applied."""
    unchanged = F.col(_SAME) & (F.col(VERDICT) == "applied")
    # a duplicate of another file's record, which sets the key's state now that the old file's record is gone
    returns = F.col(CURRENT) & ~F.col(_SAME) & (F.col(VERDICT) == "duplicate")
    existed = F.coalesce(~F.col(_STORED)["content"]["deleted"], F.lit(False))
    return rows.withColumns(
        {
            VERDICT: F.when(unchanged, "duplicate").when(returns, "applied").otherwise(F.col(VERDICT)),
            TIE: F.col(TIE) & ~F.col(_SAME),
            CHANGED: ~F.col(_SAME),
            EXISTED: existed,
            INSERTED: F.lit(False),
        }
    )


def _restored(rows: DataFrame) -> DataFrame:
    return rows.withColumns(
        {OP: F.lit("restored"), VERDICT: F.lit("applied"), DERIVED: F.lit(True), TIE: F.lit(False)}
    )


def _deleted(lost: DataFrame, table: TableSpec) -> DataFrame:
    """A tombstone without a sequence for a key that nothing is left of: whatever comes for it later is in order."""
    schema = changes_schema(table.columns, table.sequence)
    given = {OP: "restored", VERDICT: "applied", DELETED: True, CURRENT: True, DERIVED: True, TIE: False}
    stated = {name: F.lit(value) for name, value in given.items()}
    texts = {name: F.lit(None).cast("string") for name in (REASON, DETAIL, RAW)}
    rest = {f.name: F.lit(None).cast(f.dataType) for f in schema if f.name not in {*lost.columns, *given}}
    return lost.withColumns(rest | stated | texts)
