"""Tells Dagster of batches that others have published: the command line, another machine, an instance before this one.

Without it what is there would be shown as never materialised.
"""

import time
from collections.abc import Iterable, Iterator, Sequence

from dagster import (
    AssetCheckEvaluation,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from lakejoin.orchestration.defs.asset_keys import LakeAsset, lake_assets
from lakejoin.orchestration.defs.check_cursor import batches_of
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.lag_checks import changed_lags
from lakejoin.orchestration.defs.materializations import Reports, beside, split
from lakejoin.orchestration.defs.op_checks import OpChecks, evaluation
from lakejoin.orchestration.defs.source_assets import look_at_sources
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

INTERVAL_SECONDS = 30
SECONDS = 20
"""For so long a look goes on to the next batch; Dagster ends one that takes a minute."""
Event = AssetMaterialization | AssetObservation | AssetCheckEvaluation
_UNDER_WAY = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]
_EVENTS = 1_000
"""Among so many last reports of an asset are the batches that this instance knows."""


def published_sensor(
    embedded: EmbeddedPipeline, checks: Sequence[OpChecks], *, partitioned: bool
) -> SensorDefinition:
    """A sensor that is on from the start, for it starts no run: it reports batches of which no run here has told.

    With them goes what is known of `checks` without a look at any row, and what is left in the sources. While nothing
    is published, only those are listed whose lag the file bounds. Its cursor is the last batch that it has seen.
    """
    pipeline, assets = embedded.pipeline, lake_assets(embedded)

    @sensor(
        name=f"{pipeline.name}_published",
        minimum_interval_seconds=INTERVAL_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
        description="Reports batches that the command line, or another machine, has published. Starts no run.",
    )
    def published(context: SensorEvaluationContext) -> SensorResult | SkipReason:
        with told_errors():
            seen, ends = int(context.cursor or 0), time.monotonic() + SECONDS
            journal = Journal(Lake(pipeline.lake))
            batches = journal.published
            if len(batches) < seen:  # somebody began the lake anew
                seen = 0
            events: list[Event] = [*changed_lags(embedded, context.instance)]
            if len(batches) == seen and context.cursor is not None:
                return _only(events, context, "Every batch of the lake is reported.")
            if _is_under_way(context.instance, assets, f"{pipeline.name}_job"):
                return _only(events, context, "A run is under way, and reports its batches itself.")
            told = batches_of(context.instance, assets[0].key, limit=_EVENTS)
            new = [batch for batch in batches[seen:] if batch.batch not in told]
            reports = Reports(pipeline, ())
            for batch in new:
                events += beside(reports, assets, split([batch], (), partitioned=partitioned)[1])
                seen = batch.batch
                if time.monotonic() > ends:
                    break
            else:
                seen = len(batches)
            if new and seen == len(batches):
                events += _evaluations(checks, journal, new[0].batch)
            events += _observed(context, embedded)
            return SensorResult(asset_events=events, cursor=str(seen))

    return published


def _only(events: Sequence[Event], context: SensorEvaluationContext, why: str) -> SensorResult | SkipReason:
    """Tell what is to be told where no batch is: its cursor stays."""
    return SensorResult(asset_events=events, cursor=context.cursor) if events else SkipReason(why)


def _observed(context: SensorEvaluationContext, embedded: EmbeddedPipeline) -> list[AssetObservation]:
    """What has changed in the sources; that one cannot be listed keeps no batch from being told."""
    observed, unlisted = look_at_sources(embedded, context.instance)
    if unlisted:
        context.log.warning(unlisted)
    return observed


def _evaluations(checks: Iterable[OpChecks], journal: Journal, first: int) -> Iterator[AssetCheckEvaluation]:
    """What is known of checks since a batch."""
    blocking = {spec.key: spec.blocking for kind in checks for spec in kind.specs}
    for kind in checks:
        for key, result in kind.known(journal, first).items():
            yield evaluation(key, result, blocking=blocking[key])


def _is_under_way(instance: DagsterInstance, assets: list[LakeAsset], job: str) -> bool:
    """Whether a run of the pipeline's assets is going on."""
    keys = {asset.key for asset in assets}
    return any(
        run.job_name == job or keys & (run.asset_selection or set())
        for run in instance.get_runs(RunsFilter(statuses=_UNDER_WAY))
    )
