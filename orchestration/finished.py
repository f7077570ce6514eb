"""The state after the last finished batch as maintenance takes it: with bases as far as they are folded by now."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from orchestration.batch_context import bases_of, state_tables
from orchestration.config import Pipeline
from orchestration.cut import published_cut
from storage.lake import Lake
from storage.plan import Journal, Plan


def finished_state(pipeline: Pipeline, lake: Lake, journal: Journal, now: datetime) -> Plan:
    """Return a plan of the next batch, never committed, that pins the state after the last finished one.

    While a batch is under way, its own rows may stand in the logs already: so logs are read as they were published.
    Raises `WrongUsage` for a lake without a finished batch.
    """
    cut = published_cut(journal)
    snapshots = [snapshot for base in bases_of(pipeline) if (snapshot := lake.snapshot(base))]
    folded = {s.table: s.transaction(journal.application(f"fold/{s.table}")) or 0 for s in snapshots}
    current = {} if journal.unfinished else lake.versions(state_tables(pipeline))
    versions = {**cut.versions, **current, **{s.table: s.version for s in snapshots}}
    return replace(cut, versions=versions, folded=folded, planned_at=max(now, cut.planned_at))


def pinned_versions(journal: Journal) -> Mapping[str, frozenset[int]]:
    """Versions of each table that must stay whatever their age: of the last cut, and of a batch under way."""
    plans = [published_cut(journal), *([journal.unfinished] if journal.unfinished else [])]
    if journal.last is not None:  # the versions that others read the cut at
        plans.append(replace(plans[0], versions=journal.last.versions))
    tables = {table for plan in plans for table in plan.versions}
    return {
        table: frozenset(plan.versions[table] for plan in plans if table in plan.versions) for table in tables
    }
