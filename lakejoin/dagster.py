"""Embeds pipelines in a Dagster project, as definitions or as a component of `dg`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from dagster import (
    AssetKey,
    AutomationCondition,
    Component,
    ComponentLoadContext,
    Definitions,
    FreshnessPolicy,
    Model,
    Resolvable,
    Scaffolder,
    ScaffoldRequest,
    scaffold_with,
)
from dagster.components.component_scaffolding import scaffold_component
from dagster.components.scaffold.scaffold import NoParams
from pydantic import Field

from lakejoin.orchestration.config import load
from lakejoin.orchestration.config.docs.text import EXAMPLE
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline

__all__ = ["LakejoinComponent", "lakejoin_definitions"]


def lakejoin_definitions(  # noqa: PLR0913 - what a project may say of the assets of others
    config: str | PathLike[str],
    *,
    key_prefix: str | Sequence[str] = (),
    group_name: str | None = None,
    owners: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
    partitioned: bool = True,
    freshness_policy: FreshnessPolicy | None = None,
    automation_condition: AutomationCondition[AssetKey] | None = None,
    spark: str | None = None,
) -> Definitions:
    """Return the definitions of a pipeline, to be merged with those of a project and of other pipelines.

    Assets are called `KEY_PREFIX/PIPELINE/TABLE`. Jobs, schedules, the sensor and the resource begin with the name of
    the pipeline; no executor is asked for. Batches and their checks are one step in the pool of the pipeline, which is
    to have one slot. No JVM is started, and the lake is not touched.

    `config`: the file of the pipeline. `group_name`: by default that of the pipeline; what only leads to results is in
    a group of its own, called after it and `_internal`. `owners`, `tags`, `automation_condition`: of all assets;
    `freshness_policy`: of tables and results. `partitioned`: whether the assets of a pipeline with dated sources have a
    partition for each day. `spark`: the key of a resource of the project, a `SparkSession` or an object whose
    `spark_session` is one, with Delta Lake, in which the pipeline then works by a session beside it; by default it has
    its own.

    Raises `ConfigurationError` for mistakes in the file, each with its line.
    """
    prefix = (key_prefix,) if isinstance(key_prefix, str) else tuple(key_prefix)
    embedded = EmbeddedPipeline(
        load(Path(config)),
        key_prefix=prefix,
        group_name=group_name,
        owners=tuple(owners),
        tags=tags or {},
        partitioned=partitioned,
        freshness_policy=freshness_policy,
        automation_condition=automation_condition,
        spark=spark,
    )
    return pipeline_definitions(embedded, datetime.now(UTC))


class _Scaffolder(Scaffolder[NoParams]):
    """Writes `defs.yaml` and beside it the file of a small pipeline, which loads as it is."""

    def scaffold(self, request: ScaffoldRequest[NoParams]) -> None:
        """Write both; a pipeline that is there stays."""
        file = request.target_path / "lakejoin.yaml"
        scaffold_component(request, {"config": file.name})
        if not file.exists():
            file.write_text(EXAMPLE, encoding="utf-8")


@scaffold_with(_Scaffolder)
class LakejoinComponent(Component, Model, Resolvable):
    """Joins of change data that are kept up to date: the pipeline of a file, with its tables, joins, checks and jobs.

    What else is to be said of the assets (a freshness policy, an automation condition) stands under `post_processing`.
    """

    config: str = Field(
        description="The file of the pipeline, relative to the folder of the component.",
        examples=["lakejoin.yaml"],
    )
    key_prefix: list[str] = Field(
        default=[], description="What the keys of all assets begin with.", examples=[["warehouse"]]
    )
    group_name: str | None = Field(
        default=None, description="Group of the assets; by default the pipeline's name."
    )
    owners: list[str] = Field(
        default=[], description="Owners of all assets.", examples=[["team:data", "jan@example.org"]]
    )
    tags: dict[str, str] = Field(default={}, description="Tags of all assets.")
    partitioned: bool = Field(
        default=True, description="Whether assets of dated sources have a partition for each day."
    )
    spark: str | None = Field(
        default=None,
        description="Key of a resource of the project with a Spark session that knows Delta Lake; "
        "by default the pipeline starts its own.",
    )

    def build_defs(self, context: ComponentLoadContext) -> Definitions:
        """The definitions of the pipeline."""
        return lakejoin_definitions(context.path / self.config, **self.model_dump(exclude={"config"}))
