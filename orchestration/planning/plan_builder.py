"""Builds the plans of the next batch, of each kind, as they would be written now."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.active_joins import kept_joins, still_wanted
from lakejoin.orchestration.lake_state.config_fingerprints import check_readings, readings_of, shapes_of
from lakejoin.orchestration.lake_state.fold_progress import pinned_bases, with_present_bases
from lakejoin.orchestration.lake_state.inventory import bases_of, state_tables, tables_of_join
from lakejoin.orchestration.lake_state.preflight import check_not_given_up, snapshots_of, stages_done
from lakejoin.orchestration.planning.pending_input import Group, check_unchanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of, rows_of, versions_of
from lakejoin.storage.lake.plan import Kind, Plan
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.state.folds import Folds


class PlanBuilder:
    """Plans of the next batch; none of them is committed here."""

    def __init__(self, pipeline: Pipeline, lake: Lake, journal: Journal) -> None:
        self._pipeline, self._lake, self._journal = pipeline, lake, journal

    def bootstrap(self, joins: Sequence[str], kind: Kind = "bootstrap") -> Plan:
        """The first batch of joins that begin in a lake with rows; nothing they had before counts."""
        before = {table for name in joins for table in tables_of_join(self._pipeline, name)}
        before -= {history_of(name) for name in joins}  # which goes on
        plan = self.batch(Group((), ())).without(before)
        wanted = {*plan.joins, *joins}
        together = tuple(name for name in self._pipeline.joins if name in wanted)
        own = {f"joins/{name}" for name in joins}
        clocks = {of: clock for of, clock in plan.clocks.items() if of not in own}
        shapes = self._shapes(together)
        return replace(plan, kind=kind, joins=together, bootstrap=tuple(joins), clocks=clocks, shapes=shapes)

    def migrate(self, left_out: Collection[str]) -> Plan:
        """A batch that says that the lake has the columns of today; some joins are not kept from here on."""
        plan = self.batch(Group((), ()))
        kept = tuple(name for name in plan.joins if name not in left_out)
        return replace(plan, kind="migrate", joins=kept, shapes=self._shapes(kept))

    def replace(self, files: Sequence[PlannedFile]) -> Plan:
        """A batch that takes files in the place of what they were."""
        return replace(self.batch(Group((), tuple(files))), kind="replace")

    def flush(self) -> Plan:
        """A batch that releases everything that waits for its grace period."""
        return replace(self.batch(Group((), ())), kind="flush")

    def batch(self, group: Group) -> Plan:
        """The batch that reads a group of files; a join that no batch has begun yet is not in it."""
        previous = self._journal.plans[-1] if self._journal.plans else None
        now = datetime.now(UTC)
        bases, folded = pinned_bases(self._pipeline, self._lake, self._journal)
        logs = set(state_tables(self._pipeline)) - set(bases_of(self._pipeline))
        joins = kept_joins(self._pipeline, self._journal)
        kept = tuple(name for name in self._pipeline.joins if name in joins)
        return Plan(
            batch=len(self._journal.plans) + 1,
            kind="batch",
            # the batches' clock never goes back, even if the machine's clock does
            planned_at=max(now, previous.planned_at) if previous else now,
            files=group.files,
            versions=self._lake.versions(sorted(logs)) | bases,
            folded=folded,
            floors=self._floors(folded),
            joins=kept,
            bootstrap=(),
            configuration=self._pipeline.fingerprint,
            shapes=self._shapes(kept),
            code=code_version(),
            clocks=self._journal.last.clocks if self._journal.last else {},
            flushed=self._journal.flushed,
            begun=self._journal.begun,
        )

    def _shapes(self, joins: Collection[str]) -> dict[str, str]:
        """What the tables and these joins are made with now; of everything else what was said before stands."""
        built = {*self._pipeline.inputs, *joins}
        former = self._journal.plans[-1].shapes if self._journal.plans else {}
        now = shapes_of(self._pipeline) | readings_of(self._pipeline)
        of_others = {place: shape for place, shape in former.items() if place.split("/")[1] not in built}
        return of_others | {place: shape for place, shape in now.items() if place.split("/")[1] in built}

    def _floors(self, folded: Mapping[str, int]) -> dict[str, str]:
        """What folds have purged: see `Plan.floors`."""
        folds, found = Folds(self._lake), dict[str, str]()
        for name in self._pipeline.tables:
            rows, versions = (
                folds.last(base, folded.get(base, 0)) for base in (rows_of(name), versions_of(name))
            )
            if rows is not None and rows.floor is not None:
                found[name] = rows.floor
            if versions is not None and versions.cutoff is not None:
                found[versions_of(name)] = versions.cutoff.isoformat()
        for history in map(history_of, self._pipeline.joins):
            forgotten = folds.last(history, len(self._journal.plans))
            if forgotten is not None and forgotten.cutoff is not None:
                found[history] = forgotten.cutoff.isoformat()
        return found


def under_way(
    pipeline: Pipeline, lake: Lake, journal: Journal, rebuilt: Collection[str] = ()
) -> Iterator[Plan]:
    """Yield the plan of the batch under way, if there is one, as it can be finished: without joins that begin anew.

    Raises `ConfigurationChanged` and `SourceError` where what it reads is not what it was.
    """
    if journal.unfinished is not None:
        snapshots = snapshots_of(pipeline, lake, journal)
        check_not_given_up(pipeline, lake, journal, journal.unfinished, snapshots)
        plan = with_present_bases(lake, still_wanted(pipeline, journal.unfinished, rebuilt))
        check_readings(pipeline, plan, stages_done(pipeline, journal, plan, snapshots))
        check_unchanged(pipeline, plan)
        yield plan


def code_version() -> str:
    """Version of the code that plans the batch."""
    try:
        return version("lakejoin")
    except PackageNotFoundError:
        return "unknown"  # run from a source tree that is not installed
