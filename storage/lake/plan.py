"""Defines the plan of a batch: one row, committed first, the only place where something is chosen.

It names the input, the versions of the state before the batch, and the time. Every stage is a function of it.
`_published` closes a batch: which versions of which tables belong together, and the batch's counts.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, ClassVar, Literal

import pyarrow as pa

from storage.sources.planned_file import PlannedFile

Kind = Literal["batch", "bootstrap", "flush", "replace", "retry", "repair", "migrate", "abandoned"]
"""`bootstrap` begins joins with the rows there are, `replace` takes files in the place of what they were, `retry` reads
what is in quarantine once more, `repair` and `migrate` go on with the tables as they are found, and an `abandoned`
batch was planned and given up."""

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
        ("stray_quotes", pa.bool_()),
        ("returns", pa.bool_()),
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
        ("begun", _COUNTS),
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
        ("files", pa.map_(pa.string(), _COUNTS)),
    ]
)


def dates_of(files: Iterable[PlannedFile]) -> tuple[date, ...]:
    """Return the `{date}` values of the parts that have records, each once."""
    return tuple(sorted({file.date for file in files if file.records and file.date is not None}))


@dataclass(frozen=True)
class Plan:
    """What a batch works on."""

    SCHEMA: ClassVar = _PLAN

    batch: int
    kind: Kind
    planned_at: datetime
    files: tuple[PlannedFile, ...]
    versions: Mapping[str, int]
    """Version of each table before the batch."""
    folded: Mapping[str, int]
    """Last batch folded into each base, as of its version."""
    floors: Mapping[str, str]
    """Per table with purged tombstones: their greatest sequence, as JSON. Per folded history `tables/T/versions`: the
    time before which it has forgotten, as ISO 8601."""
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
    begun: Mapping[str, int] = field(default_factory=dict)
    """The batch that a join last began with from the rows there were; none for one that was there at first."""

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Plan":
        """The plan that a row of `_plan` holds."""
        row["files"] = tuple(
            PlannedFile(**_as_made_before(file, stray_quotes=False, returns=True)) for file in row["files"]
        )
        row["joins"], row["bootstrap"] = tuple(row["joins"]), tuple(row["bootstrap"])
        return cls(**_as_made_before(row, clocks={}, flushed=0, begun={}))

    def files_of(self, table: str) -> list[PlannedFile]:
        """The parts of a table's files that the batch reads, in the order of their positions."""
        return [file for file in self.files if file.table == table]

    def released(self, join: str) -> int:
        """The last batch whose records a stream's join has all released; one that began since has its own waiting."""
        return self.flushed if self.begun.get(join, 0) <= self.flushed else 0

    def without(self, tables: Collection[str]) -> "Plan":
        """The plan without these tables, as if they were not there."""
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
    """A finished batch: the snapshot that readers see, and what the batch did."""

    SCHEMA: ClassVar = _PUBLISHED

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
    files: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By table below the lake: how many files were `read`, by all looks at it, of how many that were `held`."""

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Published":
        """The batch that a row of `_published` holds."""
        row["dates"], row["accepted"] = tuple(row["dates"]), tuple(row["accepted"])
        return cls(**_as_made_before(row, clocks={}, files={}))

    @property
    def waits(self) -> bool:
        """Whether records of a stream wait for their grace period."""
        return any(counts.get("waiting") for counts in self.joins.values())


def _as_made_before(row: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """A row with defaults for columns that were added since it was written."""
    return row | {n: value for n, value in defaults.items() if row.get(n) is None}
