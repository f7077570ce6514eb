"""Finds which batches no check has looked at yet, from what Dagster's instance remembers.

A run that fails or is killed between two batches leaves what it published unchecked: the next run's checks begin there.
For that, every evaluation of a check says up to which batch it looked.
"""

from collections.abc import Collection, Iterable, Mapping

from dagster import (
    AssetCheckKey,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    DagsterEventType,
    DagsterInstance,
    IntMetadataValue,
    MetadataValue,
    TextMetadataValue,
)

from lakejoin.orchestration.defs.materializations import STANDING

THROUGH = "looked_at_through"
"""In the metadata of an evaluation: the last batch that had been published."""
_FIRST_EVENTS = 100
"""Among so many is what the first run reported; their order within a run is Dagster's."""


def first_batch(
    context: AssetExecutionContext, selected: Collection[AssetCheckKey], published: int
) -> int | None:
    """The first batch that a run's checks look at; None for a run of checks only, which look at all rows.

    It is the first one that this run reported, or an earlier one that a selected check has not seen. `published`: how
    many batches the lake has.
    """
    logs = context.instance.all_logs(context.run.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
    events = [event.asset_materialization for event in logs if event.asset_materialization]
    if not events:
        return None
    seen = _numbers(context.instance, selected, THROUGH)
    known = [batch for batch in seen.values() if batch is not None and batch <= published]
    # what stands there since another run has been looked at, unless a check has not seen it
    new = [event for event in events if _text(event.metadata.get("status")) != STANDING]
    first = min([*_batches(new), published, *[batch + 1 for batch in known]])
    # a check that never was run, or ran on another lake: it has seen nothing of what Dagster knows of its asset
    unseen = {check.asset_key for check, batch in seen.items() if batch is None or batch > published}
    return min([first, *_first_reported(context.instance, unseen)])


def _numbers(
    instance: DagsterInstance, selected: Collection[AssetCheckKey], name: str
) -> Mapping[AssetCheckKey, int | None]:
    """A number that the last evaluation of each check says, as up to which batch it looked; a failed one, too."""
    records = instance.event_log_storage.get_asset_check_summary_records(list(selected))
    found: dict[AssetCheckKey, int | None] = dict.fromkeys(selected)
    for check, record in records.items():
        done = record.last_completed_check_execution_record
        if done is not None and done.evaluation is not None:
            found[check] = _number(done.evaluation.metadata.get(name))
    return found


def _first_reported(instance: DagsterInstance, assets: Iterable[AssetKey]) -> list[int]:
    """The batches that the first runs of an instance reported."""
    found: list[int] = []
    for asset in assets:
        records = instance.fetch_materializations(asset, limit=_FIRST_EVENTS, ascending=True).records
        events = (record.asset_materialization for record in records)
        found += _batches(event for event in events if event is not None)
    return found


def is_alone(context: AssetExecutionContext) -> bool:
    """Whether a run is of checks only: it reported no batch."""
    of_type = DagsterEventType.ASSET_MATERIALIZATION
    return not context.instance.all_logs(context.run.run_id, of_type=of_type)


def last_number(instance: DagsterInstance, check: AssetCheckKey, name: str) -> int | None:
    """A number among the metadata of the last evaluation of a check; None where there is none."""
    return _numbers(instance, [check], name)[check]


def batches_of(instance: DagsterInstance, asset: AssetKey, *, limit: int) -> set[int]:
    """The batches among the last reports of an asset."""
    records = instance.fetch_materializations(asset, limit=limit).records
    return {*_batches(record.asset_materialization for record in records if record.asset_materialization)}


def _batches(events: Iterable[AssetMaterialization]) -> list[int]:
    numbers = (_number(event.metadata.get("batch")) for event in events)
    return [number for number in numbers if number]


def _text(value: MetadataValue | None) -> str | None:
    return value.value if isinstance(value, TextMetadataValue) else None


def _number(value: MetadataValue | None) -> int | None:
    return value.value if isinstance(value, IntMetadataValue) else None
