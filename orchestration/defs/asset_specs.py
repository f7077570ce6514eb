"""Describes the assets of a pipeline for Dagster's graph and catalogue: what each stands for, and its columns."""

from collections.abc import Mapping

from dagster import (
    AssetDep,
    AssetKey,
    AssetSpec,
    DailyPartitionsDefinition,
    TableColumn,
    TableColumnConstraints,
    TableColumnLineage,
    TableSchema,
)
from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.asset_keys import LakeAsset
from lakejoin.orchestration.defs.column_lineage import column_lineage
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.join_assets import JOIN_ASSETS
from lakejoin.orchestration.defs.source_assets import source_key
from lakejoin.orchestration.defs.time_asset_specs import time_columns, time_description
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.model.declaration import UNDECLARED, Declaration

INTERNAL = ("subscription_log", "response_log", "versions", "buffer")
"""Steps that nobody reads but who asks why a row is as it is; they have a group of their own."""


def asset_spec(
    embedded: EmbeddedPipeline, asset: LakeAsset, partitions: DailyPartitionsDefinition | None
) -> AssetSpec:
    """The asset as Dagster's graph and catalogue show it."""
    pipeline, internal = embedded.pipeline, asset.step in INTERNAL
    return AssetSpec(
        asset.key,
        deps=[AssetDep(key) for key in _upstream(embedded, asset)],
        description=_description(pipeline, asset),
        metadata={
            "dagster/column_schema": _column_schema(pipeline, asset),
            "dagster/uri": Lake(pipeline.lake).path(asset.table),
            **_named_in_catalog(_declared(pipeline, asset)),
            **_lineage(embedded, asset),
        },
        group_name=embedded.internal_group if internal else embedded.group,
        owners=[*embedded.owners],
        tags={**embedded.tags},
        kinds={"deltalake", "spark"},
        freshness_policy=None if internal else embedded.freshness_policy,
        automation_condition=embedded.automation_condition,
        code_version=embedded.code_versions[asset.declared],
        partitions_def=partitions,
    )


def _declared(pipeline: Pipeline, asset: LakeAsset) -> Declaration:
    """What the file says of how the table is kept."""
    join = pipeline.joins.get(asset.name)
    if join is None or asset.step not in {"joined", "history"}:
        return UNDECLARED
    return join.declared if asset.step == "joined" else join.declared_history


def _named_in_catalog(declared: Declaration) -> dict[str, str]:
    return {"dagster/table_name": declared.table} if declared.table else {}


def _lineage(embedded: EmbeddedPipeline, asset: LakeAsset) -> dict[str, TableColumnLineage]:
    if asset.step != "joined":
        return {}
    return {"dagster/column_lineage": column_lineage(embedded, asset.name)}


def _upstream(embedded: EmbeddedPipeline, asset: LakeAsset) -> list[AssetKey]:
    pipeline = embedded.pipeline
    if asset.declared in pipeline.joins:
        kind = JOIN_ASSETS[type(pipeline.joins[asset.declared])]
        return [embedded.step_key(*read) for read in kind.upstream(pipeline, asset.name, asset.step)]
    return [embedded.table_key(asset.name) if asset.step == "versions" else source_key(embedded, asset.name)]


def _description(pipeline: Pipeline, asset: LakeAsset) -> str:
    if asset.declared in pipeline.joins:
        kind = JOIN_ASSETS[type(pipeline.joins[asset.declared])]
        told = kind.description(pipeline, asset.name, asset.step)
        comment = _declared(pipeline, asset).comment
        return f"{comment}\n\n{told}" if comment else told
    if asset.step != "table":
        return time_description(pipeline, asset.name, asset.step)
    table = pipeline.tables[asset.name]
    order = ", ".join(table.sequence) or table.source_format.order
    return (
        f"Current rows of `{asset.name}`, kept by its change data ({table.source.format}). "
        f"One row for each {', '.join(table.key)}; changes of a row are ordered by {order}."
    )


def _column_schema(pipeline: Pipeline, asset: LakeAsset) -> TableSchema:
    if asset.declared in pipeline.joins:
        kind = JOIN_ASSETS[type(pipeline.joins[asset.declared])]
        schema, notes, *key = kind.columns(pipeline, asset.name, asset.step)
        return TableSchema(_columns(schema, {**notes, **_declared(pipeline, asset).comments}, *key))
    if asset.step != "table":
        return TableSchema(_columns(*time_columns(pipeline, asset.name, asset.step)))
    table = pipeline.tables[asset.name]
    notes = dict.fromkeys(table.sequence, "Orders the changes of a row")
    if table.event_time:
        notes[table.event_time] = "Event time"
    return TableSchema(_columns(table.spec.columns, notes, table.key))


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
