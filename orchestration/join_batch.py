"""One foreign-key join in one batch: send, answer, resolve, emit. Read from top to bottom it is KIP-213."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from storage.frames import SMALL, Frames
from storage.joined import joined_schema
from storage.state import State
from transforms.inserts import applied_answers, pair, subscribe
from transforms.marks import MARK, highwater
from transforms.resolution import (
    LEFT_HASH,
    REDUNDANT,
    RIGHT_HASH,
    TOMBSTONE,
    emit_pairs,
    emit_results,
    redundant,
    resolve_responses,
)
from transforms.responses import answer_right_changes, answer_subscriptions, response_schema
from transforms.rows import restrict
from transforms.schemas import BATCH, HASH, POSITION, PRIMARY_KEY, key_struct, named
from transforms.sides import foreign_key, unknown
from transforms.specs import JoinSpec
from transforms.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    with_previous,
)


@dataclass(frozen=True)
class Left:
    """The left side of a join in a batch."""

    changed: int
    """How many changes there are; 0 spares every job they would need."""
    changes: DataFrame
    """primary_key, position, foreign_key, hash of each change, in no order."""
    before: DataFrame
    """primary_key, foreign_key of the live rows before the batch, of the changed keys."""
    after: DataFrame
    """primary_key, hash, position, value of the changed keys' rows after the batch; no other key's."""
    lookup: Callable[[DataFrame], DataFrame]
    """The same columns for keys that did not change."""
    inserts: DataFrame | None = None
    """Plain inserts, as `transforms.inserts` wants them, where they are worth a way of their own; then they are neither
    among `changes` nor in `after`."""


@dataclass(frozen=True)
class Right:
    """The right side of a join in a batch."""

    changed: int
    changes: DataFrame
    """primary_key, hash, position of the rows that changed, after the batch; tombstones have no hash."""
    after: DataFrame
    """primary_key, hash, position, value of the batch's keys after it."""
    lookup: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class JoinBatch:
    """What a batch does to a join."""

    spec: JoinSpec
    log: DataFrame
    """Rows of `subscription_log`."""
    responses: DataFrame
    """Rows of `response_log`."""
    emissions: DataFrame
    """Rows of the joined table with `PRIMARY_KEY` and `TOMBSTONE`."""
    left: DataFrame
    """primary_key, hash, position, value of the touched left rows after the batch, and of changed ones."""
    right: DataFrame
    """The same of the right rows that answers name."""
    store: DataFrame
    """Live subscriptions at hand: of the changed left rows and of the changed right keys."""


def join_batch(join: JoinSpec, left: Left, right: Right, state: State, frames: Frames) -> JoinBatch:
    """Run a join's steps over the changes of its two sides; nothing is committed here."""
    log = frames.keep(_sent(send_subscriptions(with_previous(left.changes, left.before), join.how), join))
    store = frames.keep(_store(join, log, right, state, frames))

    inserted = None if left.inserts is None else _sent(subscribe(left.inserts, join.how), join)
    sent = log if inserted is None else log.unionByName(inserted)
    right_rows = right.after.unionByName(right.lookup(unknown(sent, "foreign_key", right.after)))
    right_rows = frames.keep_if_small(right_rows)
    answers, left_rows = answer_subscriptions(log, right_rows), left.after
    if right.changed:
        answers = answers.unionByName(answer_right_changes(right.changes, store))
        answers = frames.keep(answers if join.resolution == "highwater" else answers.drop(MARK))
        left_rows = left_rows.unionByName(left.lookup(unknown(answers, "primary_key", left.after)))
    left_rows = frames.keep_if_small(left_rows)
    current = left_rows if join.resolution == "hash" else _marks(join, log, answers, right, state, frames)
    resolved = _under_way(resolve_responses(answers, current, join.resolution))
    resolved = frames.keep(resolved.select(*response_schema(join).names))
    before = left.before if join.result_key == "combined" else None
    emissions = _under_way(emit_results(resolved, left_rows, right_rows, join, before))
    batch = JoinBatch(join, log, resolved, frames.keep_if_small(emissions), left_rows, right_rows, store)
    if left.inserts is None or inserted is None:
        return batch
    return _with_inserts(batch, left.inserts, inserted, right.changes)


def _under_way(rows: DataFrame) -> DataFrame:
    """Rows of a batch that is not committed: it has no number yet."""
    return rows.withColumn(BATCH, F.lit(None).cast("bigint"))


def _sent(messages: DataFrame, join: JoinSpec) -> DataFrame:
    return _under_way(messages).select(*subscription_schema(join).names)


def _with_inserts(batch: JoinBatch, inserts: DataFrame, log: DataFrame, changed: DataFrame) -> JoinBatch:
    """Put beside what the steps made of the other changes what plain inserts, with their messages, lead to."""
    join = batch.spec
    pairs = pair(inserts, batch.right, changed, join.how)
    rows = inserts.withColumnRenamed(POSITION, "position").select(*batch.left.columns)
    return replace(
        batch,
        log=batch.log.unionByName(log),
        responses=batch.responses.unionByName(applied_answers(pairs, join)),
        emissions=batch.emissions.unionByName(_under_way(emit_pairs(pairs, join))),
        left=batch.left.unionByName(rows),
        store=batch.store.unionByName(log.where(F.col("foreign_key").isNotNull())),
    )


def _store(join: JoinSpec, log: DataFrame, right: Right, state: State, frames: Frames) -> DataFrame:
    """Live subscriptions after the batch, as far as the batch needs them: those of the changed right keys.

    The CombinedKey begins with the foreign key, so a lookup by it finds every message that bears on the answer. A small
    batch goes on as a large one where they are many: so many answers there will be.
    """
    messages = log
    if right.changed and state.has_subscriptions(join.name):
        wanted = right.changes.select(F.col("primary_key").alias("foreign_key"))
        found = state.subscriptions_to(join, wanted, small=frames.small)
        if frames.small:
            found = frames.keep_scattered(found)
            if found.count() > SMALL:
                frames.grow()
        messages = log.unionByName(found)
    return live_subscriptions(messages)


def _marks(
    join: JoinSpec, log: DataFrame, answers: DataFrame, right: Right, state: State, frames: Frames
) -> DataFrame:
    """Highwater marks of the keys that answers name: of this batch's messages, else of the store's.

    Only a right change makes the store answer; whoever sent a message in this batch has none that is higher.
    """
    messages = log
    if right.changed and state.has_subscriptions(join.name):
        wanted = answers.select("primary_key").distinct()
        found = restrict(state.subscriptions(join), wanted, ("primary_key",), small=frames.small)
        messages = log.unionByName(found)
    return highwater(messages)


def changelog_rows(batch: JoinBatch, before: DataFrame) -> DataFrame:
    """Rows of `changelog`: each emission, and whether it leaves the joined table as it was.

    `before`: key (as primary_key) and hash of the joined table's rows before the batch.
    """
    columns = [named(name) for name in (*joined_schema(batch.spec).names, TOMBSTONE, REDUNDANT)]
    emissions = batch.emissions.withColumn(PRIMARY_KEY, key_struct(batch.spec.joined_key))
    return redundant(emissions, before).select(*columns)


def seen_by_rules(batch: JoinBatch) -> DataFrame:
    """The emissions as far as rules and counts look at them: keys, hashes, and which are tombstones."""
    keys = [named(batch.spec.prefix + name) for name in batch.spec.right_key]
    return batch.emissions.select(PRIMARY_KEY, TOMBSTONE, LEFT_HASH, RIGHT_HASH, *keys, BATCH)


def rule_frames(batch: JoinBatch, emissions: DataFrame) -> dict[str, DataFrame]:
    """The rows at hand as the five frames that the rules of `expectations` read, restricted to touched keys."""
    # apart from the row's own columns, which its foreign key is made of
    left = batch.left.select(F.col("primary_key").alias(PRIMARY_KEY), F.col("hash").alias(HASH), "value.*")
    right_key = F.struct(*[named(batch.spec.prefix + name).alias(name) for name in batch.spec.right_key])
    return {
        "left_rows": left.select(
            F.col(PRIMARY_KEY).alias("primary_key"),
            F.when(F.col(HASH).isNotNull(), foreign_key(batch.spec)).alias("foreign_key"),
            F.col(HASH).alias("hash"),
            F.col(HASH).isNull().alias("deleted"),
        ),
        "subscriptions": batch.store.select("foreign_key", "primary_key", "hash"),
        "right_rows": batch.right.select("primary_key", "hash", F.col("hash").isNull().alias("deleted")),
        "answers": batch.responses.where(F.col("resolution") == "applied").select(
            "primary_key", "foreign_key", "hash", "cause"
        ),
        "joined": emissions.where(~named(TOMBSTONE)).select(
            F.col(PRIMARY_KEY).alias("primary_key"),
            named(LEFT_HASH).alias("left_hash"),
            F.when(named(RIGHT_HASH).isNotNull(), right_key).alias("right_key"),
            named(RIGHT_HASH).alias("right_hash"),
            F.col(BATCH).alias("batch"),
        ),
    }
