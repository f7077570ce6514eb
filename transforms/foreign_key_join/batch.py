"""Names what a foreign-key join reads in a batch, and what it leaves."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame

from transforms.model.keys import KeyTotals
from transforms.model.specs import JoinSpec

Lookup = Callable[[DataFrame], DataFrame]
"""Gives the rows of a side that the batch did not change, of keys as `primary_key`: as its `after`."""


@dataclass(frozen=True)
class Inserts:
    """Left rows that were not there before, each with one change in the batch."""

    rows: DataFrame
    """primary_key, foreign_key, hash, `POSITION` and value."""
    alone: bool
    """Whether nothing else changed."""
    keys: KeyTotals | None = None
    """Their keys, as they were seen when the records were read."""


@dataclass(frozen=True)
class Left:
    """The left side of a join in a batch."""

    changed: int
    """How many changes there are; 0 spares every job they would need."""
    changes: DataFrame
    """primary_key, position, foreign_key, hash of each change, in no order."""
    before: DataFrame
    """primary_key, foreign_key of the live rows before the batch, of the changed keys."""
    after: DataFrame
    """primary_key, hash, position, value of the changed keys' rows after the batch; no other key's."""
    lookup: Lookup
    inserts: Inserts | None = None
    """Where they are worth a way of their own; then they are neither among `changes` nor in `after`."""


@dataclass(frozen=True)
class Right:
    """The right side of a join in a batch."""

    changed: int
    changes: DataFrame
    """primary_key, hash, position of the rows that changed, after the batch; tombstones have no hash."""
    after: DataFrame
    """primary_key, hash, position, value of the batch's keys after it."""
    lookup: Lookup


@dataclass(frozen=True)
class JoinBatch:
    """What a batch does to a join."""

    spec: JoinSpec
    log: DataFrame
    """Rows of `subscription_log`."""
    responses: DataFrame
    """Rows of `response_log`."""
    emissions: DataFrame
    """Rows of the joined table with `PRIMARY_KEY` and `TOMBSTONE`."""
    left: DataFrame
    """primary_key, hash, position, value of the touched left rows after the batch, and of changed ones."""
    right: DataFrame
    """The same of the right rows that answers name."""
    store: DataFrame
    """Live subscriptions at hand: of the changed left rows and of the changed right keys."""
    first: Inserts | None = None
    """The inserts that the join begins with, where these are all that it reads."""
    made: DataFrame | None = None
    """The emissions as they were made, where `emissions` are read back from files."""
