"""Tells what a left row asked the right side, what was answered, and what became of the answers (KIP-213)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakejoin.orchestration.explain.explanation import Finding
from lakejoin.orchestration.explain.log_rows import Key, Logs, Row
from lakejoin.orchestration.explain.records import BY_PLACE
from lakejoin.orchestration.explain.sentences import place
from lakejoin.storage.delta_log.arrow_query import identifier, text_literal
from lakejoin.storage.lake.layout import response_log_of, subscription_log_of
from lakejoin.transforms.foreign_key_join.resolution import Resolution
from lakejoin.transforms.foreign_key_join.subscriptions import (
    DELETE_AND,
    DELETE_NO,
    NULL_IF_NO,
    ONLY_IF,
    STEP,
    Instruction,
)
from lakejoin.transforms.model.schemas import BATCH, POSITION
from lakejoin.transforms.model.specs import JoinSpec

INSTRUCTIONS: Mapping[Instruction, str] = {
    DELETE_NO: "unsubscribes from {key}, and wants no answer",
    DELETE_AND: "unsubscribes from {key}, and wants the row taken away",
    NULL_IF_NO: "subscribes to {key}, and wants an answer in any case",
    ONLY_IF: "subscribes to {key}, and wants an answer if it is there",
}
RESOLUTIONS: Mapping[Resolution, str] = {
    "applied": "applied: the result was made of it",
    "superseded": "superseded: a newer answer of the same batch was applied",
    "stale": "stale: the left row had changed since, so it was dropped",
    "contradictory": "contradictory: the left row is another than the one that asked",
}
_FIRST = 5
"""How many of the keys that refer to a row are told."""
_IN_ORDER = (*BY_PLACE, identifier(STEP))
_COLUMNS = ("primary_key", "foreign_key", BATCH, POSITION)


@dataclass(frozen=True)
class Exchange:
    """The newest messages of a left row to a right side, and the newest answers that it got."""

    part: JoinSpec
    messages: Sequence[Row]
    answers: Sequence[Row]

    @property
    def refers_to(self) -> Key | None:
        """The right key that the left row is subscribed to; None for none."""
        last = {}
        for message in self.messages:
            if message["foreign_key"] is not None:
                last[tuple(message["foreign_key"].values())] = message["instruction"]
        live = [key for key, instruction in last.items() if instruction not in {DELETE_NO, DELETE_AND}]
        return Key(self.part.foreign_key_type, live[-1]) if live else None

    @property
    def findings(self) -> list[Finding]:
        """A sentence for each, in the order of batches; in one the messages first."""
        found = [(row[BATCH], 0, self._of_message(row)) for row in self.messages]
        found += [(row[BATCH], 1, self._of_answer(row)) for row in self.answers]
        return [finding for _, _, finding in sorted(found, key=lambda each: each[:2])]

    def _of_message(self, row: Row) -> Finding:
        does = INSTRUCTIONS[row["instruction"]].format(key=self._right(row))
        if row["foreign_key"] is None:
            does = "has no foreign key, and wants an answer in any case"
        cause = f" ({place(row)})" if row[POSITION] else ""  # a change of another join's result has no line
        return Finding(
            f"batch {row[BATCH]}: the left row {does}{cause}",
            {
                "batch": row[BATCH],
                "foreign_key": row["foreign_key"] and list(map(str, row["foreign_key"].values())),
            }
            | {"instruction": row["instruction"], "at": place(row)},
        )

    def _of_answer(self, row: Row) -> Finding:
        key, there = self._right(row), row["right_hash"] is not None
        answered = f"{key} answers with its row" if there else f"{key} answers that there is none"
        version = (
            f", of {place({POSITION: row['right_position']})}" if there and row["right_position"] else ""
        )
        why = "because it changed" if row["cause"] == "right_change" else "to the message"
        return Finding(
            f"batch {row[BATCH]}: {answered}{version}, {why}: {RESOLUTIONS[row['resolution']]}",
            {"batch": row[BATCH], "cause": row["cause"], "resolution": row["resolution"], "has_row": there},
        )

    def _right(self, row: Row) -> str:
        found = row["foreign_key"]
        if found is None:
            return "no key"
        return f"{self.part.right} {Key(self.part.foreign_key_type, tuple(found.values()))}"


def exchange(logs: Logs, part: JoinSpec, left: Key) -> Exchange:
    """Return what was said between a left row and a right side. Raises `LakeUnusable` and `LakeInconsistent`."""
    where = left.in_struct("primary_key")
    sent = [*_COLUMNS, "instruction"]
    messages = logs.rows(subscription_log_of(part.name), sent, where, last_by=_IN_ORDER)
    given = [*_COLUMNS, "cause", "resolution", "right_hash", "right_position"]
    answers = logs.rows(response_log_of(part.name), given, where, last_by=BY_PLACE)
    return Exchange(part, messages, answers)


def subscribers(logs: Logs, part: JoinSpec, held: str) -> tuple[int, list[str]]:
    """Return how many left rows are subscribed to a right key, and the keys of the first of them.

    held: condition that a message is about the right key. Raises `LakeUnusable` and `LakeInconsistent`.
    """
    fields = [f"primary_key[{text_literal(field.name)}]" for field in part.primary_key_type]
    last_first = ", ".join(f"{text} DESC" for text in _IN_ORDER)
    log = subscription_log_of(part.name)
    live = (
        "SELECT primary_key FROM (SELECT primary_key, instruction, row_number() OVER "
        f"(PARTITION BY {', '.join(fields)} ORDER BY {last_first}) AS n FROM rows WHERE {held}) "
        f"WHERE n = 1 AND instruction NOT IN ('{DELETE_NO}', '{DELETE_AND}')"
    )
    # in one query, DataFusion's count(*) OVER () counts no more than LIMIT leaves
    counted = logs.ask(log, f"SELECT count(*) AS n FROM ({live})")
    first = logs.ask(log, f"{live} ORDER BY {', '.join(fields)} LIMIT {_FIRST}")
    keys = [str(Key(part.primary_key_type, tuple(row["primary_key"].values()))) for row in first]
    return (int(counted[0]["n"]) if counted else 0), keys
