"""Reads the state as it was before a batch, at the versions that the batch's plan pins.

State tables are log-structured: a batch appends to a log, and now and then a fold brings the log into its base. So the
rows of a table are its base and the changes behind it, and subscriptions are the folded store and the log behind it.
The same holds for histories. It also tells how far back a history reaches, and which changes of a table are known when
files are replaced.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.storage.delta_table.direct_scan import read_table
from lakejoin.storage.delta_table.file_pruning import Few, FilesRead
from lakejoin.storage.lake.layout import (
    Lake,
    changes_of,
    history_of,
    joined_of,
    left_rows_of,
    records_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
    versions_of,
)
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.transforms.changelog.current_rows import latest_rows, settled
from lakejoin.transforms.changelog.replaced_files import replaced
from lakejoin.transforms.changelog.versions import as_versions, versions_schema
from lakejoin.transforms.foreign_key_join.emissions import joined_schema
from lakejoin.transforms.foreign_key_join.history import history_schema
from lakejoin.transforms.foreign_key_join.subscriptions import subscription_schema
from lakejoin.transforms.model.event_time import latest, moved_back
from lakejoin.transforms.model.group_spec import TOTALS, GroupSpec
from lakejoin.transforms.model.guards import guarded
from lakejoin.transforms.model.join_sides import left_rows_schema
from lakejoin.transforms.model.keys import Keys, restrict
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    BATCH,
    FOREIGN_KEY,
    changes_schema,
    empty,
    key_struct,
    named,
    rows_schema,
)
from lakejoin.transforms.model.specs import JoinSpec, TableSpec
from lakejoin.transforms.stream_join.records import stream_schema


@dataclass(frozen=True)
class State:
    """The tables of a lake as they were before the batch of `plan`."""

    spark: SparkSession
    lake: Lake
    plan: Plan
    files: FilesRead = field(default_factory=FilesRead)
    """How many files of the tables are read."""

    def rows(self, table: TableSpec, keys: Keys, columns: list[str]) -> DataFrame:
        """Rows of these keys, tombstones included: the columns named, key and batch always among them."""
        schema = rows_schema(table.columns, table.sequence)
        wanted = [name for name in schema.names if name in {*table.key, *columns, BATCH}]
        base = self._base(rows_of(table.name), schema, _few(keys, table.key[0])).select(
            *[named(name) for name in wanted]
        )
        behind = self._behind(
            changes_of(table.name), rows_of(table.name), changes_schema(table.columns, table.sequence)
        )
        parts = [restrict(part, keys, table.key) for part in (base, settled(behind, wanted))]
        return latest_rows(parts[0].unionByName(parts[1]), table.key)

    def left_rows(self, join: JoinSpec, table: TableSpec, keys: Keys, to: Keys) -> DataFrame:
        """Rows of these keys of a join's left table, of which each points at one of the right keys in `to`.

        `to`: the columns of the right key, in the order of the foreign key. Of the columns of `rows_schema` those that
        the join reads.
        """
        schema = rows_schema(table.columns, table.sequence)
        read = rows_schema(join.left_columns, table.sequence).names
        wanted = [name for name in schema.names if name in {*table.key, *read}]
        base, changes = left_rows_of(join.name), changes_of(table.name)
        if base not in self.plan.versions or _is_overtaken(self.plan, base, rows_of(table.name)):
            return self.rows(table, keys, wanted)
        pointed = to.rows.select(F.struct("*").cast(join.foreign_key_type).alias(FOREIGN_KEY))
        ordered = self._base(base, left_rows_schema(join, schema), Few(pointed, FOREIGN_KEY, to.most))
        behind = self._behind(changes, base, changes_schema(table.columns, table.sequence))
        # a row that left its right key since is among those behind, and newer there
        parts = [
            restrict(part, keys, table.key)
            for part in (ordered.select(*map(named, wanted)), settled(behind, wanted))
        ]
        return latest_rows(parts[0].unionByName(parts[1]), table.key)

    def all_rows(self, table: TableSpec, columns: Sequence[str] | None = None) -> DataFrame:
        """Every row of a table, tombstones included; of some columns, key and batch, if they are named."""
        schema = rows_schema(table.columns, table.sequence)
        named_ones = schema.names if columns is None else {*table.key, *columns, BATCH}
        wanted = [name for name in schema.names if name in named_ones]
        behind = self._behind(
            changes_of(table.name), rows_of(table.name), changes_schema(table.columns, table.sequence)
        )
        base = self._base(rows_of(table.name), schema).select(*map(named, wanted))
        return latest_rows(base.unionByName(settled(behind, wanted)), table.key)

    def folded_rows(self, table: TableSpec) -> DataFrame:
        """The rows of a table as they were folded last, tombstones included, without the changes since."""
        return self._base(rows_of(table.name), rows_schema(table.columns, table.sequence))

    def columns_with_values(self, table: TableSpec, names: Sequence[str]) -> set[str]:
        """Those of some columns that are not null in some row, or in a version of one that the history has."""
        rows = self.all_rows(table) if table.history_retention is None else self.versions(table)
        found = aggregated(rows, *[F.bool_or(named(name).isNotNull()).alias(name) for name in names])
        return {name for name, has in found.items() if has}

    def versions(self, table: TableSpec, keys: Keys | None = None) -> DataFrame:
        """The history of a versioned table, of these keys or of all, from its base and the changes behind it.

        Columns of `versions_schema`; only what the base holds knows when it ended, as far as the base knew.
        """
        schema, log = versions_schema(table), changes_schema(table.columns, table.sequence)
        base = self._base(versions_of(table.name), schema, _few(keys, table.key[0]))
        behind = self._behind(changes_of(table.name), versions_of(table.name), log)
        parts = [base, as_versions(behind, schema.names)]
        if keys is not None:
            parts = [restrict(part, keys, table.key) for part in parts]
        return parts[0].unionByName(parts[1])

    def stream_records(
        self, stream: TableSpec, *, after: int = 0, later: datetime | None = None
    ) -> DataFrame:
        """Every record of a stream, with its status, of batches after `after`; `later` spares files of older ones."""
        return self._read(records_of(stream.name), stream_schema(stream), after=after, later=later)

    def subscriptions(self, join: JoinSpec, few: Few | None = None) -> DataFrame:
        """Messages of the folded store and of the log behind it."""
        schema = subscription_schema(join)
        log, store = subscription_log_of(join.name), subscription_store_of(join.name)
        return self._base(store, schema, few).unionByName(self._behind(log, store, schema))

    def subscriptions_to(self, join: JoinSpec, keys: Keys) -> DataFrame:
        """Those to some right keys. `keys`: the column `foreign_key`."""
        return restrict(self.subscriptions(join, _few(keys, "foreign_key")), keys, ("foreign_key",))

    def subscriptions_of(self, join: JoinSpec, keys: Keys) -> DataFrame:
        """Those of some left keys. `keys`: the column `primary_key`."""
        return restrict(self.subscriptions(join), keys, ("primary_key",))

    def joined(self, join: ResultSpec) -> DataFrame:
        """The joined table of a join."""
        return self._by_delta(joined_of(join.name), joined_schema(join))

    def joined_hashes(self, join: ResultSpec, few: DataFrame | None) -> DataFrame:
        """The columns that tell joined rows: the key as primary_key, and `ResultSpec.hashes`; no other is read.

        `few`: emissions that fit one task, to have only the rows that they meet.
        """
        key = key_struct(join.joined_key).alias("primary_key")
        rows = self.joined(join).select(key, *[named(field.name) for field in join.hashes])
        return rows if few is None else restrict(rows, Keys(few.select(key), few=True), ("primary_key",))

    def history(self, join: ResultSpec) -> DataFrame:
        """Every version of a result that keeps them."""
        return self._by_delta(history_of(join.name), history_schema(join))

    def totals(self, group: GroupSpec, keys: Keys) -> DataFrame:
        """What groups that are adjusted keep beside their rows, of some groups. `keys`: their columns."""
        rows = restrict(self.joined(group), keys, group.joined_key)
        return rows.select(key_struct(group.joined_key).alias(FOREIGN_KEY), named(TOTALS))

    def has_rows(self, table: str) -> bool:
        """Whether a declared table held anything before the batch; a first load has nothing to look up."""
        return rows_of(table) in self.plan.versions or changes_of(table) in self.plan.versions

    def has_subscriptions(self, join: str) -> bool:
        """Whether any message was sent before the batch."""
        return subscription_log_of(join) in self.plan.versions

    def has_joined(self, join: str) -> bool:
        """Whether a join's table was there before the batch."""
        return joined_of(join) in self.plan.versions

    def _by_delta(self, table: str, schema: StructType) -> DataFrame:
        """A table of which rows are marked as deleted."""
        version = self._version(table)
        if version is None:
            return empty(self.spark, schema)
        reader = self.spark.read.format("delta").option("versionAsOf", version)
        return reader.load(self.lake.path(table)).select(*[named(name) for name in schema.names])

    def _base(self, table: str, schema: StructType, few: Few | None = None) -> DataFrame:
        return self._read(table, schema, after=0, few=few)

    def _behind(self, log: str, base: str, schema: StructType) -> DataFrame:
        """The part of a log that its base does not hold yet."""
        return self._read(log, schema, after=self.plan.folded.get(base, 0))

    def _read(
        self, table: str, schema: StructType, *, after: int,
        later: datetime | None = None, few: Few | None = None,
    ) -> DataFrame:  # fmt: skip
        version = self._version(table)
        if version is None:
            return empty(self.spark, schema)
        count = partial(self.files.add, table)
        return read_table(
            self.spark, self.lake.path(table), version, schema, after=after, later=later, few=few, count=count
        )

    def _version(self, table: str) -> int | None:
        """The version of a table before the batch; None where there was none."""
        pinned = self.plan.versions.get(table)
        if pinned is None or guarded("pinned_versions"):
            return pinned
        snapshot = self.lake.snapshot(table)
        return snapshot.version if snapshot else None


def _few(keys: Keys | None, column: str) -> Few | None:
    """The keys by which files are passed over, if they are few enough; else None."""
    if keys is None or not keys.few:
        return None
    return Few(keys.rows, column, keys.most, null_matches=keys.null_matches)


def _is_overtaken(plan: Plan, copy: str, base: str) -> bool:
    """Whether a copy of a base lacks what was folded into the base since; then more lies behind it."""
    return plan.folded.get(copy, 0) < plan.folded.get(base, 0)


def history_bound(plan: Plan, table: TableSpec) -> datetime | None:
    """Return the time before which versions may be missing as of a plan; None while there is none.

    It lies by the retention behind the table's clock; or where a fold went by a retention that was shorter than it is
    now.
    """
    clock = plan.clocks.get(f"tables/{table.name}")
    return latest(moved_back(clock, table.history_retention), plan.forgotten(versions_of(table.name)))


def read_log(state: State, table: str, schema: StructType) -> DataFrame:
    """Return the columns of `schema` of a log at the version that the snapshot pins; no rows without a log."""
    version = state.plan.versions.get(table)
    if version is None:
        return empty(state.spark, schema)
    return read_table(state.spark, state.lake.path(table), version, schema)


def known_changes(state: State, table: TableSpec, replaced_in: Mapping[str, int]) -> DataFrame:
    """Return what is known of a table's records, apart from files that were replaced since.

    `replaced_in`: those files by name, with the last batch that replaced each.
    """
    log = read_log(state, changes_of(table.name), changes_schema(table.columns, table.sequence))
    return log.where(~replaced(replaced_in))
