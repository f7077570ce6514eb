"""Reports what a batch means for each asset as metadata: counts, rows, Delta version, files and seconds.

Dagster plots numbers in metadata over the materialisations of an asset, so they carry the same names in each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

import pyarrow.dataset as ds
from dagster import AssetMaterialization
from dagster._core.definitions.data_version import CODE_VERSION_TAG

from lakejoin.orchestration.batch.tables.verdicts import VERDICTS
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.asset_keys import LakeAsset
from lakejoin.orchestration.defs.steps import STEPS
from lakejoin.orchestration.defs.time_asset_specs import clock_metadata
from lakejoin.orchestration.lake_state.config_fingerprints import state_versions
from lakejoin.orchestration.lake_state.quarantine_counts import LATE
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake
from lakejoin.storage.lake.plan import Published
from lakejoin.storage.lake.table_counts import dated_counts, row_count
from lakejoin.storage.sources.planned.planned_file import TOPIC

STANDING = "already applied"
"""The status of what a run found done."""
_STATE = ("delta_version", "dagster/row_count")
_OF_EACH_DATE = ("status", "batch", "kind", "delta_version")


@dataclass(frozen=True)
class Materialization:
    """A batch that brought a partition forward; `partition` is None where assets have none."""

    partition: str | None
    batch: Published


def split(
    batches: Iterable[Published], targeted: Sequence[str | None], *, partitioned: bool
) -> tuple[dict[str | None, Published], list[Materialization]]:
    """Divide the batches of a run into what the run's own outputs report, and the rest.

    An output reports each targeted partition once, with the last batch that covers it. The rest are earlier
    batches of the same partition, and batches beyond the target: one that an earlier run did not finish,
    or the first one of a new join.
    """
    outputs: dict[str | None, Published] = {}
    rest: list[Materialization] = []
    for batch in batches:
        for partition in [day.isoformat() for day in batch.dates] if partitioned and batch.dates else [None]:
            if partition not in targeted:
                rest.append(Materialization(partition, batch))
                continue
            if partition in outputs:
                rest.append(Materialization(partition, outputs[partition]))
            outputs[partition] = batch
    return outputs, rest


class Reports:
    """What is said of the batches of a lake, `done` among them; each is looked at once, however many dates it has."""

    def __init__(self, pipeline: Pipeline, done: Iterable[Published]) -> None:
        self._pipeline, self._lake = pipeline, Lake(pipeline.lake)
        self._journal = Journal(self._lake)
        self._batches = {batch.batch: batch for batch in (*self._journal.published, *done)}
        self._metadata = cache(self._of_batch)
        self._dated = cache(self._by_date)
        self._versions = cache(self._versions_of)

    def of(self, asset: LakeAsset, number: int, partition: str | None) -> dict[str, Any]:
        """Metadata of an asset after a batch, and of a date where the batch has several.

        What is known of the whole batch only stands with its last date, so that sums over dates are right.
        """
        batch, metadata = self._batches[number], self._metadata(asset, number)
        if partition is None or len(batch.dates) <= 1:
            return metadata
        first, last, day = batch.dates[0], batch.dates[-1], date.fromisoformat(partition)
        if day != last:
            metadata = {name: metadata[name] for name in _OF_EACH_DATE if name in metadata}
        return {
            **metadata,
            "dates": f"{len(batch.dates)} from {first} to {last}",
            **self._dated(asset, number)[day],
        }

    def standing(self, asset: LakeAsset, partition: str | None) -> dict[str, Any]:
        """Metadata where a run found nothing to do: the batch that had applied the input, if there was any."""
        batch = self.last(partition)
        if batch is None:
            return {"status": "no input"}
        found = self._metadata(asset, batch.batch)
        state = {name: found[name] for name in _STATE if name in found}
        return {"status": STANDING, "batch": batch.batch, **state}

    def made_with(self, asset: LakeAsset, number: int) -> dict[str, str]:
        """The tag that says with which configuration a batch was made, where no output of a run does."""
        return {CODE_VERSION_TAG: self._versions(number)[asset.declared]}

    def last(self, partition: str | None) -> Published | None:
        """The last batch of a partition."""
        day = None if partition is None else date.fromisoformat(partition)
        return next(
            (batch for batch in reversed(self._batches.values()) if day is None or day in batch.dates), None
        )

    def _versions_of(self, number: int) -> Mapping[str, str]:
        plan = next((plan for plan in self._journal.plans if plan.batch == number), None)
        return state_versions(self._pipeline, plan)

    def _of_batch(self, asset: LakeAsset, number: int) -> dict[str, Any]:
        return batch_metadata(asset, self._batches[number], self._lake, self._journal)

    def _by_date(self, asset: LakeAsset, number: int) -> dict[date, dict[str, int]]:
        """The counts of each date of a batch that its log knows."""
        batch, step = self._batches[number], STEPS[asset.step]
        if step.log is None:
            return {day: {} for day in batch.dates}
        logged = dated_counts(self._lake, asset.table, number, step.log.kind, which=step.log.rows)
        names = step.counts
        refused: Mapping[date | None, Mapping[str, int]] = {}
        if names is None:
            names = ("records", *[name for name in VERDICTS if name in batch.tables.get(asset.name, {})])
            of_asset = (ds.field("table") == asset.name) & (ds.field("reason") != LATE)
            refused = dated_counts(self._lake, QUARANTINE, number, "table", which=of_asset)
        found = dict[date, dict[str, int]]()
        for day in batch.dates:
            kinds = {**logged.get(day, {}), "quarantined": sum(refused.get(day, {}).values())}
            sums = {
                name: sum(kinds.get(kind, 0) for kind in parts or kinds)
                for name, parts in step.log.sums.items()
            }
            found[day] = {name: sums.get(name, kinds.get(name, 0)) for name in names}
        return found


def beside(
    reports: Reports, assets: Sequence[LakeAsset], done: Iterable[Materialization]
) -> Iterator[AssetMaterialization]:
    """Report batches for which no output of a run stands."""
    for one in done:
        for asset in assets:
            metadata = reports.of(asset, one.batch.batch, one.partition)
            tags = reports.made_with(asset, one.batch.batch)
            yield AssetMaterialization(asset.key, partition=one.partition, metadata=metadata, tags=tags)


def batch_metadata(asset: LakeAsset, batch: Published, lake: Lake, journal: Journal) -> dict[str, Any]:
    """Metadata of an asset after a batch; what is not known is left out. `journal`: that of the lake."""
    of_asset = batch.tables if asset.step in {"table", "versions", "stream"} else batch.joins
    counts = of_asset.get(asset.name, {})
    step = STEPS[asset.step]
    names = tuple(counts) if step.counts is None else step.counts
    seconds = sum(batch.seconds.get(f"{stage}/{asset.name}", 0.0) for stage in step.stages)
    return {
        "status": "applied",
        "batch": batch.batch,
        "kind": batch.kind,
        **{name: counts[name] for name in names if name in counts},
        **clock_metadata(batch, asset.name, asset.step),
        "seconds": round(seconds, 3),
        **_files(asset, batch),
        **_offsets(asset, batch, journal),
        **_state(asset, batch, lake),
    }


def _files(asset: LakeAsset, batch: Published) -> dict[str, int]:
    """How many files of the asset's tables the batch read, of how many."""
    tables = [table(asset.name) for table in STEPS[asset.step].reads]
    read = [batch.files[table] for table in tables if table in batch.files]
    return {f"files_{name}": sum(counts[name] for counts in read) for name in ("read", "held") if read}


def _offsets(asset: LakeAsset, batch: Published, journal: Journal) -> dict[str, Any]:
    """Of an asset that reads topics: the next offset of each partition, and how many waited when it was planned."""
    if asset.step not in {"table", "versions", "stream"}:
        return {}
    known = journal.known_files(asset.name, until=batch.batch)
    names = {name for path, name in known.each("path", "name") if path.startswith(TOPIC)}
    partitions = {name: part for name in names if (part := known[name]).path.startswith(TOPIC)}
    if not partitions:
        return {}
    read = {part.name for part in journal.plans[batch.batch - 1].files_of(asset.name)}
    lag = sum(part.lines - part.to_line for name, part in partitions.items() if name in read)
    return {"offsets": {name: part.to_line for name, part in sorted(partitions.items())}, "lag": lag}


def _state(asset: LakeAsset, batch: Published, lake: Lake) -> dict[str, Any]:
    """The asset as a batch left it."""
    state: dict[str, Any] = {}
    version = batch.versions.get(asset.table)
    if version is not None:
        state["delta_version"] = version
    rows = batch.rows.get(asset.name) if asset.step == "table" else None
    if asset.step == "joined" and version is not None:
        rows = _rows_at(lake, asset.table, version)
    if rows is not None:
        state["dagster/row_count"] = rows
    return state


def _rows_at(lake: Lake, table: str, version: int) -> int | None:
    """Rows of a version of a table; None for one that is so old that Delta has cleaned up after it."""
    try:
        return row_count(lake, table, version)
    except LakejoinError:
        return None
