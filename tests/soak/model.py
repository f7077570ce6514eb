"""What a lake must hold: its source files as they are, what was read of each, and the rows that come of that."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from properties.relations import COLUMNS, TABLES, Row, joined_by_model
from properties.scenarios import Side
from properties.trial import Line, record_of, source_line
from reference.tables import Record, Table, count
from soak.actions import FileName, Write

ADDED = "w"
"""The column that the source has at some time, and that is declared later."""
LONGEST = 400
"""Bytes of a line, until the limit is raised."""


@dataclass(frozen=True)
class Read:
    """A record that a batch read, and what became of it."""

    file: str
    line: int
    batch: int
    verdict: str | None
    """None where the model does not say: of a file that was exported again."""


@dataclass
class _File:
    """A source file, and what was read of it."""

    day: int = 0
    lines: Sequence[Line | None] = ()
    """None for one that is torn."""
    read: int = 0
    """How many lines a batch has taken."""
    records: dict[int, Record] = field(default_factory=dict)
    """Those that were accepted, by their line."""
    bad: set[int] = field(default_factory=set)
    """Lines in quarantine."""


class Model:
    """Fed with what each plan says that its batch reads; sees that every line is read once."""

    def __init__(self, joins: Mapping[str, dict[str, Any]]) -> None:
        self.tables: dict[Side, Table] = {side: Table() for side in TABLES}
        self.columns: dict[Side, dict[str, str]] = {side: dict(COLUMNS[side]) for side in TABLES}
        self.longest: int | None = LONGEST
        self.read: dict[Side, list[Read]] = {side: [] for side in TABLES}
        self._files: defaultdict[FileName, _File] = defaultdict(_File)
        self._joins = joins

    def write(self, write: Write) -> None:
        """A source file is now this."""
        file = self._files[write.side, write.name]
        file.day, file.lines = write.day, write.lines
        if write.ending == "torn":
            file.lines = [*write.lines[:-1], None]

    def unread(self) -> list[str]:
        """Files with lines that no batch has taken."""
        return [
            f"{side} {name}: {file.read} of {len(file.lines)} lines were read"
            for (side, name), file in self._files.items()
            if file.read < len(file.lines)
        ]

    def take(self, plan: Plan) -> dict[Side, Counter[str]]:
        """Take what a batch reads; return the records it must count for each table, by verdict.

        Of a batch that takes files in the place of what they were, only how many are read and how many are bad.
        Raises `AssertionError` where the plan passes lines over or reads any twice.
        """
        return {side: self._take(side, plan) for side in TABLES}

    def joined(self) -> dict[str, list[Row]]:
        """The rows that every join must have."""
        tables = {
            TABLES[side]: {
                key: {name: value for name, value in row.items() if name in self.columns[side]}
                for key, row in table.current().items()
            }
            for side, table in self.tables.items()
        }
        joined = joined_by_model(tables, self._joins, self.columns)
        return {name: list(rows.values()) for name, rows in joined.items()}

    def _take(self, side: Side, plan: Plan) -> Counter[str]:
        records, bad = [], 0
        for planned in plan.files_of(TABLES[side]):
            file = self._files[side, planned.name]
            wanted = self._wanted(file, planned, plan)
            for line, record in self._parsed(side, planned, wanted):
                (file.bad.add if record is None else file.bad.discard)(line)
                if record is None:
                    bad += 1
                    self.read[side].append(Read(planned.name, line, plan.batch, "quarantined"))
                else:
                    file.records[line] = record
                    records.append(record)
        if plan.kind == "replace":
            self._rebuild(side, records, plan)
            return Counter(records=len(records) + bad, quarantined=bad)
        judged = self.tables[side].take(records)
        self.read[side] += [Read(*j.record.position[1:], plan.batch, j.verdict) for j in judged]
        return count(judged) + Counter(records=bad, quarantined=bad)

    def _wanted(self, file: _File, planned: PlannedFile, plan: Plan) -> Iterable[int]:
        """The lines that a batch reads of a file, which must be those that it has to."""
        lines = range(planned.from_line + 1, planned.to_line + 1)
        if plan.kind == "retry":
            assert (lines[0], lines[-1]) == (min(file.bad), max(file.bad)), f"batch {plan.batch}: {planned}"
            return sorted(file.bad)
        if plan.kind == "replace":
            file.read, file.records, file.bad = 0, {}, set()
        start, end = (planned.from_line, planned.to_line)
        assert start == file.read, f"batch {plan.batch}: {file.read} lines were read before {planned}"
        assert end <= len(file.lines), f"batch {plan.batch}: {len(file.lines)} lines in {planned}"
        file.read = end
        return lines

    def _parsed(
        self, side: Side, planned: PlannedFile, lines: Iterable[int]
    ) -> Iterator[tuple[int, Record | None]]:
        """Lines of a file with their records; none for what must be quarantined."""
        assert planned.date is not None
        for line in lines:
            found = self._files[side, planned.name].lines[line - 1]
            position = (planned.date.isoformat(), planned.name, line)
            yield line, None if found is None else self._record(side, found, position)

    def _record(self, side: Side, line: Line, position: tuple[str, str, int]) -> Record | None:
        case, change = line
        too_long = self.longest is not None and len(source_line(case, change)) > self.longest
        if change.key is None or too_long:
            return None
        if change.value is not None:
            # what is not declared is not read; and before it is, a new column is null
            declared = {name: change.value.get(name) for name in self.columns[side] if name in change.value}
            change = replace(change, value={ADDED: None, **declared})
        return record_of(case, change, position)

    def _rebuild(self, side: Side, records: Sequence[Record], plan: Plan) -> None:
        """The table as if the files had always been what they are: every record that counts, at once."""
        if not records and not plan.files_of(TABLES[side]):
            return
        self.tables[side] = Table()
        of_side = [file for (own, _), file in self._files.items() if own == side]
        self.tables[side].take(record for file in of_side for record in file.records.values())
        self.read[side] += [Read(*record.position[1:], plan.batch, None) for record in records]
