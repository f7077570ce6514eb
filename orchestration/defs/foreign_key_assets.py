"""Describes the steps of a foreign-key join for Dagster: `subscription log → response log → joined, changelog`."""

from collections.abc import Mapping

from pyspark.sql.types import BooleanType, StructField, StructType

from orchestration.config import Join, Pipeline
from orchestration.defs.column_lineage import origins
from orchestration.defs.time_asset_specs import Columns
from storage.lake.layout import changelog_of, joined_of, response_log_of, subscription_log_of
from transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from transforms.foreign_key_join.highwater import MARK
from transforms.foreign_key_join.responses import response_schema
from transforms.foreign_key_join.subscriptions import STEP, subscription_schema
from transforms.model.schemas import BATCH, LEFT_HASH, POSITION, RIGHT_HASH, RIGHT_KEY

_NOTES: Mapping[str, str] = {
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
}


def steps(pipeline: Pipeline, name: str) -> list[tuple[str, str]]:
    """Return the steps of a join, each with the table below the lake that stands for it."""
    found = [
        ("subscription_log", subscription_log_of(name)),
        ("response_log", response_log_of(name)),
        ("joined", joined_of(name)),
    ]
    if pipeline.joins_of(Join)[name].changelog:
        found.append(("changelog", changelog_of(name)))
    return found


def upstream(pipeline: Pipeline, name: str, step: str) -> list[tuple[str, str]]:
    """What a step reads, as names and steps."""
    join = pipeline.joins_of(Join)[name]
    match step:
        case "subscription_log":
            return [(join.left, "joined" if join.left in pipeline.joins else "table")]
        case "response_log":
            return [(name, "subscription_log"), (join.right, "table")]
        case _:
            return [(name, "response_log")]


def description(pipeline: Pipeline, name: str, step: str) -> str:
    """A step in a sentence or two."""
    join, on = pipeline.joins_of(Join)[name], _condition(pipeline, name)
    match step:
        case "subscription_log":
            return f"What the changes of `{join.left}` told `{join.right}`: subscribe, or unsubscribe ({on})."
        case "response_log":
            return (
                f"What `{join.right}` answered to the subscriptions of `{join.left}`, and whether an answer "
                "still fitted the left row (applied), came second (superseded) or came too late (stale)."
            )
        case "joined":
            return f"`{join.left}` {join.how} join `{join.right}` on {on}: one commit for each batch."
        case _:
            return f"Every emission of `{name}` in order, those included that changed nothing."


def _condition(pipeline: Pipeline, name: str) -> str:
    """What the two sides of a join have in common, as SQL says it."""
    join, columns = pipeline.joins_of(Join)[name], pipeline.join_spec(name).left_columns.names
    left = [f"{join.left}.{text}" if text in columns else text for text in join.foreign_key]
    pairs = zip(left, pipeline.tables[join.right].key, strict=True)
    return " and ".join(f"{text} = {join.right}.{column}" for text, column in pairs)


def columns(pipeline: Pipeline, name: str, step: str) -> Columns:
    """Columns of a step."""
    spec = pipeline.join_spec(name)
    match step:
        case "subscription_log":
            return subscription_schema(spec), _NOTES, ()
        case "response_log":
            return response_schema(spec), _NOTES, ()
    notes = {**_NOTES, **origins(spec)}
    if step == "joined":
        return joined_schema(spec), notes, spec.joined_key
    flags = [StructField(TOMBSTONE, BooleanType()), StructField("redundant", BooleanType())]
    return StructType([*joined_schema(spec), *flags]), notes, ()
