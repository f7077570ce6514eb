"""Holds the parts of files that plans have as Arrow does, in a tenth of the memory; objects are made when needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from lakejoin.storage.sources.planned.planned_file import PlannedFile

BLOCK = 10_000
"""So many rows are Python's at a time where all are gone through."""


class PlannedFiles(Sequence[PlannedFile]):
    """The parts of a plan, read when they are first asked for."""

    def __init__(self, read: Callable[[], pa.StructArray]) -> None:
        """`read`: gives a row for each part, with the fields of `PlannedFile`."""
        self._read = read

    @cached_property
    def rows(self) -> pa.StructArray:
        """A row for each part."""
        return self._read()

    def runs_of(self, table: str) -> list[pa.StructArray]:
        """Rows of a table, as slices: a plan has its parts table by table."""
        runs = pc.run_end_encode(self.rows.field("table"))
        ends = runs.run_ends.to_pylist()
        bounds = zip([0, *ends], ends, runs.values.to_pylist(), strict=False)
        return [self.rows.slice(start, end - start) for start, end, name in bounds if name == table]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> PlannedFile: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PlannedFile, ...]: ...
    def __getitem__(self, index: int | slice) -> PlannedFile | tuple[PlannedFile, ...]:
        """Make one, or some."""
        if isinstance(index, slice):
            return tuple(self)[index]
        return PlannedFile.of_row(self.rows[index].as_py())

    def __iter__(self) -> Iterator[PlannedFile]:
        """Make all, a block at a time."""
        return map(PlannedFile.of_row, blocks([self.rows]))

    def __eq__(self, other: object) -> bool:
        """Whether another sequence has the same parts in the same order."""
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        """The same for sequences that have the same parts."""
        return hash(tuple(self))


def files_of(files: Sequence[PlannedFile], table: str) -> Sequence[PlannedFile]:
    """Return those of a table."""
    if isinstance(files, PlannedFiles):
        return [PlannedFile.of_row(row) for row in blocks(files.runs_of(table))]
    return [file for file in files if file.table == table]


def rows_of(files: Sequence[PlannedFile], table: str) -> list[pa.StructArray]:
    """Return those of a table as Arrow's rows."""
    if isinstance(files, PlannedFiles):
        return files.runs_of(table)
    own = [asdict(file) for file in files if file.table == table]
    return [pa.array(own)] if own else []


def blocks(parts: Iterable[pa.StructArray]) -> Iterator[dict[str, Any]]:
    """Yield rows as Python's, some at a time."""
    for part in parts:
        for start in range(0, len(part), BLOCK):
            yield from part.slice(start, BLOCK).to_pylist()
