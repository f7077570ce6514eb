"""Defines the plan of a batch: one row, committed first, the only place where something is chosen.

It names the input, the versions of the state before the batch, and the time. Every stage is a function of it.
`_published` closes a batch: which versions of which tables belong together, and the batch's counts.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Literal

from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.planned.planned_files import files_of

Kind = Literal[
    "batch", "bootstrap", "flush", "replace", "retry", "reconcile", "repair", "migrate", "abandoned"
]
"""`bootstrap` begins joins with the rows there are, `replace` takes files in the place of what they were, `retry` reads
what is in quarantine once more, `reconcile` makes a table equal to a snapshot beside its change data, `repair` and
`migrate` go on with the tables as they are found, and an `abandoned` batch was planned and given up."""


def dates_of(files: Iterable[PlannedFile]) -> tuple[date, ...]:
    """Return the `{date}` values of the parts that have records, each once."""
    return tuple(sorted({file.date for file in files if file.records and file.date is not None}))


@dataclass(frozen=True)
class RecordPlace:
    """Where a record of a table or stream stands."""

    table: str
    file: str
    line: int


@dataclass(frozen=True)
class Plan:
    """What a batch works on."""

    batch: int
    kind: Kind
    planned_at: datetime
    files: Sequence[PlannedFile]
    versions: Mapping[str, int]
    """Version of each table before the batch."""
    folded: Mapping[str, int]
    """Last batch folded into each base, as of its version."""
    floors: Mapping[str, str]
    """Per table with purged tombstones: their greatest sequence, as JSON. Per folded history `tables/T/versions`, and
    per history of a result: the time before which it has forgotten, as ISO 8601."""
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
    time of each join with grace. By `histories/J`: until when the history of a join by event time is settled."""
    flushed: int = 0
    """Last batch that released every record that waited."""
    begun: Mapping[str, int] = field(default_factory=dict)
    """The batch that a join last began with from the rows there were; none for one that was there at first."""
    refused: tuple[RecordPlace, ...] = ()
    """Records of its files that go to quarantine, because somebody said so."""
    at: str = ""
    """Of `reconcile`: the sequence that the snapshot has among the changes of its table, as JSON."""
    place: str = ""
    """Of `reconcile`: the position of the last record that was read before, as JSON."""

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Plan":
        """The plan that a row of `_plan` holds, whose files are a sequence of `PlannedFile`."""
        row["joins"], row["bootstrap"] = tuple(row["joins"]), tuple(row["bootstrap"])
        row["refused"] = tuple(RecordPlace(**place) for place in row.get("refused") or ())
        return cls(**_written(row))

    def files_of(self, table: str) -> Sequence[PlannedFile]:
        """The parts of a table's files that the batch reads, in the order of their positions."""
        return files_of(self.files, table)

    def refused_of(self, table: str) -> list[tuple[str, int]]:
        """File and line of the records of a table or stream that the batch refuses."""
        return [(place.file, place.line) for place in self.refused if place.table == table]

    def forgotten(self, history: str) -> datetime | None:
        """The time before which folds have dropped what had ended in a history, by its name; None where none has."""
        cutoff = self.floors.get(history)
        return datetime.fromisoformat(cutoff) if cutoff else None

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
        return cls(**_written(row))

    @property
    def waits(self) -> bool:
        """Whether records of a stream wait for their grace period."""
        return any(counts.get("waiting") for counts in self.joins.values())


def _written(row: dict[str, Any]) -> dict[str, Any]:
    """What a row holds. A column that was not there yet when it was made is null: then the field's default stands."""
    return {name: value for name, value in row.items() if value is not None}
