"""One foreign-key join in one batch: send, answer, resolve, emit. Read from top to bottom it is KIP-213."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from expectations.totals import Keys
from storage.spark.kept_frames import SMALL, Frames
from storage.state.joined_table import joined_schema
from storage.state.pinned_state import State
from transforms.changelog.current_rows import restrict
from transforms.foreign_key_join.emissions import REDUNDANT, TOMBSTONE, emit_pairs, emit_results, redundant
from transforms.foreign_key_join.highwater import MARK, highwater
from transforms.foreign_key_join.insert_only import applied_answers, pair, subscribe
from transforms.foreign_key_join.resolution import resolve_responses
from transforms.foreign_key_join.responses import answer_right_changes, answer_subscriptions, response_schema
from transforms.foreign_key_join.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    with_previous,
)
from transforms.model.join_sides import unknown
from transforms.model.schemas import BATCH, POSITION, PRIMARY_KEY, key_struct, named
from transforms.model.specs import JoinSpec


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
    """Plain inserts, as `transforms.foreign_key_join.insert_only` wants them, where they are worth a way of their
    own; then they are neither among `changes` nor in `after`."""
    plain: bool = False
    """Whether nothing else changed than these inserts."""
    keys: Keys | None = None
    """Their keys, as they were seen when the records were read."""


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
    plain: bool = False
    """Whether it begins with this batch, and with nothing but plain inserts."""
    keys: Keys | None = None
    """The keys of these, where they are known."""


def join_batch(join: JoinSpec, left: Left, right: Right, state: State, frames: Frames) -> JoinBatch:
    """Run a join's steps over the changes of its two sides; nothing is committed here."""
    if left.inserts is not None and left.plain and not state.has_subscriptions(join.name):
        sent = _sent(subscribe(left.inserts, join.how), join)
        batch = _inserted(join, left.inserts, sent, _right_rows(sent, right), right.changes)
        return replace(batch, plain=True, keys=left.keys)
    log = frames.keep(_sent(send_subscriptions(with_previous(left.changes, left.before), join.how), join))
    store = frames.keep(_store(join, log, right, state, frames))

    inserted = None if left.inserts is None else _sent(subscribe(left.inserts, join.how), join)
    sent = log if inserted is None else log.unionByName(inserted)
    right_rows = frames.keep_if_small(_right_rows(sent, right))
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
    return _together(batch, _inserted(join, left.inserts, inserted, right_rows, right.changes))


def _right_rows(sent: DataFrame, right: Right) -> DataFrame:
    """The right rows after the batch that changed or that a message names."""
    return right.after.unionByName(right.lookup(unknown(sent, "foreign_key", right.after)))


def read_back(batch: JoinBatch, log: DataFrame, responses: DataFrame, joined: DataFrame) -> JoinBatch:
    """A join that begins, with its rows read from the files that will be its tables."""
    join = batch.spec
    keyed = joined.withColumns({PRIMARY_KEY: key_struct(join.left_key), TOMBSTONE: F.lit(False)})
    if join.how == "inner":  # an insert is a tombstone where its right row goes in the same batch
        keyed = keyed.unionByName(batch.emissions.where(named(TOMBSTONE)))
    return replace(batch, log=log, responses=responses, emissions=keyed, store=_stored(log))


def _under_way(rows: DataFrame) -> DataFrame:
    """Rows of a batch that is not committed: it has no number yet."""
    return rows.withColumn(BATCH, F.lit(None).cast("bigint"))


def _sent(messages: DataFrame, join: JoinSpec) -> DataFrame:
    return _under_way(messages).select(*subscription_schema(join).names)


def _inserted(
    join: JoinSpec, inserts: DataFrame, sent: DataFrame, right_rows: DataFrame, changed: DataFrame
) -> JoinBatch:
    """What plain inserts, with their messages, lead to. `changed`: the right rows that changed."""
    pairs = pair(inserts, right_rows, changed, join.how)
    return JoinBatch(
        join,
        log=sent,
        responses=applied_answers(pairs, join),
        emissions=_under_way(emit_pairs(pairs, join)),
        left=inserts.withColumnRenamed(POSITION, "position").select(
            "primary_key", "hash", "position", "value"
        ),
        right=right_rows,
        store=_stored(sent),
    )


def _stored(messages: DataFrame) -> DataFrame:
    """The subscriptions of plain inserts: one for each message, for none deletes another."""
    return messages.where(F.col("foreign_key").isNotNull())


def _together(steps: JoinBatch, inserts: JoinBatch) -> JoinBatch:
    """What the steps made of the other changes, and what plain inserts lead to."""
    return replace(
        steps,
        log=steps.log.unionByName(inserts.log),
        responses=steps.responses.unionByName(inserts.responses),
        emissions=steps.emissions.unionByName(inserts.emissions),
        left=steps.left.unionByName(inserts.left),
        store=steps.store.unionByName(inserts.store),
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

    `before`: as `redundant` wants it.
    """
    columns = [named(name) for name in (*joined_schema(batch.spec).names, TOMBSTONE, REDUNDANT)]
    emissions = batch.emissions.withColumn(PRIMARY_KEY, key_struct(batch.spec.joined_key))
    return redundant(emissions, before).select(*columns)
