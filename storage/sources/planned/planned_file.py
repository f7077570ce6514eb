"""Holds the part of a source that a batch reads, and takes such parts apart and together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from itertools import groupby
from typing import Any, Self

from lakejoin.storage.filesystem import file_info
from lakejoin.storage.sources.files.source_files import MeasuredFile

FEED = "_delta_log"
"""What a plan calls a range of versions, where it has the name of a file: no source file begins with `_`."""

TOPIC = "kafka://"
"""How the path of a topic begins."""


@dataclass(frozen=True)
class PlannedFile:
    """A part of a source file that a batch reads: lines after `from_line` up to `to_line`.

    Of a topic: of one of its partitions the offsets from `from_line` up to, and without, `to_line`; `lines` is where it
    ended, and the fingerprint the broker's own name of the topic. Of a Delta table, whose name here is `FEED`: the
    changes after version `from_line` up to version `to_line`, about `lines` records; the fingerprint is Delta's own
    name of the table.
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
    stray_quotes: bool = False
    """Of CSV: a quoted field holds a quote that is not doubled; unknown, and so false, before this was looked for."""
    returns: bool = False
    """Of CSV: some line ends with a carriage return and a line feed; unknown, and so true, before this was looked
    for."""

    @classmethod
    def behind(cls, line: int, measured: MeasuredFile, table: str) -> Self:
        """The part of a table's file behind a line."""
        return cls(table=table, **asdict(measured), from_line=line, to_line=measured.lines)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """The part that a row of a plan holds; a field that was not there yet when it was made is null."""
        return cls(
            **{"date": None, "returns": True}
            | {name: value for name, value in row.items() if value is not None}
        )

    @property
    def records(self) -> int:
        """How many source records the part has; of a Delta table about how many, of a topic at most."""
        return self.to_line - self.from_line if self.is_divisible else self.lines

    @property
    def waits(self) -> bool:
        """Whether a batch is to read it: it has records, or says where reading of a partition begins."""
        return self.records > 0 or (self.path.startswith(TOPIC) and self.from_line > 0)

    @property
    def is_divisible(self) -> bool:
        """Whether it may be cut between any two records; versions of a Delta table are read whole."""
        return self.name != FEED

    @property
    def measured(self) -> MeasuredFile:
        """What was found of the whole file, to hold the file against."""
        return MeasuredFile(**{part.name: getattr(self, part.name) for part in fields(MeasuredFile)})


Known = Mapping[str, PlannedFile]
"""What plans say of the parts of a source, by their names: the last part of each that was read."""


def side_by_side(parts: Sequence[PlannedFile]) -> Iterator[Sequence[PlannedFile]]:
    """Divide parts of a source into those that follow each other: files or versions; each partition by itself."""
    partitions = [part for part in parts if part.path.startswith(TOPIC)]
    yield from ([part] for part in partitions)
    if len(partitions) < len(parts):
        yield [part for part in parts if not part.path.startswith(TOPIC)]


def end_of(part: PlannedFile) -> tuple[date | None, str, int]:
    """Return the position behind its last record: day, file, line; of a version as `change_data_feed` numbers them."""
    if part.is_divisible:
        return (part.date, part.name, part.to_line + 1)
    return (part.date, f"{part.to_line:020}", part.lines + 1)


def between(parts: Iterable[PlannedFile], start: int, end: int) -> Iterator[PlannedFile]:
    """What of parts holds the records from `start` (exclusive) to `end` of their common count.

    One that is not divisible goes where it ends; with `start` -1 those at the beginning that have no record, too.
    """
    passed = 0
    for part in parts:
        before, passed = passed, passed + part.records
        if not part.is_divisible:
            if start < passed <= end:
                yield part
            continue
        first, last = max(start - before, 0), min(end - before, part.records)
        if first < last:
            yield replace(part, from_line=part.from_line + first, to_line=part.from_line + last)


def together(parts: Sequence[PlannedFile]) -> tuple[PlannedFile, ...]:
    """Put the versions of each table that follow each other into one range, which is what a plan holds."""
    found: list[PlannedFile] = []
    for (is_divisible, _), run in groupby(parts, lambda part: (part.is_divisible, part.table)):
        if is_divisible:
            found += run
            continue
        first, *rest = run
        for part in rest:
            first = replace(part, from_line=first.from_line, lines=first.lines + part.lines)
        found.append(first)
    return tuple(found)


def sizes(ranges: Iterable[PlannedFile]) -> dict[str, int]:
    """Return sizes of files by path. Raises `SourceNotFound`: of a file that is gone Spark says nothing of use."""
    return {part.path: file_info(part.path).size for part in ranges}
