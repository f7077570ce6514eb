"""Brings into a history by event time what the records of a batch say of the past, and of now.

Only left keys are looked at of which a version came, or which ever referred to a right key of which one did; and of
these only what is not settled yet.
"""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.batch.context import Batch, GateResult
from lakejoin.orchestration.batch.joins.history import bring_in, continues
from lakejoin.orchestration.batch.tables.table import TableBatch
from lakejoin.orchestration.lake_state.config_fingerprints import kept_history
from lakejoin.storage.state.result_histories import apply_revisions
from lakejoin.storage.state.settled_times import forgotten_rows, known_since, settled_until
from lakejoin.transforms.changelog.versions import as_versions, intervals, reachable, versions_schema
from lakejoin.transforms.foreign_key_join.event_history import GONE, reaching, revised
from lakejoin.transforms.foreign_key_join.history import history_schema
from lakejoin.transforms.foreign_key_join.temporal_join import left_versions, temporal_join
from lakejoin.transforms.model.event_time import latest
from lakejoin.transforms.model.join_sides import foreign_key, spread
from lakejoin.transforms.model.keys import Keys, restrict
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import DELETED, FOREIGN_KEY, by_reference, empty, key_struct, named
from lakejoin.transforms.model.specs import JoinSpec


def commit_event_history(
    batch: Batch, join: ResultSpec, tables: Mapping[str, TableBatch], gate_result: GateResult,
    ready: Callable[[], None],
) -> None:  # fmt: skip
    """Revise the history of a join by what came of its sides, in one commit, once `ready` returns.

    `tables`: of the batch. A history that begins is made of all that the sides' histories still hold; so is one that
    was not kept meanwhile, for what folds have dropped since cannot be told. A join that begins anew is compared with
    all of it.
    """
    gate_result.result()
    _Revision(batch, join, tables).commit(ready)


def settled_after(batch: Batch, join: ResultSpec, tables: Mapping[str, TableBatch]) -> datetime | None:
    """Return the time before which nothing can change a history by event time any more, once the batch is done."""
    clocks = {f"tables/{name}": table.clock for name, table in tables.items() if table.clock is not None}
    after = dataclasses.replace(batch.plan, clocks={**batch.plan.clocks, **clocks})
    return settled_until(after, [tables[side].spec for side in join.reads])


class _Revision:
    """What a batch does to the history of a join."""

    def __init__(self, batch: Batch, join: ResultSpec, tables: Mapping[str, TableBatch]) -> None:
        self._batch, self._join = batch, join
        self._tables = {name: tables[name] for name in join.reads}
        plan = batch.plan
        kept = kept_history(batch.pipeline, batch.journal, join.name, plan.batch - 1)
        self._anew = not (continues(batch, join) and kept)
        self._whole = self._anew or join.name in plan.bootstrap
        sides = [table.spec for table in self._tables.values()]
        self._since = known_since(plan, sides) if self._whole else settled_until(plan, sides)
        if not self._anew:
            # what is past its retention does not come back
            self._since = latest(self._since, forgotten_rows(plan, join.name, sides))

    def commit(self, ready: Callable[[], None]) -> None:
        """Commit it once `ready` returns, if it is anything."""
        if not (self._whole or any(map(_has_versions, self._tables.values()))):
            return
        batch, join = self._batch, self._join
        with batch.stage(f"history/{join.name}"):
            keys = None if self._whole else self._touched()
            stored = empty(batch.spark, history_schema(join)) if self._anew else self._stored(keys)
            made = self._revised(keys, stored)
            rows = made.drop(GONE) if self._anew else made
            bring_in(batch, join, rows, apply_revisions, ready, goes_on=not self._anew)

    def _revised(self, keys: Keys | None, stored: DataFrame) -> DataFrame:
        """What changes of some left keys, or of all."""
        batch, join = self._batch, self._join
        left = batch.frames.keep(left_versions(self._intervals(join.left, keys), join))
        batch.frames.expect(left.count())
        rights = [self._right(part, None if keys is None else left) for part in join.parts]
        number = by_reference(F.lit(batch.plan.batch).cast("bigint"))
        return revised(temporal_join(left, rights, join), stored, join, number, self._since)

    def _right(self, part: JoinSpec, left: DataFrame | None) -> DataFrame:
        """The versions of a right side: of the keys that the left versions refer to, or of all."""
        keys = None
        if left is not None:
            keys = self._batch.frames.keys(spread(left, part.of_side("foreign_key"), part.right_key))
        return self._batch.frames.keep(self._intervals(part.right, keys))

    def _stored(self, keys: Keys | None) -> DataFrame:
        rows, key = self._batch.state.history(self._join), self._join.joined_left_key
        if keys is not None:
            rows = restrict(rows, dataclasses.replace(keys, rows=keys.rows.toDF(*key)), key)
        return reaching(rows, self._since)

    def _touched(self) -> Keys:
        """The left keys of which a version came, or one of which refers to a right key of which one did."""
        left, frames = self._tables[self._join.left], self._batch.frames
        found = self._came(left).select(*map(named, left.spec.key))
        for part in self._join.parts:
            right = self._tables[part.right]
            if not _has_versions(right):
                continue
            came = self._came(right).select(key_struct(part.right_key).alias(FOREIGN_KEY)).distinct()
            referring = self._versions(left, None).where(~named(DELETED))
            keyed = referring.select(*map(named, left.spec.key), foreign_key(part).alias(FOREIGN_KEY))
            met = restrict(keyed, frames.keys(came), (FOREIGN_KEY,))
            found = found.unionByName(met.drop(FOREIGN_KEY))
        keys = frames.keep(found.distinct())
        frames.expect(keys.count())
        return frames.keys(keys)

    def _intervals(self, table: str, keys: Keys | None) -> DataFrame:
        """The versions of a table after the batch, as far as they are not settled, with their ends."""
        batch = self._tables[table]
        return reachable(intervals(self._versions(batch, keys), batch.spec), self._since)

    def _versions(self, table: TableBatch, keys: Keys | None) -> DataFrame:
        came = self._came(table)
        if keys is not None:
            came = restrict(came, keys, table.spec.key)
        return self._batch.state.versions(table.spec, keys).unionByName(came)

    def _came(self, table: TableBatch) -> DataFrame:
        """What the batch brings of the versions of a table."""
        names = versions_schema(table.spec).names
        return as_versions(self._batch.timed(table.changes), names)


def _has_versions(table: TableBatch) -> bool:
    return table.counts["versions"] + table.counts["duplicate"] > 0
