"""Reads and writes the journal of a lake without a JVM: the plans of its batches, and what was published of them."""

from collections.abc import Callable, Collection

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.errors import LakeBusy, LakeInconsistent
from lakejoin.storage.lake.bookkeeping import record
from lakejoin.storage.lake.layout import (
    PLAN,
    PUBLISHED,
    QUARANTINE,
    Lake,
    changelog_of,
    changes_of,
    history_of,
    joined_of,
    records_of,
    response_log_of,
    subscription_log_of,
)
from lakejoin.storage.lake.plan import Kind, Plan, Published
from lakejoin.storage.lake.plan_rows import plans_of
from lakejoin.storage.lake.symlinks import check_links
from lakejoin.storage.sources.planned.known_files import KnownFiles
from lakejoin.storage.sources.planned.planned_files import rows_of
from lakejoin.transforms.model.guards import guarded

_TABLES: dict[str, Callable[[str], str]] = {
    "changes": changes_of,
    "records": records_of,
    "quarantine": lambda _: QUARANTINE,
    "late": lambda _: QUARANTINE,
    "subscription_log": subscription_log_of,
    "response_log": response_log_of,
    "changelog": changelog_of,
    "joined": joined_of,
    "history": history_of,
}


class Journal:
    """The plan and what was published, read and written without a JVM."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        check_links(lake)
        plan, published = lake.snapshot(PLAN), lake.snapshot(PUBLISHED)
        self.pipeline = plan.identity if plan else None
        self.plans = sorted(plans_of(lake, plan) if plan else [], key=lambda p: p.batch)
        self.published = sorted(
            map(Published.of_row, published.read() if published else []), key=lambda p: p.batch
        )
        self._check()

    def _check(self) -> None:
        for name, batches in ((PLAN, self.plans), (PUBLISHED, self.published)):
            found = [row.batch for row in batches]
            if found != list(range(1, len(found) + 1)):
                raise LakeInconsistent(
                    f"{self._lake.path(name)}: batches {found[-5:]} at its end are not dense; expected each number "
                    f"from 1 to {len(found)} once. The table was changed by hand: restore it."
                )
        if not 0 <= len(self.plans) - len(self.published) <= 1:
            raise LakeInconsistent(
                f"{self._lake.root}: {len(self.plans)} batches are planned and {len(self.published)} published; at "
                f"most one may be under way. `{PLAN}` or `{PUBLISHED}` was restored to an earlier version: restore "
                "both from the same copy, or load the sources into a new lake."
            )

    @property
    def unfinished(self) -> Plan | None:
        """The batch that was planned and not yet published, if there is one."""
        return self.plans[-1] if len(self.plans) > len(self.published) else None

    @property
    def begun(self) -> dict[str, int]:
        """The batch that each join last began with from the rows there were; none for one that was there at first."""
        return {
            name: plan.batch for plan in self.plans if not self._is_abandoned(plan) for name in plan.bootstrap
        }

    @property
    def flushed(self) -> int:
        """The last finished batch that released every record that waited; 0 for none."""
        return max((plan.batch for plan in self.finished("flush")), default=0)

    @property
    def last(self) -> Published | None:
        """The last finished batch."""
        return self.published[-1] if self.published else None

    @property
    def kept(self) -> Collection[str]:
        """The joins that the last finished batch kept."""
        return self.last.joins if self.last else ()

    def known_files(self, table: str, *, finished: bool = False, until: int | None = None) -> KnownFiles:
        """For each file of a table that was ever planned, the last part of it that was.

        `finished`: that a batch has read. `until`: that this batch, or one before it, was planned with.
        """
        among = self.plans[: len(self.published)] if finished else self.plans[:until]
        read = [plan for plan in among if self._reads_on(plan)]
        return KnownFiles([rows for plan in read for rows in rows_of(plan.files, table)])

    def first_lines(self, table: str) -> dict[str, int]:
        """For each file of a table that was ever planned, where the reading of it began."""
        known, lines = self.known_files(table), dict[str, int]()
        for name, line in known.each("name", "from_line"):
            lines.setdefault(name, line)
        return lines

    def _reads_on(self, plan: Plan) -> bool:
        """Whether a batch reads what was not read before."""
        return plan.kind not in {"retry", "reconcile"} and not self._is_abandoned(plan)

    def finished(self, *kinds: Kind) -> list[Plan]:
        """The plans of these kinds whose batch is finished, in its order."""
        return [plan for plan, done in zip(self.plans, self.published, strict=False) if done.kind in kinds]

    def replaced_files(self, table: str, until: int) -> dict[str, int]:
        """For each file of a table that was exported again, the last batch before `until` that took it so."""
        plans = [plan for plan in self.finished("replace") if plan.batch < until]
        return {file.name: plan.batch for plan in plans for file in plan.files_of(table)}

    def _is_abandoned(self, plan: Plan) -> bool:
        return plan.batch <= len(self.published) and self.published[plan.batch - 1].kind == "abandoned"

    def write_plan(self, plan: Plan) -> None:
        """Commit a plan; the first one makes the lake.

        Raises `LakeBusy` where another run planned this batch first: what this run knows is out of date.
        """
        # dense: of two runs that plan after the same batch, both commit the same identifier
        number = plan.batch if guarded("dense_batches") else int(plan.planned_at.timestamp() * 1e6)
        made = record(self._lake.path(PLAN), plan, Transaction(PLAN, number, {}))
        if not made and plan not in Journal(self._lake).plans:
            raise LakeBusy(
                f"{self._lake.path(PLAN)}: another run planned batch {plan.batch} meanwhile, and went on from there; "
                "nothing of this run's plan was kept. One run at a time works on a lake: wait for the other to end, "
                "then run again."
            )
        if self.pipeline is None:
            snapshot = self._lake.snapshot(PLAN)
            self.pipeline = snapshot.identity if snapshot else None
        self.plans.append(plan)

    def write_published(self, published: Published) -> None:
        """Commit the end of a batch, unless another run did: its rows come from the same plan, so they are the same."""
        transaction = self.transaction("published", published.batch)
        record(self._lake.path(PUBLISHED), published, transaction)
        self.published.append(published)

    def application(self, stage: str) -> str:
        """Application of a stage's transaction identifiers in this lake.

        It begins with the identity that Delta gave the plan: the identifiers of a lake that was here before, and
        of which a table was left behind, never count for this one.
        """
        return f"{self.pipeline}/{stage}"

    def table_of(self, stage: str) -> str:
        """The table that a stage commits to, by its name below the lake."""
        kind, _, name = stage.partition("/")
        return _TABLES[kind](name)

    def transaction(self, stage: str, batch: int, **metadata: object) -> Transaction:
        """Transaction identifier of a stage's commit for a batch."""
        return Transaction(self.application(stage), batch, metadata)

    def transaction_apart(self, work: str, table: str) -> Transaction:
        """The same of a commit that belongs to no batch, with a number that no other of its kind to the table has."""
        snapshot = self._lake.snapshot(table)
        return self.transaction(f"{work}/{table}", snapshot.version + 1 if snapshot else 0)
