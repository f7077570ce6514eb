"""The plan: one row a batch, committed first, the only place where something is chosen.

It names the input, the versions of the state before the batch, and the time. Every stage is a function of it.
`_published` closes a batch: which versions of which tables belong together, and the batch's counts.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from typing import Any, Literal

import pyarrow as pa

from storage.bookkeeping import record
from storage.commits import Transaction
from storage.errors import LakeBusy, LakeInconsistent
from storage.feed_log import FEED
from storage.lake import (
    PLAN,
    PUBLISHED,
    QUARANTINE,
    Lake,
    changelog_of,
    changes_of,
    joined_of,
    records_of,
    response_log_of,
    subscription_log_of,
)
from storage.line_numbers import FileRange
from transforms.guards import stands

Kind = Literal["batch", "bootstrap", "flush", "replace", "retry", "repair", "migrate", "abandoned"]
"""`bootstrap` begins joins with the rows there are, `replace` takes files in the place of what they were, `retry` reads
what is in quarantine once more, `repair` and `migrate` go on with the tables as they are found, and an `abandoned`
batch was planned and given up."""

_TABLES: dict[str, Callable[[str], str]] = {
    "changes": changes_of,
    "records": records_of,
    "quarantine": lambda _: QUARANTINE,
    "late": lambda _: QUARANTINE,
    "subscription_log": subscription_log_of,
    "response_log": response_log_of,
    "changelog": changelog_of,
    "joined": joined_of,
}

_COUNTS = pa.map_(pa.string(), pa.int64())
_TIME = pa.timestamp("us", "UTC")
_CLOCKS = pa.map_(pa.string(), _TIME)
_FILE = pa.struct(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("name", pa.string()),
        ("date", pa.date32()),
        ("size", pa.int64()),
        ("modified", pa.int64()),
        ("fingerprint", pa.string()),
        ("lines", pa.int64()),
        ("complete", pa.bool_()),
        ("from_line", pa.int64()),
        ("to_line", pa.int64()),
    ]
)
_PLAN = pa.schema(
    [
        ("batch", pa.int64()),
        ("kind", pa.string()),
        ("planned_at", _TIME),
        ("files", pa.list_(_FILE)),
        ("versions", _COUNTS),
        ("folded", _COUNTS),
        ("floors", pa.map_(pa.string(), pa.string())),
        ("joins", pa.list_(pa.string())),
        ("bootstrap", pa.list_(pa.string())),
        ("configuration", pa.string()),
        ("shapes", pa.map_(pa.string(), pa.string())),
        ("code", pa.string()),
        ("clocks", _CLOCKS),
        ("flushed", pa.int64()),
    ]
)
_PUBLISHED = pa.schema(
    [
        ("batch", pa.int64()),
        ("kind", pa.string()),
        ("planned_at", _TIME),
        ("dates", pa.list_(pa.date32())),
        ("versions", _COUNTS),
        ("commits", _COUNTS),
        ("tables", pa.map_(pa.string(), _COUNTS)),
        ("joins", pa.map_(pa.string(), _COUNTS)),
        ("rows", _COUNTS),
        ("seconds", pa.map_(pa.string(), pa.float64())),
        ("accepted", pa.list_(pa.string())),
        ("clocks", _CLOCKS),
    ]
)


@dataclass(frozen=True)
class PlannedFile:
    """A part of a source file that a batch reads: lines after `from_line` up to `to_line`.

    Of a Delta table, whose name here is `FEED`: the changes after version `from_line` up to version `to_line`, about
    `lines` records; the fingerprint is Delta's own name of the table.
    """

    table: str
    path: str
    name: str
    date: date | None
    size: int
    modified: int
    fingerprint: str
    lines: int
    complete: bool
    from_line: int
    to_line: int

    @property
    def records(self) -> int:
        """How many source records the part has; of a Delta table about how many."""
        return self.lines if self.is_feed else self.to_line - self.from_line

    @property
    def is_feed(self) -> bool:
        """Whether it is a range of versions of a Delta table."""
        return self.name == FEED

    @property
    def range(self) -> FileRange:
        """The part as the readers of sources take it."""
        return FileRange(self.path, self.name, self.date, self.from_line, self.to_line, self.lines)


def dates_of(files: Iterable[PlannedFile]) -> tuple[date, ...]:
    """Return the `{date}` values of the parts that have records, each once."""
    return tuple(sorted({file.date for file in files if file.records and file.date is not None}))


@dataclass(frozen=True)
class Plan:
    """What a batch works on."""

    batch: int
    kind: Kind
    planned_at: datetime
    files: tuple[PlannedFile, ...]
    versions: Mapping[str, int]
    """Version of each table before the batch."""
    folded: Mapping[str, int]
    """Last batch folded into each base, as of its version."""
    floors: Mapping[str, str]
    """Per table with purged tombstones: their greatest sequence, as JSON."""
    joins: tuple[str, ...]
    """Joins that the batch keeps."""
    bootstrap: tuple[str, ...]
    """Joins that start with this batch from the rows there are."""
    configuration: str
    shapes: Mapping[str, str]
    """Fingerprint of what shapes the state of each table and join."""
    code: str
    clocks: Mapping[str, datetime] = field(default_factory=dict)
    """Before the batch, by `tables/T` and `joins/J`: the greatest event time of each versioned table, and the stream
    time of each join with grace."""
    flushed: int = 0
    """Last batch that released every record that waited."""

    def files_of(self, table: str) -> list[PlannedFile]:
        """The parts of a table's files that the batch reads, in the order of their positions."""
        return [file for file in self.files if file.table == table]

    def without(self, tables: Collection[str]) -> "Plan":
        """The plan without these tables: what they hold does not count."""
        versions, folded = (
            {table: number for table, number in numbers.items() if table not in tables}
            for numbers in (self.versions, self.folded)
        )
        return replace(self, versions=versions, folded=folded)

    @property
    def records(self) -> int:
        """How many source records the batch reads."""
        return sum(file.records for file in self.files)

    @property
    def dates(self) -> tuple[date, ...]:
        """The `{date}` values the batch covers."""
        return dates_of(self.files)


@dataclass(frozen=True)
class Published:
    """A finished batch: the cut that readers see, and what the batch did."""

    batch: int
    kind: Kind
    planned_at: datetime
    dates: tuple[date, ...]
    versions: Mapping[str, int]
    commits: Mapping[str, int]
    """Last batch that each stage committed something for."""
    tables: Mapping[str, Mapping[str, int]]
    joins: Mapping[str, Mapping[str, int]]
    rows: Mapping[str, int]
    seconds: Mapping[str, float]
    accepted: tuple[str, ...] = field(default=())
    clocks: Mapping[str, datetime] = field(default_factory=dict)
    """As in `Plan`, after the batch."""

    @property
    def waits(self) -> bool:
        """Whether records of a stream wait for their grace period."""
        return any(counts.get("waiting") for counts in self.joins.values())


class Journal:
    """The plan and what was published, read and written without a JVM."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        plan, published = lake.snapshot(PLAN), lake.snapshot(PUBLISHED)
        self.pipeline = plan.identity if plan else None
        self.plans = sorted(map(_plan, plan.read() if plan else []), key=lambda p: p.batch)
        self.published = sorted(map(_published, published.read() if published else []), key=lambda p: p.batch)
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
                f"most one may be under way. `{PLAN}` or `{PUBLISHED}` was restored to an earlier version."
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

    def known_files(self, table: str) -> dict[str, PlannedFile]:
        """For each file of a table that was ever planned, the last part of it that was."""
        plans = [plan for plan in self.plans if plan.kind != "retry" and not self._is_abandoned(plan)]
        return {file.name: file for plan in plans for file in plan.files_of(table)}

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
        number = plan.batch if stands("dense_batches") else int(plan.planned_at.timestamp() * 1e6)
        made = record(self._lake.path(PLAN), asdict(plan), _PLAN, Transaction(PLAN, number, {}))
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
        record(self._lake.path(PUBLISHED), asdict(published), _PUBLISHED, transaction)
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


def _plan(row: dict[str, Any]) -> Plan:
    row["files"] = tuple(PlannedFile(**file) for file in row["files"])
    row["joins"], row["bootstrap"] = tuple(row["joins"]), tuple(row["bootstrap"])
    return Plan(**_as_made_before(row, flushed=0))


def _published(row: dict[str, Any]) -> Published:
    row["dates"], row["accepted"] = tuple(row["dates"]), tuple(row["accepted"])
    return Published(**_as_made_before(row))


def _as_made_before(row: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """A row with what was not written yet when it was made."""
    return row | {n: value for n, value in {"clocks": {}, **defaults}.items() if row.get(n) is None}
