"""Tells from which time on a history by event time may still change, and how far back its sides are known."""

from collections.abc import Collection
from datetime import datetime

from lakejoin.storage.lake.layout import history_of, versions_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.state.pinned_state import history_bound
from lakejoin.transforms.model.event_time import earliest, latest
from lakejoin.transforms.model.specs import TableSpec


def settled_until(plan: Plan, sides: Collection[TableSpec]) -> datetime | None:
    """Return the time before which no record can change a join of versioned tables; None while there is none.

    An older record would be refused as expired by each of them. `plan`: after what batch; `sides`: the tables.
    """
    return latest(earliest(*[history_bound(plan, table) for table in sides]), known_since(plan, sides))


def known_since(plan: Plan, sides: Collection[TableSpec]) -> datetime | None:
    """Return the time from which on all versions of the tables are there; None where folds have dropped none."""
    return latest(*[plan.forgotten(versions_of(table.name)) for table in sides])


def forgotten_rows(plan: Plan, join: str, sides: Collection[TableSpec]) -> datetime | None:
    """Return the time before which rows that ended are removed from a join's history; None where none are."""
    time, settled = plan.forgotten(history_of(join)), settled_until(plan, sides)
    # a later one is of a former history of that name, which went by the batches
    return time if time is not None and settled is not None and time <= settled else None
