"""Describes the sources of a pipeline as assets upstream of its tables, and observes what of them is not read yet."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from warnings import catch_warnings, simplefilter

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetObservation,
    AssetsDefinition,
    AssetSpec,
    BetaWarning,
    DagsterInstance,
    IntMetadataValue,
    MetadataValue,
    ObserveResult,
    TextMetadataValue,
    TimestampMetadataValue,
    multi_observable_source_asset,
)

from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.told_errors import told_errors
from lakejoin.orchestration.planning.backlog import Backlog, unasked_backlog
from lakejoin.storage.errors import SourceError
from lakejoin.transforms.model.printable_text import printable

Seen = Mapping[str, MetadataValue]
SOURCE = "source"
"""What stands behind the name of a table in the key of its source."""
_OF_THE_CLOCK = {"lag_seconds"}
"""What differs at each look, though nothing happened."""
_FILES = "files"


def source_key(embedded: EmbeddedPipeline, name: str) -> AssetKey:
    """Key of the source of a table or stream."""
    return embedded.step_key(name, SOURCE)


def source_assets(embedded: EmbeddedPipeline) -> AssetsDefinition:
    """The sources as assets that nobody materialises; whoever observes them by hand lists them, without a JVM.

    To Dagster's conditions an external asset that has no such op is missing for ever, however often it was observed.
    """

    def observe(context: AssetExecutionContext) -> Iterator[ObserveResult]:
        with told_errors():
            now = datetime.now(UTC)
            listed = unasked_backlog(embedded.pipeline, now)
        for name in embedded.pipeline.inputs:
            key = source_key(embedded, name)
            if key in context.selected_asset_keys:
                yield ObserveResult(asset_key=key, metadata=_seen(embedded, name, listed, now))

    with catch_warnings():
        simplefilter("ignore", BetaWarning)
        name = f"{embedded.pipeline.name}_sources"
        assets: AssetsDefinition = multi_observable_source_asset(
            name=name, specs=_specs(embedded), can_subset=True
        )(observe)
    return assets


def _specs(embedded: EmbeddedPipeline) -> list[AssetSpec]:
    return [
        AssetSpec(
            source_key(embedded, name),
            description=f"Change data of `{name}` ({table.source.format}): `{printable(table.source_spec.place)}`.",
            metadata={"place": printable(table.source_spec.place), "format": table.source.format},
            group_name=embedded.sources_group,
            owners=[*embedded.owners],
            tags={**embedded.tags},
            kinds={table.source.format},
        )
        for name, table in embedded.pipeline.inputs.items()
    ]


def look_at_sources(
    embedded: EmbeddedPipeline, instance: DagsterInstance
) -> tuple[list[AssetObservation], str]:
    """List all sources, and return what changed; and why one cannot be listed, or an empty text."""
    now = datetime.now(UTC)
    try:
        listed = unasked_backlog(embedded.pipeline, now)
    except SourceError as error:
        return [], printable(str(error))
    return list(observations(embedded, listed, instance, now)), ""


def observations(
    embedded: EmbeddedPipeline, listed: Backlog, instance: DagsterInstance, now: datetime
) -> Iterator[AssetObservation]:
    """Observe each source that is not as it was when it was last observed."""
    for name in embedded.pipeline.inputs:
        key, seen = source_key(embedded, name), _seen(embedded, name, listed, now)
        if _lasting(seen) != _lasting(_last(instance, key)):
            yield AssetObservation(key, metadata=seen)


def _seen(embedded: EmbeddedPipeline, name: str, listed: Backlog, now: datetime) -> Seen:
    """What a listing says of a source: what waits, its newest file, and by how much reading lags behind."""
    unit = embedded.pipeline.inputs[name].source_format.unit
    waiting = [waits.file for waits in listed.files if waits.table == name]
    counts = {f"pending_{unit}".replace(" ", "_"): len(waiting), "held": listed.found[name]}
    if name in listed.reached:
        counts["pending_records"] = sum(part.lag for part in listed.reached[name])
    if unit == _FILES:
        counts["pending_bytes"] = sum(file.size for file in waiting)
    lag = listed.lag(name, now)
    if lag is not None:
        counts["lag_seconds"] = int(lag.total_seconds())
    return {**{key: MetadataValue.int(count) for key, count in counts.items()}, **_newest(name, listed)}


def _newest(name: str, listed: Backlog) -> Seen:
    newest = listed.newest.get(name)
    if newest is None:
        return {}
    found: dict[str, MetadataValue] = {"newest": MetadataValue.text(printable(newest.name))}
    if newest.date is not None:
        found["newest_date"] = MetadataValue.text(newest.date.isoformat())
    if newest.modified:
        found["newest_changed"] = MetadataValue.timestamp(newest.modified / 1e9)
    return found


def _last(instance: DagsterInstance, key: AssetKey) -> Seen:
    """The metadata of the last observation of an asset."""
    for record in instance.fetch_observations(key, limit=1).records:
        if record.asset_observation is not None:
            return record.asset_observation.metadata
    return {}


def _lasting(seen: Seen) -> dict[str, object]:
    kinds = (IntMetadataValue, TextMetadataValue, TimestampMetadataValue)
    return {
        name: value.value
        for name, value in seen.items()
        if isinstance(value, kinds) and name not in _OF_THE_CLOCK
    }
