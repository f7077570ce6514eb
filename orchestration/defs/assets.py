"""Makes the multi-asset of a pipeline: its op works off what is pending and reports it, batch after batch.

A batch always covers the whole pipeline, for only then do its tables fit together; all assets are reported, whichever
were selected. A range of partitions is one run with its dates in order, so one Spark session serves it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import timedelta
from functools import cache, partial

from dagster import (
    AssetCheckResult,
    AssetExecutionContext,
    AssetMaterialization,
    AssetsDefinition,
    BackfillPolicy,
    Config,
    DailyPartitionsDefinition,
    Failure,
    MaterializeResult,
    multi_asset,
)
from pydantic import Field

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.asset_keys import LakeAsset, lake_assets
from lakejoin.orchestration.defs.asset_specs import asset_spec
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.materializations import (
    Materialization,
    Reports,
    beside,
    split,
)
from lakejoin.orchestration.defs.op_checks import OpChecks, Session
from lakejoin.orchestration.defs.partitions import dates_of_run, names_partitions
from lakejoin.orchestration.defs.source_assets import look_at_sources
from lakejoin.orchestration.defs.spark_resource import session_of
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.orchestration.planning.pending_input import BatchBy
from lakejoin.orchestration.planning.replaced_files import day_or_name
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Published
from lakejoin.transforms.model.printable_text import printable

Event = MaterializeResult[None] | AssetMaterialization | AssetCheckResult


class BatchOptions(Config):
    """What a run may choose, as `lakejoin run` takes it; the dates are those of the partitions."""

    accept: list[str] = Field(default=[], description="Rules of the gate that may be violated (recorded).")
    batch_by: BatchBy = Field(
        default="size",
        description="Put small days together; or one batch for each date; or one for everything.",
    )
    batch_rows: int | None = Field(
        default=None,
        gt=0,
        description="Cut batches to about so many records; put days together up to as many.",
    )
    flush: bool = Field(
        default=False,
        description="At the end, join the records of streams that still wait for their grace period.",
    )
    rebuild: list[str] = Field(
        default=[], description="Joins that are first computed anew, as they are declared now."
    )
    replace: str | None = Field(
        default=None,
        description="A date, or a file: what was exported again is first taken in the place of what it was.",
    )
    settle_seconds: float | None = Field(
        default=None, ge=0, description="Leave files for later that changed less than so many seconds ago."
    )


def op_name(pipeline: Pipeline) -> str:
    """Name of the op of a pipeline: a name of its own may be one that Dagster reserves, such as `type`."""
    return f"{pipeline.name}_batches"


def pipeline_assets(
    embedded: EmbeddedPipeline, partitions: DailyPartitionsDefinition | None, checks: Sequence[OpChecks]
) -> AssetsDefinition:
    """The assets of a pipeline and their checks as one op, `can_subset`, in a pool of its own: one writer at a time.

    A run that was started for checks alone works off no batch.
    """
    pipeline, assets = embedded.pipeline, lake_assets(embedded)

    @multi_asset(
        name=op_name(pipeline),
        specs=[asset_spec(embedded, asset, partitions) for asset in assets],
        check_specs=[spec for kind in checks for spec in kind.specs],
        can_subset=True,
        backfill_policy=BackfillPolicy.single_run() if partitions else None,
        required_resource_keys={embedded.spark_key},
        pool=pipeline.name,
    )
    def work_off(context: AssetExecutionContext, config: BatchOptions) -> Iterator[Event]:
        session = cache(partial(session_of, context, embedded))
        with told_errors():
            selected = [asset for asset in assets if asset.key in context.selected_asset_keys]
            if selected:
                batches = partial(_batches, context, pipeline, session, config)
                yield from _worked_off(
                    context, embedded, batches, selected, partitioned=partitions is not None
                )
                _observe(context, embedded)
            for kind in checks:
                if due := kind.selected(context):
                    yield from kind.evaluate(context, due, session)

    return work_off


def _observe(context: AssetExecutionContext, embedded: EmbeddedPipeline) -> None:
    """Say what the run has left in the sources. They were read, so a listing that fails now is worth a word only."""
    observed, unlisted = look_at_sources(embedded, context.instance)
    for one in observed:
        context.log_event(one)
    if unlisted:
        context.log.warning(unlisted)


def _worked_off(
    context: AssetExecutionContext,
    embedded: EmbeddedPipeline,
    batches: Callable[[], Iterator[Published]],
    selected: Sequence[LakeAsset],
    *,
    partitioned: bool,
) -> Iterator[MaterializeResult[None] | AssetMaterialization]:
    """Work off what is pending, and report it."""
    lake, assets = Lake(embedded.pipeline.lake), lake_assets(embedded)
    others = [asset for asset in assets if asset not in selected]
    if others:
        context.log.info(
            f"{len(selected)} of {len(assets)} assets are selected: batches cover the whole pipeline, "
            "so the others are reported beside them."
        )
    finished: list[Published] = []
    earlier = {day.isoformat() for batch in Journal(lake).published for day in batch.dates}
    targeted = _targeted(context, partitioned=partitioned)
    try:
        for batch in batches():
            context.log.info(printable(_summary(batch)))
            finished.append(batch)
    except BaseException:
        # what is published stays so, also when the run is cancelled, and nothing else would tell Dagster
        rest = split(finished, (), partitioned=partitioned)[1]
        standing = (earlier & {*targeted}) - {done.partition for done in rest}
        if rest or standing:
            reports = Reports(embedded.pipeline, finished)
            yield from beside(reports, assets, rest)
            yield from _standing(reports, selected, standing)
        raise
    if not finished:
        context.log.info("Nothing to do: what was asked for is already applied, or there is no input for it.")
    outputs, rest = split(finished, targeted, partitioned=partitioned)
    reports = Reports(embedded.pipeline, finished)
    yield from beside(reports, assets, rest)
    yield from beside(reports, others, [Materialization(day, batch) for day, batch in outputs.items()])
    yield from _results(context, reports, selected, targeted, outputs)


def _targeted(context: AssetExecutionContext, *, partitioned: bool) -> Sequence[str | None]:
    """The partitions that the run was started for; `[None]` where assets have none."""
    if not partitioned:
        return [None]
    if not names_partitions(context):
        raise Failure("The pipeline has daily partitions, and the run names none: choose some of them.")
    keys: Sequence[str] = context.partition_keys
    return keys


def _batches(
    context: AssetExecutionContext, pipeline: Pipeline, session: Session, config: BatchOptions
) -> Iterator[Published]:
    settle = config.settle_seconds
    return run_batches(
        pipeline,
        session(),
        dates=dates_of_run(context),
        batch_by=config.batch_by,
        batch_rows=config.batch_rows,
        accept=config.accept,
        flush=config.flush,
        rebuild=config.rebuild,
        replace=day_or_name(config.replace),
        settle=None if settle is None else timedelta(seconds=settle),
        progress=lambda stage: context.log.debug(printable(f"stage {stage}")),
    )


def _results(
    context: AssetExecutionContext,
    reports: Reports,
    selected: Sequence[LakeAsset],
    targeted: Sequence[str | None],
    outputs: dict[str | None, Published],
) -> Iterator[MaterializeResult[None]]:
    """One result for each selected asset, of which Dagster makes a materialisation for each partition."""
    for asset in selected:
        metadata = {
            partition: reports.of(asset, outputs[partition].batch, partition)
            if partition in outputs
            else reports.standing(asset, partition)
            for partition in targeted
        }
        for partition, values in metadata.items():
            if partition is not None:
                context.add_asset_metadata(values, asset.key, partition)
        yield MaterializeResult(asset_key=asset.key, metadata=metadata.get(None))


def _standing(
    reports: Reports, selected: Sequence[LakeAsset], days: Collection[str]
) -> Iterator[AssetMaterialization]:
    """Report days that earlier runs have worked off, for Dagster would show them as failed with the run."""
    for day in sorted(days):
        last = reports.last(day)
        for asset in selected:
            tags = None if last is None else reports.made_with(asset, last.batch)
            metadata = reports.standing(asset, day)
            yield AssetMaterialization(asset.key, partition=day, metadata=metadata, tags=tags)


def _summary(batch: Published) -> str:
    days = (
        " to ".join(day.isoformat() for day in dict.fromkeys(batch.dates[:1] + batch.dates[-1:])) or "no date"
    )
    tables = "; ".join(
        f"{name}: {counts.get('applied', 0)} of {counts.get('records', 0)} records applied"
        for name, counts in batch.tables.items()
        if counts.get("records")
    )
    said = f"Batch {batch.batch} ({batch.kind}, {days}) published. {tables or 'No records.'}"
    stages = defaultdict[str, float](float)
    for stage, seconds in batch.seconds.items():
        stages[stage.partition("/")[0]] += seconds
    times = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in stages.items())
    return f"{said} Seconds by stage: {times}." if times else said
