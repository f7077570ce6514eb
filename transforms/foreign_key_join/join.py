"""Joins the changes of a batch by foreign key: send, answer, resolve, emit (KIP-213)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.foreign_key_join.batch import Inserts, JoinBatch, Left, Messages, Right
from lakejoin.transforms.foreign_key_join.emissions import emit_results
from lakejoin.transforms.foreign_key_join.highwater import MARK, highwater
from lakejoin.transforms.foreign_key_join.insert_only import join_inserts, subscribe
from lakejoin.transforms.foreign_key_join.resolution import resolve_responses
from lakejoin.transforms.foreign_key_join.responses import (
    answer_right_changes,
    answer_subscriptions,
    response_schema,
)
from lakejoin.transforms.foreign_key_join.star import emit_star, emitted_and_withheld
from lakejoin.transforms.foreign_key_join.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    with_previous,
)
from lakejoin.transforms.model.join_sides import of_part, unknown, with_foreign_keys
from lakejoin.transforms.model.keys import Keys
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, empty, no_batch
from lakejoin.transforms.model.specs import JoinSpec, StarSpec


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


@dataclass(frozen=True)
class _Sent:
    """What a right side was sent in a batch, and what it tells of its own changes."""

    spec: JoinSpec
    right: Right
    log: DataFrame
    store: DataFrame
    told: DataFrame | None
    """Answers to its changes; None where there are none."""


def join_batch(
    join: ResultSpec, left: Left, rights: Sequence[Right], stored: Subscriptions, frames: Frames
) -> JoinBatch:
    """Lead the changes of a join's sides to its emissions; nothing is committed here."""
    inserts = left.inserts
    if inserts and inserts.alone and not any(stored.has_subscriptions(part.name) for part in join.parts):
        return replace(_insert(join, inserts, rights), first=inserts)

    sent = _send(join, left, rights, stored, frames)
    left_rows, found = _left_rows(sent, left, frames)
    right_rows = [
        frames.keep_if_small(_right_rows(part, inserts, _found_by_others(part, sent, found))) for part in sent
    ]
    answered = list(zip(sent, right_rows, strict=True))
    responses = [frames.keep(_resolve(part, rows, left_rows, stored, frames)) for part, rows in answered]
    messages = tuple(
        Messages(part.spec, part.log, answers, rows, part.store)
        for (part, rows), answers in zip(answered, responses, strict=True)
    )
    if isinstance(join, StarSpec):
        made = frames.keep_if_small(emit_star(responses, left_rows, right_rows, join))
        emissions, withheld = emitted_and_withheld(made, join)
    else:
        before = left.before if join.result_key == "combined" else None
        made = emit_results(responses[0], left_rows, right_rows[0], sent[0].spec, before)
        emissions, withheld = frames.keep_if_small(made), None
        found = None  # what the one right side has found has its subscriptions at hand
    batch = JoinBatch(join, messages, emissions, left_rows, found=found, withheld=withheld)
    if inserts is None:
        return batch
    return _together(
        batch, join_inserts(join, inserts.rows, right_rows, [part.right.changes for part in sent])
    )


def _insert(join: ResultSpec, inserts: Inserts, rights: Sequence[Right]) -> JoinBatch:
    """What a join makes of inserts, where it begins with these."""
    rows = [
        _with_looked_up(subscribe(of_part(inserts.rows, part, "foreign_key"), part.how), right)
        for part, right in zip(join.parts, rights, strict=True)
    ]
    return join_inserts(join, inserts.rows, rows, [right.changes for right in rights])


def _send(
    join: ResultSpec, left: Left, rights: Sequence[Right], stored: Subscriptions, frames: Frames
) -> list[_Sent]:
    """Send the left changes to each right side, and let it answer its own changes."""
    keys = [part.of_side("foreign_key") for part in join.parts]
    changes = with_previous(left.changes, left.before, keys)
    if len(keys) > 1 and left.changed:
        changes = frames.keep_if_small(changes)
    return [
        _sent(part, changes if left.changed else None, right, stored, frames)
        for part, right in zip(join.parts, rights, strict=True)
    ]


def _sent(
    part: JoinSpec, changes: DataFrame | None, right: Right, stored: Subscriptions, frames: Frames
) -> _Sent:
    if changes is None:
        log = empty(right.changes.sparkSession, subscription_schema(part))
    else:
        of_side = of_part(changes, part, "foreign_key", "previous_foreign_key")
        log = frames.keep(send_subscriptions(of_side, part.how))
    store = live_subscriptions(_messages_to_changed(part, log, right, stored, frames))
    if not right.changed:
        return _Sent(part, right, log, store, told=None)
    store = frames.keep(store)
    told = frames.keep(_as_resolved(part, answer_right_changes(right.changes, store)))
    return _Sent(part, right, log, store, told)


def _as_resolved(join: JoinSpec, answers: DataFrame) -> DataFrame:
    """Answers without the mark, where these are not told apart by it."""
    return answers if join.resolution == "highwater" else answers.drop(MARK)


def _left_rows(sent: Sequence[_Sent], left: Left, frames: Frames) -> tuple[DataFrame, DataFrame | None]:
    """The left rows after the batch that changed or that an answer names; and those of them that did not change."""
    rows, found = frames.keep_if_small(left.after), None
    for part, lookup in zip(sent, left.lookups, strict=True):
        if part.told is not None:
            unseen = frames.keep_if_small(lookup(unknown(part.told, "primary_key", rows)))
            rows = rows.unionByName(unseen)
            found = unseen if found is None else found.unionByName(unseen)
    return rows, found


def _found_by_others(part: _Sent, sent: Sequence[_Sent], found: DataFrame | None) -> DataFrame | None:
    """Left rows that changes of other right sides have found; None where there are none."""
    return found if any(other.told is not None for other in sent if other is not part) else None


def _right_rows(sent: _Sent, inserts: Inserts | None, found: DataFrame | None) -> DataFrame:
    """The right rows after the batch that changed, that a message names, or that a left row points at."""
    named = [sent.log.select("foreign_key")]
    if inserts is not None:
        named.append(of_part(inserts.rows, sent.spec, "foreign_key").select("foreign_key"))
    if found is not None:
        pointing = with_foreign_keys(found, sent.spec)
        named.append(of_part(pointing, sent.spec, "foreign_key").select("foreign_key"))
    return _with_looked_up(reduce(DataFrame.unionByName, named), sent.right)


def _with_looked_up(keys: DataFrame, right: Right) -> DataFrame:
    """The right rows after the batch that changed or that have one of the keys, as `foreign_key`."""
    return right.after.unionByName(right.lookup(unknown(keys, "foreign_key", right.after)))


def _resolve(
    sent: _Sent, right_rows: DataFrame, left_rows: DataFrame, stored: Subscriptions, frames: Frames
) -> DataFrame:
    """Answer the messages, and say what becomes of all answers: rows of `response_log` of the batch under way."""
    join = sent.spec
    answers = _as_resolved(join, answer_subscriptions(sent.log, right_rows))
    if sent.told is not None:
        answers = answers.unionByName(sent.told)
    current = left_rows
    if join.resolution == "highwater":
        current = highwater(_messages_of_told(sent, stored, frames))
    resolved = resolve_responses(answers, current, join.resolution)
    return resolved.withColumn(BATCH, no_batch()).select(*response_schema(join).names)


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


def _messages_of_told(sent: _Sent, stored: Subscriptions, frames: Frames) -> DataFrame:
    """The messages of the batch, and the stored ones of the left keys that right changes told.

    Whoever sent a message in this batch has none with a higher mark.
    """
    if sent.told is None or not stored.has_subscriptions(sent.spec.name):
        return sent.log
    wanted = frames.keys(sent.told.select("primary_key").distinct())
    return sent.log.unionByName(stored.subscriptions_of(sent.spec, wanted))


def _together(steps: JoinBatch, inserts: JoinBatch) -> JoinBatch:
    """What the steps made of the other changes, and what inserts lead to."""
    messages = tuple(
        replace(
            of_steps,
            log=of_steps.log.unionByName(of_inserts.log),
            responses=of_steps.responses.unionByName(of_inserts.responses),
            store=of_steps.store.unionByName(of_inserts.store),
        )
        for of_steps, of_inserts in zip(steps.messages, inserts.messages, strict=True)
    )
    withheld = steps.withheld
    if withheld is not None and inserts.withheld is not None:
        withheld = withheld.unionByName(inserts.withheld)
    return replace(
        steps,
        messages=messages,
        emissions=steps.emissions.unionByName(inserts.emissions),
        left=steps.left.unionByName(inserts.left),
        withheld=withheld,
    )
