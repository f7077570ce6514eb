"""Tells how far bases are folded, and gives the state after the last finished batch as maintenance takes it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.inventory import JOINS_IN_LAKE, bases_of, state_tables
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.delta_log.snapshot import Snapshot
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, is_base
from lakejoin.storage.lake.plan import Plan


def finished_state(pipeline: Pipeline, lake: Lake, journal: Journal, now: datetime) -> Plan:
    """Return a plan of the next batch, never committed, that pins the state after the last finished one.

    While a batch is under way, its own rows may stand in the logs already: so logs are read as they were published.
    Raises `WrongUsage` for a lake without a finished batch.
    """
    snapshot = published_snapshot(journal)
    bases, folded = pinned_bases(pipeline, lake, journal)
    logs = snapshot.versions if journal.unfinished else lake.versions(state_tables(pipeline))
    versions = {table: version for table, version in logs.items() if table not in bases_of(pipeline)} | bases
    return replace(snapshot, versions=versions, folded=folded, planned_at=max(now, snapshot.planned_at))


def pinned_bases(pipeline: Pipeline, lake: Lake, journal: Journal) -> tuple[dict[str, int], dict[str, int]]:
    """Return the version of every base as it is now, and the last batch folded into it.

    A store that was last folded before its join began anew does not count any more. It then has no version, and its log
    begins with the batch after the last one folded.
    """
    versions, folded = {}, {}
    stores = [base for kind in JOINS_IN_LAKE.values() for base in kind.bases]
    begun = {base(name): batch for name, batch in journal.begun.items() for base in stores}
    for base in bases_of(pipeline):
        stored = lake.snapshot(base)
        if stored is None:
            continue
        through = folded_through(journal, stored) or 0
        if through < begun.get(base, 0):
            folded[base] = begun[base] - 1
        else:
            versions[base], folded[base] = stored.version, through
    return versions, folded


def folded_through(journal: Journal, base: Snapshot) -> int | None:
    """The last batch that a base holds, by its own log; None where nothing was folded into it."""
    return base.transaction(journal.application(f"fold/{base.table}"))


def folded_ahead(journal: Journal, snapshots: Mapping[str, Snapshot]) -> Iterator[tuple[str, int]]:
    """Yield the bases that hold more batches than are finished, with the last of these; folds work on finished ones."""
    for base, stored in snapshots.items():
        through = folded_through(journal, stored) if is_base(base) else None
        if through is not None and through > len(journal.published):
            yield base, through


def with_present_bases(lake: Lake, plan: Plan) -> Plan:
    """A plan without the bases that are gone since it was made: their logs hold the same."""
    return plan.without([b for b in plan.folded if b in plan.versions and lake.snapshot(b) is None])


def pinned_versions(journal: Journal) -> Mapping[str, frozenset[int]]:
    """Versions of each table that must stay whatever their age: of the last snapshot, and of a batch under way."""
    plans = [published_snapshot(journal), *([journal.unfinished] if journal.unfinished else [])]
    if journal.last is not None:  # the versions that others read the snapshot at
        plans.append(replace(plans[0], versions=journal.last.versions))
    tables = {table for plan in plans for table in plan.versions}
    return {
        table: frozenset(plan.versions[table] for plan in plans if table in plan.versions) for table in tables
    }
