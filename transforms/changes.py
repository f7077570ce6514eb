"""From source records to changes: what each record does to its key, decided by a walk in the order of position.

Kafka orders a key's records by offset; a replayed day or a second delivery breaks that order here. So each record
is held against the running maximum of `sequence`, starting from the key's stored row: a record below it is
`out_of_order`, one at it with the same content a `duplicate`, one at it with other content wins if it stands later
(`tie`). Nothing depends on how the input was cut into batches.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from transforms.hashing import value_hash
from transforms.schemas import (
    BATCH,
    CONTEXT,
    CURRENT,
    DELETED,
    DETAIL,
    EXISTED,
    HASH,
    HASH_TYPE,
    OP,
    POSITION,
    RAW,
    REASON,
    SEQUENCE,
    TIE,
    UNAVAILABLE,
    VERDICT,
    TableSpec,
    changes_schema,
    named,
)

_STORED = "_lj_stored"  # struct of the key's row before the batch; null for an unknown key
_RUNNING = "_lj_running"  # greatest sequence of the key before this record
_CANDIDATE = "_lj_candidate"  # the record would be the key's state if it had the greatest sequence so far
_AFTER_DELETE = "_lj_after_delete"  # the record before it, in the source, is a delete of the same key
_MISSING = "_lj_missing"  # columns whose value the source left out and nobody knows
_LAST = "_lj_last"  # hash and deleted of the last record that counted


def walk(records: DataFrame, before: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    """Give every record of a batch its verdict.

    `records`: what the parsers yield (declared columns, position, op, sequence, time, context, derived, unavailable,
    raw), without quarantined and truncate ones. `before`: the stored rows of the batch's keys (key columns,
    sequence, position, hash, deleted; every column if a record has unavailable values). `floor`: greatest sequence
    of a purged tombstone, null if none: an unknown key below it is expired.

    Returns the columns of `changes_schema` without the batch, with `EXISTED` and with reason, detail and raw for
    records that end quarantined because the value they left out is unknown.
    """
    walked = _with_running_sequence(_with_stored(records, before, table), table, floor)
    filled = _fill_unavailable(walked, table, floor)
    judged = _judge(_with_content(filled, table), floor)
    return judged.where(~F.col(CONTEXT)).select(
        *[f.name for f in changes_schema(StructType(), table.sequence) if f.name not in (BATCH, CURRENT)],
        *[named(name) for name in table.columns.names],
        _is_current(table).alias(CURRENT),
        F.coalesce(~F.col(_STORED)[DELETED], F.lit(False)).alias(EXISTED),
        REASON,
        DETAIL,
        RAW,
    )


def _with_stored(records: DataFrame, before: DataFrame, table: TableSpec) -> DataFrame:
    stored = before.select(
        *[named(name).alias(f"_lj_key_{name}") for name in table.key],
        F.struct(*[named(name) for name in before.columns if name not in table.key]).alias(_STORED),
    )
    same_key = [named(name) == named(f"_lj_key_{name}") for name in table.key]
    return records.join(stored, same_key, "left").drop(*[f"_lj_key_{name}" for name in table.key])


def _by_key(table: TableSpec) -> WindowSpec:
    # a position is unique within a key: a derived delete shares it with a record of another key only
    return Window.partitionBy(*[named(name) for name in table.key]).orderBy(POSITION)


def _earlier(table: TableSpec) -> WindowSpec:
    return _by_key(table).rowsBetween(Window.unboundedPreceding, -1)


def _with_running_sequence(records: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    counts = ~F.col(CONTEXT) & (F.col(OP) != "ignored") & F.col(REASON).isNull()
    sequence = F.when(counts, F.col(SEQUENCE))
    after_delete = F.lag(OP).over(_by_key(table)) == "delete"
    running = F.greatest(F.max(sequence).over(_earlier(table)), F.col(_STORED)[SEQUENCE])
    tombstone = F.col(OP) == "tombstone"
    walked = records.withColumns(
        {
            _RUNNING: running,
            _AFTER_DELETE: tombstone & F.coalesce(after_delete, F.lit(False)),
        }
    )
    # a tombstone line may carry no sequence of its own: it stands where the key stands
    inherits = tombstone & F.col(SEQUENCE).isNull()
    in_order = inherits | F.col(_RUNNING).isNull() | (F.col(SEQUENCE) >= F.col(_RUNNING))
    candidate = (
        counts
        & ~F.col(_AFTER_DELETE)
        & F.coalesce(in_order, F.lit(False))
        & ~_expired(floor)
        & ~_stored_stands_later()
    )
    return walked.withColumn(_CANDIDATE, candidate)


def _expired(floor: Column) -> Column:
    """An unknown key at or below the floor: its tombstone may have been purged, so it must not come back."""
    unknown = F.col(_STORED).isNull() & (F.col(_RUNNING).isNull() | (F.col(_RUNNING) <= floor))
    return F.coalesce(unknown & (F.col(SEQUENCE) <= floor), F.lit(False))


def _stored_stands_later() -> Column:
    """Equal sequence, but the stored row comes from a later position: a day that was read before its predecessor."""
    stored = F.col(_STORED)
    later = (F.col(SEQUENCE) == stored[SEQUENCE]) & (F.col(POSITION) < stored[POSITION])
    return F.coalesce(later, F.lit(False))


def _fill_unavailable(walked: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    """Put the key's previous value where the source sent none; quarantine where there is no previous value."""
    if UNAVAILABLE not in walked.columns:
        return walked.withColumn(REASON, F.lit(None).cast("string"))
    up_to_here = _by_key(table).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    has_stored = F.col(_STORED).isNotNull() & ~F.col(_STORED)[DELETED]
    filled, missing = {}, []
    for name in [name for name in table.columns.names if name not in table.key]:
        left_out = F.coalesce(F.array_contains(UNAVAILABLE, name), F.lit(False))
        gone = F.col(OP).isin("delete", "tombstone")
        # the last record before this one that knows the value: null inside the struct for a deleted key
        known = F.when(
            F.col(_CANDIDATE) & ~left_out,
            F.struct((~gone).alias("alive"), named(name).alias("value")),
        )
        stored = F.when(has_stored, F.struct(F.lit(True).alias("alive"), F.col(_STORED)[name].alias("value")))
        previous = F.coalesce(F.last(known, ignorenulls=True).over(up_to_here), stored)
        filled[name] = F.when(left_out, previous["value"]).otherwise(named(name))
        missing.append(F.when(left_out & ~F.coalesce(previous["alive"], F.lit(False)), F.lit(name)))
    filled[_MISSING] = F.concat_ws(", ", *missing)
    checked = _quarantine_unknown(walked.withColumns(filled).withColumn(REASON, F.lit(None).cast("string")))
    # what ends quarantined was never there: the maximum runs without it, and may let through what is unknown as well
    return _quarantine_unknown(_with_running_sequence(checked, table, floor)).drop(_MISSING)


def _quarantine_unknown(records: DataFrame) -> DataFrame:
    unknown = F.col(_CANDIDATE) & (F.col(_MISSING) != "")
    return records.withColumns(
        {
            REASON: F.coalesce(REASON, F.when(unknown, F.lit("unavailable_value"))),
            DETAIL: F.coalesce(DETAIL, F.when(unknown, F.col(_MISSING))),
            _CANDIDATE: F.col(_CANDIDATE) & (F.col(_MISSING) == ""),
        }
    )


def _with_content(walked: DataFrame, table: TableSpec) -> DataFrame:
    deleted = F.col(OP).isin("delete", "tombstone")
    hashed = walked.withColumns(
        {
            SEQUENCE: F.coalesce(SEQUENCE, F.when(F.col(OP) == "tombstone", F.col(_RUNNING))),
            DELETED: deleted,
            HASH: F.when(F.col(OP) == "upsert", value_hash(table.columns)).otherwise(
                F.lit(None).cast(HASH_TYPE)
            ),
        }
    )
    content = F.struct(F.col(HASH).alias("hash"), F.col(DELETED).alias("deleted"))
    stored = F.when(
        F.col(_STORED).isNotNull(),
        F.struct(F.col(_STORED)[HASH].alias("hash"), F.col(_STORED)[DELETED].alias("deleted")),
    )
    last = F.last(F.when(F.col(_CANDIDATE), content), ignorenulls=True).over(_earlier(table))
    return hashed.withColumn(_LAST, F.coalesce(last, stored))


def _judge(walked: DataFrame, floor: Column) -> DataFrame:
    last = F.col(_LAST)
    same = last.isNotNull() & last["hash"].eqNullSafe(F.col(HASH)) & (last["deleted"] == F.col(DELETED))
    at_maximum = F.coalesce(F.col(SEQUENCE) == F.col(_RUNNING), F.lit(False))
    nothing_to_delete = F.col(_AFTER_DELETE) | last.isNull() | last["deleted"]
    verdict = (
        F.when(F.col(OP) == "ignored", "ignored")
        .when(F.col(REASON).isNotNull(), "quarantined")
        .when((F.col(OP) == "tombstone") & nothing_to_delete, "tombstone")
        .when(_expired(floor), "expired")
        .when(F.col(SEQUENCE) < F.col(_RUNNING), "out_of_order")
        .when(at_maximum & same & (F.col(OP) != "tombstone"), "duplicate")
        .when(_stored_stands_later(), "out_of_order")
        .otherwise("applied")
    )
    return walked.withColumn(VERDICT, verdict).withColumn(
        TIE, (F.col(VERDICT) == "applied") & at_maximum & (F.col(OP) != "tombstone")
    )


def _is_current(table: TableSpec) -> Column:
    """The last record of the key that set its state; a duplicate counts, for it moves the position of the row."""
    stands = F.col(VERDICT).isin("applied", "duplicate") & ~_stored_stands_later()
    whole = _by_key(table).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    last = F.max(F.when(stands, F.col(POSITION))).over(whole)
    return stands & F.coalesce(last == F.col(POSITION), F.lit(False))
