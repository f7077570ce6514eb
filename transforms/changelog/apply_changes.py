"""Decides what each source record does to its key, in the order of position.

Kafka orders a key's records by offset. Here a day that is replayed or a file that is delivered twice breaks that order.
So each record is compared with the running maximum of `sequence`, which starts from the key's stored row:

- below the maximum: the record is `out_of_order`;
- equal to it, with the same content: it is a `duplicate`;
- equal to it, with other content: the record with the later position wins (`tie`).

The result does not depend on how the input is split into batches. The next batch knows a key by its stored row alone.
So only what that row keeps may raise the maximum: no record that is ignored, expired or quarantined, and no tombstone
line without effect. A purged tombstone still counts at its place: a record that comes too late for it is `expired`.

A tombstone line is one of three:

- The second line of a delete, directly behind it. It has no effect, whatever became of the delete.
- Any other line with a sequence of its own (the position, where that orders the table). It is a delete, also of an
  unknown key: otherwise an older record could bring back what it deleted.
- Any other line. It deletes the row that its key has there and keeps that row's sequence. Without a row it has no
  effect.

A delete that stands for a truncation without a sequence is treated like the last.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.changelog.filtered_rows import filtered
from lakejoin.transforms.changelog.key_order import (
    CANDIDATE,
    COUNTS,
    LAST,
    STORED,
    KeyOrder,
    beside,
    is_delete,
    key_columns,
)
from lakejoin.transforms.changelog.unavailable_values import fill_unavailable, quarantine_unknown
from lakejoin.transforms.model.guards import guarded
from lakejoin.transforms.model.hashing import value_hash
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
    PURGED,
    RAW,
    REASON,
    SEQUENCE,
    TIE,
    UNAVAILABLE,
    VERDICT,
    changes_schema,
    named,
)
from lakejoin.transforms.model.specs import TableSpec

_SECOND_LINE = "_lj_second_line"  # a tombstone line that belongs to the delete on the line before it
_INHERITS = "_lj_inherits"  # a delete without a sequence of its own: it stands where its key stands
_RUNNING = "_lj_running"  # greatest sequence of the key before this record
_APPLIED = "_lj_applied"  # how many records of the key are applied
_LAST = "_lj_last"  # hash and deleted of the last candidate before this record


def apply_changes(
    records: DataFrame, before: DataFrame, table: TableSpec, floor: Column, *, alone: bool = False
) -> DataFrame:
    """Give every record of a batch its status, in the column `VERDICT`.

    `records`: what the parsers yield (declared columns, position, op, sequence, time, context, derived, unavailable,
    raw), without quarantined and truncate ones. `before`: the stored rows of the batch's keys (key columns,
    sequence, position, hash, deleted; every column if a record has unavailable values), with `PURGED` if there are
    purged tombstones among them. `floor`: greatest sequence of the purged ones that are not there, null if none: an
    unknown key at or below it is expired. `alone`: no key has two of the records, which then need not be sorted.

    Returns the columns of `changes_schema` without the batch, with `CHANGED`, `EXISTED` and `INSERTED`, and with
    reason, detail and raw for records that end quarantined because the value they left out is unknown.
    """
    order = KeyOrder(table, alone)
    placed = _with_places(_with_stored(records, before, table), order)
    ordered = _with_running_sequence(quarantine_unknown(placed, order, floor), order, floor)
    judged = _judge(_with_content(_filled(ordered, order), order), floor)
    if PURGED in before.columns:
        judged = _with_expired(judged, order)
    applied = order.whole(F.sum, (F.col(VERDICT) == "applied").cast("int"))
    existed = F.coalesce(~F.col(STORED)[DELETED], F.lit(False))
    marked = judged.withColumns(
        {CURRENT: _is_current(order), _APPLIED: applied, CHANGED: applied > 0, EXISTED: existed}
    )
    once = F.col(CURRENT) & (F.col(VERDICT) == "applied") & (F.col(_APPLIED) == 1)
    return marked.where(~F.col(CONTEXT)).select(
        *[f.name for f in changes_schema(StructType(), table.sequence) if f.name != BATCH],
        *[named(name) for name in table.columns.names],
        CHANGED,
        EXISTED,
        (once & ~F.col(DELETED) & ~F.col(EXISTED)).alias(INSERTED),
        REASON,
        DETAIL,
        RAW,
    )


def _with_stored(records: DataFrame, before: DataFrame, table: TableSpec) -> DataFrame:
    rest = [named(name) for name in before.columns if name not in table.key]
    return beside(records, before.select(*key_columns(table), F.struct(*rest).alias(STORED)), table.key)


def _with_places(records: DataFrame, order: KeyOrder) -> DataFrame:
    former = order.former(F.struct(POSITION, OP, DERIVED))
    next_line = former[POSITION].withField("line", former[POSITION]["line"] + 1)
    # the line before a batch is read as context, but what is derived from it is not
    delete = (former[OP] == "delete") & ~former[DERIVED] & (next_line == F.col(POSITION))
    second_line = (F.col(OP) == "tombstone") & F.coalesce(delete, F.lit(False))
    return records.withColumns(
        {
            _SECOND_LINE: second_line,
            COUNTS: ~F.col(CONTEXT) & (F.col(OP) != "ignored") & ~second_line,
            _INHERITS: F.col(SEQUENCE).isNull(),  # an upsert always has one
        }
    )


def _with_running_sequence(records: DataFrame, order: KeyOrder, floor: Column) -> DataFrame:
    highest = order.before(F.max, F.when(F.col(COUNTS), F.col(SEQUENCE)))
    return (
        records.withColumn(_RUNNING, F.greatest(highest, F.col(STORED)[SEQUENCE]))
        .withColumn(SEQUENCE, F.coalesce(SEQUENCE, _RUNNING))
        .withColumn(CANDIDATE, F.col(COUNTS) & _in_order() & ~_expired(floor) & ~_stored_stands_later())
    )


def _in_order() -> Column:
    """Whether no record of the key before this one has a greater sequence."""
    if not guarded("sequence_check"):
        return F.lit(True)
    return F.col(_RUNNING).isNull() | (F.col(SEQUENCE) >= F.col(_RUNNING))


def _expired(floor: Column) -> Column:
    """An unknown key at or below the floor: its tombstone may have been purged, and be newer than the record."""
    unknown = F.col(STORED).isNull() & (F.col(_RUNNING).isNull() | (F.col(_RUNNING) <= floor))
    return F.coalesce(unknown & (F.col(SEQUENCE) <= floor), F.lit(False))


def _stored_stands_later() -> Column:
    """Equal sequence, but the stored row comes from a later position: a day that was read before its predecessor."""
    stored = F.col(STORED)
    later = (F.col(SEQUENCE) == stored[SEQUENCE]) & (F.col(POSITION) < stored[POSITION])
    return F.coalesce(later, F.lit(False))


def _filled(ordered: DataFrame, order: KeyOrder) -> DataFrame:
    """The records with the values that they had left out, by which a condition can be asked."""
    if UNAVAILABLE not in ordered.columns:
        return ordered
    return filtered(fill_unavailable(ordered, order), order.table, filled=True)


def _with_content(judged: DataFrame, order: KeyOrder) -> DataFrame:
    hashed = judged.withColumns(
        {
            DELETED: is_delete(),
            HASH: F.when(F.col(OP) == "upsert", value_hash(order.table.columns)).otherwise(
                F.lit(None).cast(HASH_TYPE)
            ),
        }
    )
    content = F.struct(F.col(HASH).alias("hash"), F.col(DELETED).alias("deleted"))
    stored = F.when(
        F.col(STORED).isNotNull(),
        F.struct(F.col(STORED)[HASH].alias("hash"), F.col(STORED)[DELETED].alias("deleted")),
    )
    last = order.before(LAST, F.when(F.col(CANDIDATE), content))
    return hashed.withColumn(_LAST, F.coalesce(last, stored))


def _judge(judged: DataFrame, floor: Column) -> DataFrame:
    last = F.col(_LAST)
    same = last.isNotNull() & last["hash"].eqNullSafe(F.col(HASH)) & (last["deleted"] == F.col(DELETED))
    at_maximum = F.coalesce(F.col(SEQUENCE) == F.col(_RUNNING), F.lit(False))
    without_effect = F.col(_SECOND_LINE) | (F.col(_INHERITS) & (last.isNull() | last["deleted"]))
    verdict = (
        F.when(F.col(CONTEXT) | (F.col(OP) == "ignored"), "ignored")
        .when(F.col(REASON).isNotNull(), "quarantined")
        .when(without_effect, "tombstone")
        .when(_expired(floor), "expired")
        .when(~_in_order(), "out_of_order")
        .when(at_maximum & same & F.lit(guarded("deduplication")), "duplicate")
        .when(_stored_stands_later(), "out_of_order")
        .otherwise("applied")
    )
    return judged.withColumn(VERDICT, verdict).withColumn(
        TIE, (F.col(VERDICT) == "applied") & at_maximum & ~F.col(_INHERITS)
    )


def _with_expired(judged: DataFrame, order: KeyOrder) -> DataFrame:
    """Call `expired` what comes too late for a purged tombstone, as long as no record has brought its key back."""
    moves = F.col(VERDICT).isin("applied", "duplicate") & ~_stored_stands_later()
    is_back = F.coalesce(order.before(F.bool_or, moves), F.lit(False))
    repeated = (F.col(VERDICT) == "duplicate") & _stored_stands_later()
    late = (F.col(VERDICT) == "out_of_order") | repeated
    expired = F.col(STORED)[PURGED] & late & ~is_back
    return judged.withColumn(VERDICT, F.when(expired, "expired").otherwise(F.col(VERDICT)))


def _is_current(order: KeyOrder) -> Column:
    """The last record of the key that set its state; a duplicate counts, for it moves the position of the row."""
    stands = F.col(VERDICT).isin("applied", "duplicate") & ~_stored_stands_later()
    last = order.whole(F.max, F.when(stands, F.col(POSITION)))
    return stands & F.coalesce(last == F.col(POSITION), F.lit(False))
