"""Names what a foreign-key join reads in a batch, and what it leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lakejoin.transforms.model.keys import KeyTotals
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.specs import JoinSpec

Lookup = Callable[[DataFrame], DataFrame]
"""Gives the rows of a side that the batch did not change, of keys as `primary_key`: as its `after`."""


@dataclass(frozen=True)
class Inserts:
    """Left rows that were not there before, each with one change in the batch."""

    rows: DataFrame
    """primary_key, hash, `POSITION`, value, and the foreign key to each right side by `JoinSpec.of_side`."""
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
    """primary_key, position, hash and foreign keys (as of `Inserts`) of each change, in no order."""
    before: DataFrame
    """primary_key and foreign keys of the live rows before the batch, of the changed keys."""
    after: DataFrame
    """primary_key, hash, position, value of the changed keys' rows after the batch; no other key's."""
    lookups: Sequence[Lookup]
    """For each right side: the rows that its changed rows have found."""
    inserts: Inserts | None = None
    """Where they are worth a way of their own; then they are neither among `changes` nor in `after`."""
    was: DataFrame | None = None
    """Of groups that are adjusted: as `after`, the live rows before the batch, of at least the changed keys."""


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
class Messages:
    """What the left side of a join and one right side told each other in a batch."""

    spec: JoinSpec
    """The join of these two sides."""
    log: DataFrame
    """Rows of `subscription_log`."""
    responses: DataFrame
    """Rows of `response_log`."""
    right: DataFrame
    """primary_key, hash, position, value of the right rows after the batch that are read for its result."""
    store: DataFrame
    """Live subscriptions at hand: of the changed left rows and of the changed right keys."""


@dataclass(frozen=True)
class JoinBatch:
    """What a batch does to a join."""

    spec: ResultSpec
    messages: tuple[Messages, ...]
    """With each right side, in the order of `ResultSpec.parts`."""
    emissions: DataFrame
    """Rows of the joined table with `PRIMARY_KEY`, `TOMBSTONE` and the columns of `marks_of`."""
    left: DataFrame
    """primary_key, hash, position, value of the touched left rows after the batch, and of changed ones."""
    first: Inserts | None = None
    """The inserts that the join begins with, where these are all that it reads."""
    made: DataFrame | None = None
    """The emissions as they were made, where `emissions` are read back from files."""
    found: DataFrame | None = None
    """Of a star: left rows that changes of right rows have found, each perhaps more than once."""
    withheld: DataFrame | None = None
    """Of a star that may lack rows: left rows for which nothing is emitted, as rows of the same columns."""
