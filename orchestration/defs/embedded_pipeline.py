"""Says how a pipeline stands in a Dagster project: under which keys, in which group, with which Spark session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dagster import AssetKey, AutomationCondition, FreshnessPolicy

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.config_fingerprints import state_versions


@dataclass(frozen=True)
class EmbeddedPipeline:
    """A pipeline, and what the project around it says of its assets."""

    pipeline: Pipeline
    key_prefix: tuple[str, ...] = ()
    """What the keys of all assets begin with; the name of the pipeline follows."""
    group_name: str | None = None
    """The group of the assets; by default called as the pipeline."""
    owners: tuple[str, ...] = ()
    """Of all assets: addresses of e-mail, and `team:` names."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Of all assets."""
    partitioned: bool = True
    """Whether the assets of a pipeline with dated sources have a partition for each day."""
    freshness_policy: FreshnessPolicy | None = None
    """Of the tables and results, which people read."""
    automation_condition: AutomationCondition[AssetKey] | None = None
    """Of all assets: a batch brings all of them forward."""
    spark: str | None = None
    """The key of the project's own resource with a Spark session; by default the pipeline brings one of its own."""

    @property
    def group(self) -> str:
        """The group of the tables and results."""
        return self.group_name or self.pipeline.name

    @property
    def internal_group(self) -> str:
        """The group of what leads to them."""
        return f"{self.group}_internal"

    @property
    def spark_key(self) -> str:
        """The key of the resource that gives the steps their session: two pipelines do not meet in ours."""
        return self.spark or f"{self.pipeline.name}_spark"

    @property
    def sources_group(self) -> str:
        """The group of the sources, so that the graph of tables and results stays small."""
        return f"{self.group}_sources"

    @cached_property
    def code_versions(self) -> Mapping[str, str]:
        """With what the state of each table, stream and join is made: what Dagster compares."""
        return state_versions(self.pipeline)

    def table_key(self, name: str) -> AssetKey:
        """Key of the asset of a declared table, stream or result."""
        return self.step_key(name, "table")

    def step_key(self, name: str, step: str) -> AssetKey:
        """Key of the asset of one step; the joined table bears the join's own name, as tables and streams do theirs.

        A graph shows the last part alone, so that of any other step has the whole name before it.
        """
        parts = name.split("/")
        path = [] if step in {"table", "stream", "joined"} else ["_".join([*parts, step])]
        return AssetKey([*self.key_prefix, self.pipeline.name, *parts, *path])
