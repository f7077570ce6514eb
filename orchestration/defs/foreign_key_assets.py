"""Describes the steps of a foreign-key join for Dagster: from the messages to the joined table and its history."""

from collections.abc import Mapping

from pyspark.sql.types import BooleanType, StructField, StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.column_lineage import origins
from lakejoin.orchestration.defs.time_asset_specs import Columns
from lakejoin.storage.lake.layout import (
    changelog_of,
    history_of,
    joined_of,
    response_log_of,
    subscription_log_of,
)
from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from lakejoin.transforms.foreign_key_join.highwater import MARK
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT, UNTIL, history_schema
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.foreign_key_join.subscriptions import STEP, subscription_schema
from lakejoin.transforms.model.schemas import (
    BATCH,
    HASH,
    LEFT_HASH,
    LEFT_SEQUENCE,
    POSITION,
    RIGHT_HASH,
    RIGHT_KEY,
    RIGHT_SEQUENCE,
    VALID_FROM,
    VALID_TO,
)
from lakejoin.transforms.model.specs import JoinSpec

NOTES: Mapping[str, str] = {
    "foreign_key": "Key of the right row that is asked; null when the left row refers to nothing",
    "primary_key": "Key of the left row",
    "hash": "Hash of the left value that the message was sent for",
    MARK: "Batch and position of the left change that the message was sent for; without a batch: of this one",
    "instruction": "What the right side does with the message (KIP-213)",
    "right_hash": "Hash of the right value that the answer carries; null without one",
    "right_position": "Position of the right row's last change",
    "cause": "What was answered: a subscription, or a change of the right row",
    "resolution": "What became of the answer: applied, superseded by a newer one, or stale",
    "redundant": "True where the emission left the joined table as it was",
    BATCH: "Number of the batch that wrote the row",
    POSITION: "Where the change stood: date, file and line",
    STEP: "Place of the message among those of one change",
    LEFT_HASH: "Hash of the left value in the row",
    RIGHT_HASH: "Hash of the right value in the row; null where nothing matched",
    RIGHT_KEY: "Key of the right row, of which the result has no columns; null where nothing matched",
    TOMBSTONE: "True where the emission deleted its key",
    VALID_FROM: "Clock of the batch that made the row",
    VALID_TO: "Clock of the batch that changed it or took it away; null while the result has it",
    IS_CURRENT: "Whether the result has the row now",
    UNTIL: "Number of the batch that ended the row",
    HASH: "Hash of the columns of the result",
    LEFT_SEQUENCE: "What the change of the left row is ordered by",
    RIGHT_SEQUENCE: "What the change of the right row is ordered by",
}
FLAGS = (StructField(TOMBSTONE, BooleanType()), StructField("redundant", BooleanType()))
"""What the changelog says of each emission beside its row."""


def steps(pipeline: Pipeline, name: str) -> list[tuple[str, str, str]]:
    """Return the steps of a join: the name of what has it, the step, and the table below the lake that stands for it.

    What leads to the result is there for each right side.
    """
    join = pipeline.joins_of_tables[name]
    found = [
        (part, step, table(part))
        for part in join.part_names
        for step, table in (("subscription_log", subscription_log_of), ("response_log", response_log_of))
    ]
    found.append((name, "joined", joined_of(name)))
    if join.changelog:
        found.append((name, "changelog", changelog_of(name)))
    if join.history is not None:
        found.append((name, "history", history_of(name)))
    return found


def upstream(pipeline: Pipeline, name: str, step: str) -> list[tuple[str, str]]:
    """What a step reads, as names and steps."""
    match step:
        case "subscription_log":
            left = _part(pipeline, name)[0].left
            return [(left, "joined" if left in pipeline.joins else "table")]
        case "response_log":
            right = _part(pipeline, name)[0].right
            return [(name, "subscription_log"), (right, "joined" if right in pipeline.joins else "table")]
        case "history" if name in pipeline.event_histories:
            return [(side.name, "versions") for side in pipeline.event_histories[name]]
        case _:
            return [(part, "response_log") for part in pipeline.joins[name].part_names]


def description(pipeline: Pipeline, name: str, step: str) -> str:
    """A step in a sentence or two."""
    match step:
        case "subscription_log":
            part, texts = _part(pipeline, name)
            on = _condition(part, texts)
            return f"What the changes of `{part.left}` told `{part.right}`: subscribe, or unsubscribe ({on})."
        case "response_log":
            part, _ = _part(pipeline, name)
            return (
                f"What `{part.right}` answered to the subscriptions of `{part.left}`, and whether an answer "
                "still fitted the left row (applied), came second (superseded) or came too late (stale)."
            )
        case "joined":
            rights = " and ".join(
                f"{part.how} join `{part.right}` on {_condition(part, texts)}"
                for part, _, texts in pipeline.foreign_keys(name)
            )
            return f"`{pipeline.joins[name].left_side}` {rights}: one commit for each batch."
        case "history" if name in pipeline.event_histories:
            sides = " and ".join(f"`{side.name}`" for side in pipeline.event_histories[name])
            return f"What was true in `{name}` when, by the event times of {sides}; late records revise it."
        case "history":
            return f"Every row that `{name}` ever had, since when, and until when."
        case _:
            return f"Every emission of `{name}` in order, those included that changed nothing."


def _part(pipeline: Pipeline, name: str) -> tuple[JoinSpec, tuple[str, ...]]:
    """The join with one right side, by its name, and the foreign key as the file has it."""
    join, *_ = name.split("/")
    return next((part, texts) for part, _, texts in pipeline.foreign_keys(join) if part.name == name)


def _condition(part: JoinSpec, texts: tuple[str, ...]) -> str:
    """What the two sides of a join have in common, as SQL says it."""
    left = [f"{part.left}.{text}" if text in part.left_columns.names else text for text in texts]
    return " and ".join(
        f"{text} = {part.right}.{column}" for text, column in zip(left, part.right_key, strict=True)
    )


def columns(pipeline: Pipeline, name: str, step: str) -> Columns:
    """Columns of a step."""
    match step:
        case "subscription_log":
            return subscription_schema(_part(pipeline, name)[0]), NOTES, ()
        case "response_log":
            return response_schema(_part(pipeline, name)[0]), NOTES, ()
    spec = pipeline.join_spec(name)
    of_rights = {
        part.of_side(column): NOTES[column]
        for part in spec.parts
        for column in (RIGHT_HASH, RIGHT_KEY, RIGHT_SEQUENCE)
    }
    notes = {**NOTES, **of_rights, **origins(spec)}
    if step == "joined":
        return joined_schema(spec), notes, spec.joined_key
    if step == "history":
        return history_schema(spec), notes, ()
    return StructType([*joined_schema(spec), *FLAGS]), notes, ()
