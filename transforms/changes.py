"""From source records to changes: what each record does to its key, decided by a walk in the order of position.

Kafka orders a key's records by offset; a replayed day or a second delivery breaks that order here. So each record
is held against the running maximum of `sequence`, starting from the key's stored row: a record below it is
`out_of_order`, one at it with the same content a `duplicate`, one at it with other content wins if it stands later
(`tie`).

Nothing depends on how the input was cut into batches. The next batch knows a key by its stored row alone, so only
what that row keeps may raise the maximum: no record that is ignored, expired or quarantined, and no tombstone line
without effect. A tombstone line is one of three:

- the second line of a delete, on the line after it: without effect, whatever became of the delete;
- any other with a sequence of its own (the position, where that orders the table): a delete, of an unknown key too,
  for else an older record could bring back what it deleted;
- any other: it deletes the row that its key has there and keeps that row's sequence; without one, it has no effect.

A delete that stands for a truncation which carries no sequence is like the last.
"""

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from transforms.guards import stands
from transforms.hashing import value_hash
from transforms.schemas import (
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
_COUNTS = "_lj_counts"  # the record has a place in its key's order
_SECOND_LINE = "_lj_second_line"  # a tombstone line that belongs to the delete on the line before it
_INHERITS = "_lj_inherits"  # a delete without a sequence of its own: it stands where its key stands
_RUNNING = "_lj_running"  # greatest sequence of the key before this record
_CANDIDATE = "_lj_candidate"  # the record is in order: afterwards its key is what it says
_UNKNOWN = "_lj_unknown"  # the record left out a value which its key does not have
_DOUBTFUL = "_lj_doubtful"  # a record of this key left out a value
_START, _STEPS, _MARKS = "_lj_start", "_lj_steps", "_lj_marks"  # what follows a key record by record
_APPLIED = "_lj_applied"  # how many records of the key are applied
_LAST = "_lj_last"  # hash and deleted of the last candidate before this record


def walk(records: DataFrame, before: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    """Give every record of a batch its verdict.

    `records`: what the parsers yield (declared columns, position, op, sequence, time, context, derived, unavailable,
    raw), without quarantined and truncate ones. `before`: the stored rows of the batch's keys (key columns,
    sequence, position, hash, deleted; every column if a record has unavailable values). `floor`: greatest sequence
    of a purged tombstone, null if none: an unknown key at or below it is expired.

    Returns the columns of `changes_schema` without the batch, with `CHANGED`, `EXISTED` and `INSERTED`, and with
    reason, detail and raw for records that end quarantined because the value they left out is unknown.
    """
    placed = _with_places(_with_stored(records, before, table), table)
    ordered = _with_running_sequence(_quarantine_unknown(placed, table, floor), table, floor)
    judged = _judge(_with_content(_fill_unavailable(ordered, table), table), floor)
    applied = F.count_if(F.col(VERDICT) == "applied").over(_whole(table))
    existed = F.coalesce(~F.col(_STORED)[DELETED], F.lit(False))
    marked = judged.withColumns(
        {CURRENT: _is_current(table), _APPLIED: applied, CHANGED: applied > 0, EXISTED: existed}
    )
    alone = F.col(CURRENT) & (F.col(VERDICT) == "applied") & (F.col(_APPLIED) == 1)
    return marked.where(~F.col(CONTEXT)).select(
        *[f.name for f in changes_schema(StructType(), table.sequence) if f.name != BATCH],
        *[named(name) for name in table.columns.names],
        CHANGED,
        EXISTED,
        (alone & ~F.col(DELETED) & ~F.col(EXISTED)).alias(INSERTED),
        REASON,
        DETAIL,
        RAW,
    )


def _with_stored(records: DataFrame, before: DataFrame, table: TableSpec) -> DataFrame:
    rest = [named(name) for name in before.columns if name not in table.key]
    return _beside(records, before.select(*_key(table), F.struct(*rest).alias(_STORED)), table.key)


def _beside(records: DataFrame, other: DataFrame, common: tuple[str, ...]) -> DataFrame:
    """Put beside each record the columns of the row that has the same values in the common ones."""
    renamed = {name: f"_lj_other_{name}" for name in common}
    same = reduce(and_, [named(name) == named(new) for name, new in renamed.items()])
    return records.join(other.withColumnsRenamed(renamed), same, "left").drop(*renamed.values())


def _key(table: TableSpec) -> list[Column]:
    return [named(name) for name in table.key]


def _by_key(table: TableSpec) -> WindowSpec:
    # a position is unique within a key: a derived delete shares it with a record of another key only
    return Window.partitionBy(*_key(table)).orderBy(POSITION)


def _earlier(table: TableSpec) -> WindowSpec:
    return _by_key(table).rowsBetween(Window.unboundedPreceding, -1)


def _whole(table: TableSpec) -> WindowSpec:
    return _by_key(table).rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)


def _with_places(records: DataFrame, table: TableSpec) -> DataFrame:
    former = F.lag(F.struct(POSITION, OP, DERIVED)).over(_by_key(table))
    next_line = former[POSITION].withField("line", former[POSITION]["line"] + 1)
    # the line before a batch is read as context, but what is derived from it is not
    delete = (former[OP] == "delete") & ~former[DERIVED] & (next_line == F.col(POSITION))
    second_line = (F.col(OP) == "tombstone") & F.coalesce(delete, F.lit(False))
    return records.withColumns(
        {
            _SECOND_LINE: second_line,
            _COUNTS: ~F.col(CONTEXT) & (F.col(OP) != "ignored") & ~second_line,
            _INHERITS: F.col(SEQUENCE).isNull(),  # an upsert always has one
        }
    )


def _quarantine_unknown(placed: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    """Set aside the records that left out a value which their key does not have, or had at another time.

    Whether one is set aside depends on the records before it, and decides what those after it are held against: a
    chain of any length, which no fixed number of windows resolves. So such keys are followed record by record.
    """
    if UNAVAILABLE not in placed.columns:
        return placed
    unknown = _unknown_values(placed, table, floor).withColumn(_UNKNOWN, F.lit(True))
    found = F.coalesce(_UNKNOWN, F.lit(False))
    return _beside(placed, unknown, (*table.key, POSITION)).withColumns(
        {
            REASON: F.when(found, F.lit("unavailable_value")),
            DETAIL: F.when(found, F.array_join(UNAVAILABLE, ", ")),
            _COUNTS: F.col(_COUNTS) & ~found,
        }
    )


def _unknown_values(placed: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    """Key and position of the records to set aside."""
    stored = F.col(_STORED)
    at = F.struct(stored[SEQUENCE].alias(SEQUENCE), stored[POSITION].alias(POSITION))
    start = F.struct(
        F.when(stored.isNotNull(), at).alias("at"),
        F.coalesce(~stored[DELETED], F.lit(False)).alias("exists"),
        F.lit("").alias("marks"),
    )
    left_out = F.col(UNAVAILABLE).isNotNull()
    step = F.struct(POSITION, SEQUENCE, _is_delete().alias("deletes"), left_out.alias("left_out"))
    followed = F.aggregate(
        _STEPS,
        F.col(_START),
        lambda key, record: _follow(key, record, floor, has_history=table.history_retention is not None),
        lambda key: key["marks"],
    )
    set_aside = F.filter(_STEPS, lambda _, number: F.get(_MARKS, number) == "?")
    return (
        placed.withColumn(_DOUBTFUL, F.bool_or(left_out).over(Window.partitionBy(*_key(table))))
        .where(F.col(_DOUBTFUL) & F.col(_COUNTS))
        .groupBy(*_key(table))
        .agg(F.first(start).alias(_START), F.sort_array(F.collect_list(step)).alias(_STEPS))
        .withColumn(_MARKS, F.split(followed, ""))
        .select(*_key(table), F.explode(set_aside[POSITION]).alias(POSITION))
    )


def _is_delete() -> Column:
    return F.col(OP).isin("delete", "tombstone")


def _follow(key: Column, record: Column, floor: Column, *, has_history: bool) -> Column:
    """What is known of a key after a record: where it stands, if it has a row, and a mark for each record so far.

    `has_history`: a record that comes late enters the history, where the key may have had another value than now.
    """
    sequence = F.coalesce(record[SEQUENCE], key["at"][SEQUENCE])
    at = F.struct(sequence.alias(SEQUENCE), record[POSITION].alias(POSITION))
    is_new = F.coalesce(sequence > floor, sequence.isNotNull())
    in_order = F.when(key["at"].isNull(), is_new).otherwise(at >= key["at"])
    unknown = in_order & record["left_out"] & ~key["exists"]
    if has_history:
        unknown |= F.coalesce(record["left_out"] & (sequence < key["at"][SEQUENCE]), F.lit(False))
    counts = in_order & ~unknown
    return F.struct(
        F.when(counts, at).otherwise(key["at"]).alias("at"),
        F.when(counts, ~record["deletes"]).otherwise(key["exists"]).alias("exists"),
        # a text: to append to an array takes so much longer that a key with many records would stop the batch
        F.concat(key["marks"], F.when(unknown, "?").otherwise(".")).alias("marks"),
    )


def _with_running_sequence(records: DataFrame, table: TableSpec, floor: Column) -> DataFrame:
    highest = F.max(F.when(F.col(_COUNTS), F.col(SEQUENCE))).over(_earlier(table))
    return (
        records.withColumn(_RUNNING, F.greatest(highest, F.col(_STORED)[SEQUENCE]))
        .withColumn(SEQUENCE, F.coalesce(SEQUENCE, _RUNNING))
        .withColumn(_CANDIDATE, F.col(_COUNTS) & _in_order() & ~_expired(floor) & ~_stored_stands_later())
    )


def _in_order() -> Column:
    """Whether no record of the key before this one has a greater sequence."""
    if not stands("sequence_check"):
        return F.lit(True)
    return F.col(_RUNNING).isNull() | (F.col(SEQUENCE) >= F.col(_RUNNING))


def _expired(floor: Column) -> Column:
    """An unknown key at or below the floor: its tombstone may have been purged, so it must not come back."""
    unknown = F.col(_STORED).isNull() & (F.col(_RUNNING).isNull() | (F.col(_RUNNING) <= floor))
    return F.coalesce(unknown & (F.col(SEQUENCE) <= floor), F.lit(False))


def _stored_stands_later() -> Column:
    """Equal sequence, but the stored row comes from a later position: a day that was read before its predecessor."""
    stored = F.col(_STORED)
    later = (F.col(SEQUENCE) == stored[SEQUENCE]) & (F.col(POSITION) < stored[POSITION])
    return F.coalesce(later, F.lit(False))


def _fill_unavailable(ordered: DataFrame, table: TableSpec) -> DataFrame:
    """Put the key's value at this place where the source sent none because it had not changed."""
    if UNAVAILABLE not in ordered.columns:
        return ordered
    filled = {}
    for name in [name for name in table.columns.names if name not in table.key]:
        left_out = F.coalesce(F.array_contains(UNAVAILABLE, name), F.lit(False))
        # within a struct, for the last value may be null
        known = F.when(F.col(_CANDIDATE) & ~left_out, F.struct(named(name).alias("value")))
        stored = F.when(F.col(_STORED).isNotNull(), F.struct(F.col(_STORED)[name].alias("value")))
        last = F.coalesce(F.last(known, ignorenulls=True).over(_earlier(table)), stored)
        filled[name] = F.when(left_out, last["value"]).otherwise(named(name))
    return ordered.withColumns(filled)


def _with_content(walked: DataFrame, table: TableSpec) -> DataFrame:
    hashed = walked.withColumns(
        {
            DELETED: _is_delete(),
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
    without_effect = F.col(_SECOND_LINE) | (F.col(_INHERITS) & (last.isNull() | last["deleted"]))
    verdict = (
        F.when(F.col(CONTEXT) | (F.col(OP) == "ignored"), "ignored")
        .when(F.col(REASON).isNotNull(), "quarantined")
        .when(without_effect, "tombstone")
        .when(_expired(floor), "expired")
        .when(~_in_order(), "out_of_order")
        .when(at_maximum & same & F.lit(stands("deduplication")), "duplicate")
        .when(_stored_stands_later(), "out_of_order")
        .otherwise("applied")
    )
    return walked.withColumn(VERDICT, verdict).withColumn(
        TIE, (F.col(VERDICT) == "applied") & at_maximum & ~F.col(_INHERITS)
    )


def _is_current(table: TableSpec) -> Column:
    """The last record of the key that set its state; a duplicate counts, for it moves the position of the row."""
    stands = F.col(VERDICT).isin("applied", "duplicate") & ~_stored_stands_later()
    last = F.max(F.when(stands, F.col(POSITION))).over(_whole(table))
    return stands & F.coalesce(last == F.col(POSITION), F.lit(False))
