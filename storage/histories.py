"""How far back the history of a versioned table is known whole."""

from datetime import datetime

from storage.lake.layout import versions_of
from storage.lake.plan import Plan
from transforms.model.event_time import latest, moved_back
from transforms.model.specs import TableSpec


def history_bound(plan: Plan, table: TableSpec) -> datetime | None:
    """Return the time before which versions may be missing as of a plan; None while there is none.

    It lies by the retention behind the table's clock; or where a fold went by a retention that was shorter than it is
    now.
    """
    clock = plan.clocks.get(f"tables/{table.name}")
    return latest(moved_back(clock, table.history_retention), forgotten(plan, table))


def forgotten(plan: Plan, table: TableSpec) -> datetime | None:
    """Return the time before which folds have dropped what had ended; None where none has."""
    cutoff = plan.floors.get(versions_of(table.name))
    return datetime.fromisoformat(cutoff) if cutoff else None
