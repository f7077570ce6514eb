"""Describes the assets of a pipeline for Dagster's graph and catalogue: what each stands for, and its columns."""

from collections.abc import Iterable, Mapping

from dagster import (
    AssetDep,
    AssetKey,
    AssetSpec,
    DailyPartitionsDefinition,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
)
from pyspark.sql.types import BooleanType, StructField, StructType

from orchestration.config import Pipeline
from orchestration.defs.asset_keys import LakeAsset, step_key, table_key
from orchestration.defs.time_asset_specs import time_description, time_schema, upstream_names
from storage.lake.layout import Lake
from transforms.foreign_key_join.emissions import TOMBSTONE, joined_schema
from transforms.foreign_key_join.highwater import MARK
from transforms.foreign_key_join.responses import response_schema
from transforms.foreign_key_join.subscriptions import STEP, subscription_schema
from transforms.model.schemas import BATCH, LEFT_HASH, POSITION, RIGHT_HASH
from transforms.model.specs import JoinSpec

_DESCRIPTIONS = {
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
    TOMBSTONE: "True where the emission deleted its key",
}


def asset_spec(
    pipeline: Pipeline, asset: LakeAsset, partitions: DailyPartitionsDefinition | None
) -> AssetSpec:
    """The asset as Dagster's graph and catalogue show it."""
    return AssetSpec(
        asset.key,
        deps=[AssetDep(key) for key in _upstream(pipeline, asset)],
        description=_description(pipeline, asset),
        metadata={
            "dagster/column_schema": _column_schema(pipeline, asset),
            "dagster/uri": Lake(pipeline.lake).path(asset.table),
        },
        group_name=pipeline.name,
        kinds={"deltalake", "spark"},
        partitions_def=partitions,
    )


def _upstream(pipeline: Pipeline, asset: LakeAsset) -> list[AssetKey]:
    if asset.name in pipeline.stream_joins:
        read = upstream_names(pipeline, asset.name, asset.step)
        return [
            step_key(pipeline, name, step) if step in {"buffer", "versions"} else table_key(pipeline, name)
            for name, step in read
        ]
    match asset.step:
        case "table" | "stream" | "buffer":
            return []
        case "versions":
            return [table_key(pipeline, asset.name)]
        case "subscription_log":
            return [_side_key(pipeline, pipeline.foreign_key_joins[asset.name].left)]
        case "response_log":
            right = table_key(pipeline, pipeline.foreign_key_joins[asset.name].right)
            return [step_key(pipeline, asset.name, "subscription_log"), right]
        case "joined" | "changelog":
            return [step_key(pipeline, asset.name, "response_log")]


def _side_key(pipeline: Pipeline, name: str) -> AssetKey:
    """Key of what a join takes as its left side: a table, or the result of another join."""
    return (
        step_key(pipeline, name, "joined")
        if name in pipeline.foreign_key_joins
        else table_key(pipeline, name)
    )


def _description(pipeline: Pipeline, asset: LakeAsset) -> str:
    if asset.step == "table":
        table = pipeline.tables[asset.name]
        order = ", ".join(table.sequence) or table.source_format.order
        return (
            f"Current rows of `{asset.name}`, kept by its change data ({table.source.format}). "
            f"One row for each {', '.join(table.key)}; changes of a row are ordered by {order}."
        )
    if asset.step in {"versions", "stream", "buffer"} or asset.name in pipeline.stream_joins:
        return time_description(pipeline, asset.name, asset.step)
    join = pipeline.foreign_key_joins[asset.name]
    on = _condition(pipeline, asset.name)
    match asset.step:
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
            return f"Every emission of `{asset.name}` in order, those included that changed nothing."


def _condition(pipeline: Pipeline, name: str) -> str:
    """What the two sides of a join have in common, as SQL says it."""
    join, columns = pipeline.foreign_key_joins[name], pipeline.join_spec(name).left_columns.names
    left = [f"{join.left}.{text}" if text in columns else text for text in join.foreign_key]
    pairs = zip(left, pipeline.tables[join.right].key, strict=True)
    return " and ".join(f"{text} = {join.right}.{column}" for text, column in pairs)


def _column_schema(pipeline: Pipeline, asset: LakeAsset) -> TableSchema:
    if asset.step == "table":
        table = pipeline.tables[asset.name]
        notes = dict.fromkeys(table.sequence, "Orders the changes of a row")
        if table.event_time:
            notes[table.event_time] = "Event time"
        return TableSchema(_columns(table.spec.columns, notes, table.key))
    if (schema := time_schema(pipeline, asset.name, asset.step)) is not None:
        return TableSchema(_columns(*schema))
    spec = pipeline.join_spec(asset.name)
    match asset.step:
        case "subscription_log":
            return TableSchema(_columns(subscription_schema(spec), _DESCRIPTIONS))
        case "response_log":
            return TableSchema(_columns(response_schema(spec), _DESCRIPTIONS))
    notes = _DESCRIPTIONS | {column: f"From {side}.{name}" for column, side, name in _sources(spec)}
    if asset.step == "joined":
        return TableSchema(_columns(joined_schema(spec), notes, spec.joined_key))
    flags = [StructField(TOMBSTONE, BooleanType()), StructField("redundant", BooleanType())]
    return TableSchema(_columns(StructType([*joined_schema(spec), *flags]), notes))


def _columns(
    schema: StructType, descriptions: Mapping[str, str], key: tuple[str, ...] = ()
) -> list[TableColumn]:
    return [
        TableColumn(
            name=field.name,
            type=field.dataType.simpleString(),
            description=descriptions.get(field.name) or ("Key" if field.name in key else None),
            constraints=TableColumnConstraints(nullable=field.name not in key, unique=(field.name,) == key),
        )
        for field in schema
    ]


def _sources(spec: JoinSpec) -> Iterable[tuple[str, str, str]]:
    """Each column of a joined table with the side and the column that it comes from."""
    yield from ((name, spec.left, name) for name in spec.left_columns.names)
    yield from ((spec.prefix + name, spec.right, name) for name in spec.right_columns.names)
