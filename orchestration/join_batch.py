"""One foreign-key join in one batch: send, answer, resolve, emit. Read from top to bottom it is KIP-213."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from storage.frames import SMALL, gather, keep, release
from storage.joined import joined_schema
from storage.state import State
from transforms.resolution import (
    LEFT_HASH,
    RIGHT_HASH,
    TOMBSTONE,
    emit_results,
    redundant,
    resolve_responses,
)
from transforms.responses import answer_right_changes, answer_subscriptions, response_schema
from transforms.rows import restrict
from transforms.schemas import BATCH, JoinSpec, named
from transforms.sides import foreign_key
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
    """primary_key, hash, position, value of the changed keys' rows after the batch."""
    lookup: Callable[[DataFrame, bool], DataFrame]
    """The same columns for keys that did not change; the flag says whether they fit on every task."""


@dataclass(frozen=True)
class Right:
    """The right side of a join in a batch."""

    changed: int
    changes: DataFrame
    """primary_key, hash, position of the rows that changed, after the batch; tombstones have no hash."""
    after: DataFrame
    """primary_key, hash, position, value of the batch's keys after it."""
    lookup: Callable[[DataFrame, bool], DataFrame]


@dataclass(frozen=True)
class JoinBatch:
    """What a batch does to a join."""

    join: JoinSpec
    log: DataFrame
    """Rows of `subscription_log`."""
    responses: DataFrame
    """Rows of `response_log`."""
    emissions: DataFrame
    """Rows of the joined table with primary_key and `TOMBSTONE`."""
    left: DataFrame
    """primary_key, hash, position, value of the touched left rows after the batch."""
    right: DataFrame
    """The same of the right rows that answers name."""
    store: DataFrame
    """Live subscriptions at hand: of the changed left rows and of the changed right keys."""
    small: bool
    """Whether the batch and all that it touches fit one task."""

    def release(self) -> None:
        """Free what was kept for the batch."""
        for frame in (self.log, self.responses, self.emissions, self.left, self.right, self.store):
            release(frame)


def join_batch(
    join: JoinSpec, left: Left, right: Right, state: State, *, small: bool, grow: Callable[[], None]
) -> JoinBatch:
    """Run a join's steps over the changes of its two sides; nothing is committed here.

    `small`: the changes of both sides fit one task. `grow`: called where what they touch does not.
    """
    under_way = F.lit(None).cast("bigint")
    log = send_subscriptions(with_previous(left.changes, left.before), join.how).withColumn(BATCH, under_way)
    log = keep(log.select(*subscription_schema(join).names), small=small)
    store = keep(_store(join, log, right, state, small=small), small=small)

    right_rows = right.after.unionByName(right.lookup(_unknown(log, "foreign_key", right.after), small))
    right_rows = keep(right_rows, small=small)
    answers, left_rows = answer_subscriptions(log, right_rows), left.after
    if right.changed:
        answers = answers.unionByName(answer_right_changes(right.changes, store))
    answers = keep(answers, small=small)
    if right.changed:
        # only the store knows how many left rows point at the changed right ones: count before looking them up
        if answers.count() > SMALL:
            small = False
            grow()
        left_rows = left_rows.unionByName(left.lookup(_unknown(answers, "primary_key", left.after), small))
    # only what sent a message or got an answer: the subscription of a row that a duplicate met is not at hand
    touched = gather(log.select("primary_key").unionByName(answers.select("primary_key")), small=small)
    left_rows = gather(left_rows, small=small).join(touched, "primary_key", "left_semi")
    left_rows = keep(left_rows, small=small)
    resolved = resolve_responses(answers, left_rows).withColumn(BATCH, under_way)
    resolved = keep(resolved.select(*response_schema(join).names), small=small)
    emissions = emit_results(resolved, left_rows, right_rows, join).withColumn(BATCH, under_way)
    return JoinBatch(
        join, log, resolved, keep(emissions, small=small), left_rows, right_rows, store, small=small
    )


def _store(join: JoinSpec, log: DataFrame, right: Right, state: State, *, small: bool) -> DataFrame:
    """Live subscriptions after the batch, as far as the batch needs them: those of the changed right keys.

    The CombinedKey begins with the foreign key, so a lookup by it finds every message that bears on the answer.
    """
    messages = log
    if right.changed and state.has_subscriptions(join.name):
        wanted = right.changes.select(F.col("primary_key").alias("foreign_key"))
        found = restrict(state.subscriptions(join), wanted, ("foreign_key",), small=small)
        messages = log.unionByName(found)
    return live_subscriptions(messages)


def _unknown(messages: DataFrame, column: str, known: DataFrame) -> DataFrame:
    """Keys that messages name and the batch did not change, each once."""
    named_keys = messages.select(F.col(column).alias("primary_key")).where(F.col("primary_key").isNotNull())
    return named_keys.distinct().join(known.select("primary_key"), "primary_key", "left_anti")


def changelog_rows(batch: JoinBatch, before: DataFrame) -> DataFrame:
    """Rows of `changelog`: each emission, and whether it leaves the joined table as it was."""
    columns = [named(name) for name in (*joined_schema(batch.join).names, TOMBSTONE, "redundant")]
    return redundant(batch.emissions, before).select(*columns)


def rule_frames(batch: JoinBatch) -> dict[str, DataFrame]:
    """The rows at hand as the five frames that the rules of `expectations` read, restricted to touched keys."""
    left = batch.left.select("primary_key", "hash", "value.*")
    right_key = F.struct(*[named(batch.join.prefix + name).alias(name) for name in batch.join.right_key])
    return {
        "left_rows": left.select(
            "primary_key",
            F.when(F.col("hash").isNotNull(), foreign_key(batch.join)).alias("foreign_key"),
            "hash",
            F.col("hash").isNull().alias("deleted"),
        ),
        "subscriptions": batch.store.select("foreign_key", "primary_key", "hash"),
        "right_rows": batch.right.select("primary_key", "hash", F.col("hash").isNull().alias("deleted")),
        "responses": batch.responses.select(
            "primary_key", "foreign_key", "hash", "cause", "resolution", F.col(BATCH).alias("batch")
        ),
        "joined": batch.emissions.where(~named(TOMBSTONE)).select(
            "primary_key",
            named(LEFT_HASH).alias("left_hash"),
            F.when(named(RIGHT_HASH).isNotNull(), right_key).alias("right_key"),
            named(RIGHT_HASH).alias("right_hash"),
            F.col(BATCH).alias("batch"),
        ),
    }
