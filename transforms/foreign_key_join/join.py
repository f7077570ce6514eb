"""Joins the changes of a batch by foreign key: send, answer, resolve, emit (KIP-213)."""

from dataclasses import replace
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.foreign_key_join.batch import JoinBatch, Left, Right
from transforms.foreign_key_join.emissions import emit_results
from transforms.foreign_key_join.highwater import MARK, highwater
from transforms.foreign_key_join.insert_only import join_inserts, subscribe
from transforms.foreign_key_join.resolution import resolve_responses
from transforms.foreign_key_join.responses import answer_right_changes, answer_subscriptions, response_schema
from transforms.foreign_key_join.subscriptions import live_subscriptions, send_subscriptions, with_previous
from transforms.model.join_sides import unknown
from transforms.model.keys import Keys
from transforms.model.schemas import BATCH, no_batch
from transforms.model.specs import JoinSpec


class Subscriptions(Protocol):
    """The messages that were sent before the batch."""

    def has_subscriptions(self, join: str) -> bool:
        """Whether there are any."""

    def subscriptions_to(self, join: JoinSpec, keys: Keys) -> DataFrame:
        """Those to some right keys. `keys`: the column `foreign_key`."""

    def subscriptions_of(self, join: JoinSpec, keys: Keys) -> DataFrame:
        """Those of some left keys. `keys`: the column `primary_key`."""


class Frames(Protocol):
    """Keeps what is read more than once, as it suits the size of the batch."""

    def keep(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once."""

    def keep_if_small(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once if they are few."""

    def keep_found(self, frame: DataFrame) -> DataFrame:
        """The same rows, which few keys have found and which may be many."""

    def keys(self, rows: DataFrame, most: int | None = None) -> Keys:
        """Keys of the batch, to look rows up by; `most`: at most so many, where that is known."""


def join_batch(join: JoinSpec, left: Left, right: Right, stored: Subscriptions, frames: Frames) -> JoinBatch:
    """Lead the changes of a join's two sides to its emissions; nothing is committed here."""
    inserts = left.inserts
    if inserts is not None and inserts.alone and not stored.has_subscriptions(join.name):
        right_rows = _right_rows(subscribe(inserts.rows, join.how), right)
        return replace(join_inserts(join, inserts, right_rows, right.changes), first=inserts)

    log = frames.keep(send_subscriptions(with_previous(left.changes, left.before), join.how))
    store = frames.keep(live_subscriptions(_messages_to_changed(join, log, right, stored, frames)))

    sent = log if inserts is None else log.unionByName(subscribe(inserts.rows, join.how))
    right_rows = frames.keep_if_small(_right_rows(sent, right))
    answers, left_rows = answer_subscriptions(log, right_rows), left.after
    if right.changed:
        answers = answers.unionByName(answer_right_changes(right.changes, store))
        answers = frames.keep(answers if join.resolution == "highwater" else answers.drop(MARK))
        left_rows = left_rows.unionByName(left.lookup(unknown(answers, "primary_key", left.after)))
    left_rows = frames.keep_if_small(left_rows)

    current = left_rows
    if join.resolution == "highwater":
        current = highwater(_messages_of_answered(join, log, answers, right, stored, frames))
    resolved = resolve_responses(answers, current, join.resolution)
    responses = frames.keep(resolved.withColumn(BATCH, no_batch()).select(*response_schema(join).names))

    before = left.before if join.result_key == "combined" else None
    emissions = frames.keep_if_small(emit_results(responses, left_rows, right_rows, join, before))
    batch = JoinBatch(join, log, responses, emissions, left_rows, right_rows, store)
    if inserts is None:
        return batch
    return _together(batch, join_inserts(join, inserts, right_rows, right.changes))


def _right_rows(sent: DataFrame, right: Right) -> DataFrame:
    """The right rows after the batch that changed or that a message names."""
    return right.after.unionByName(right.lookup(unknown(sent, "foreign_key", right.after)))


def _messages_to_changed(
    join: JoinSpec, log: DataFrame, right: Right, stored: Subscriptions, frames: Frames
) -> DataFrame:
    """The messages of the batch, and the stored ones to the right keys that changed.

    The CombinedKey begins with the foreign key, so a lookup by it finds every message that bears on the answer. A small
    batch goes on as a large one where they are many: so many answers there will be.
    """
    if not right.changed or not stored.has_subscriptions(join.name):
        return log
    wanted = frames.keys(right.changes.select(F.col("primary_key").alias("foreign_key")), right.changed)
    return log.unionByName(frames.keep_found(stored.subscriptions_to(join, wanted)))


def _messages_of_answered(
    join: JoinSpec, log: DataFrame, answers: DataFrame, right: Right, stored: Subscriptions, frames: Frames
) -> DataFrame:
    """The messages of the batch, and the stored ones of the left keys that answers name.

    Only a right change makes the store answer; whoever sent a message in this batch has none with a higher mark.
    """
    if not right.changed or not stored.has_subscriptions(join.name):
        return log
    wanted = frames.keys(answers.select("primary_key").distinct())
    return log.unionByName(stored.subscriptions_of(join, wanted))


def _together(steps: JoinBatch, inserts: JoinBatch) -> JoinBatch:
    """What the steps made of the other changes, and what inserts lead to."""
    return replace(
        steps,
        log=steps.log.unionByName(inserts.log),
        responses=steps.responses.unionByName(inserts.responses),
        emissions=steps.emissions.unionByName(inserts.emissions),
        left=steps.left.unionByName(inserts.left),
        store=steps.store.unionByName(inserts.store),
    )
