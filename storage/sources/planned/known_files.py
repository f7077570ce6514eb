"""Holds what plans say of the files of a source, and tells which of those that are there were read as they are.

A file is found by a hash of its name. What is compared is in arrays, so that a million files are compared in a second.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.planned.planned_files import BLOCK

Numbers = np.ndarray[Any, np.dtype[Any]]


class KnownFiles(Mapping[str, PlannedFile]):
    """Of each file, by its name, the last part that was planned."""

    def __init__(self, rows: Sequence[pa.StructArray]) -> None:
        """`rows`: with the fields of `PlannedFile`, in the order of the plans."""
        self._rows = rows
        self._starts: list[int] = [0, *np.cumsum([len(part) for part in rows]).tolist()]

    @classmethod
    def of(cls, known: Mapping[str, PlannedFile]) -> "KnownFiles":
        """The same as a mapping of any kind."""
        if isinstance(known, KnownFiles):
            return known
        return cls([pa.array([asdict(file) for file in known.values()])] if known else [])

    def unread(self, files: Iterable[FoundFile]) -> Iterator[FoundFile]:
        """Leave out files that were read as they are, and to their end."""
        files = iter(files)
        while block := list(islice(files, BLOCK)):
            for file, is_read in zip(block, self._found(block), strict=True):
                # of two names with one hash only the newer one was compared
                if not is_read and not _is_read(file, self.get(file.name)):
                    yield file

    def each(self, *fields: str) -> Iterator[tuple[Any, ...]]:
        """Yield these fields of every part that was planned: of a file that grew, more than one."""
        for part in self._rows:
            columns = [part.field(field) for field in fields]
            for start in range(0, len(part), BLOCK):
                yield from zip(*(column.slice(start, BLOCK).to_pylist() for column in columns), strict=True)

    def has_in_name(self, text: str) -> bool:
        """Whether the name of any file has a text in it."""
        return any(pc.any(pc.match_substring(part.field("name"), text)).as_py() for part in self._rows)

    def __getitem__(self, name: str) -> PlannedFile:
        """The last part of a file."""
        row = self._row(name)
        if row is None:
            raise KeyError(name)
        part = bisect_right(self._starts, row) - 1
        return PlannedFile.of_row(self._rows[part][row - self._starts[part]].as_py())

    def __contains__(self, name: object) -> bool:
        """Whether a file was planned."""
        return isinstance(name, str) and self._row(name) is not None

    def __iter__(self) -> Iterator[str]:
        """Yield names, in the order in which they were first planned."""
        return iter(dict.fromkeys(name for (name,) in self.each("name")))

    def __len__(self) -> int:
        """How many files there are."""
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self._starts[-1] > 0

    def _found(self, files: Sequence[FoundFile]) -> Iterator[bool]:
        """For each file whether the newest one with the hash of its name is this one, and was read."""
        if not self:
            return iter([False] * len(files))
        hashes, order = self._index
        wanted = _hashes((file.name for file in files), len(files))
        rows = order[np.maximum(hashes.searchsorted(wanted, side="right") - 1, 0)]
        names = pa.array([file.name for file in files], pa.string())
        same: Numbers = pc.equal(self._names.take(pa.array(rows)), names).to_numpy(zero_copy_only=False)
        for column, values in (
            (self._sizes, [file.size for file in files]),
            (self._modified, [file.modified for file in files]),
        ):
            same &= column[rows] == np.array(values, np.int64)
        return iter((same & self._whole[rows]).tolist())

    def _row(self, name: str) -> int | None:
        """The newest row of a name; others may have the same hash."""
        if not self:
            return None
        hashes, order = self._index
        wanted = hash(name)
        at = int(hashes.searchsorted(wanted, side="right")) - 1
        while at >= 0 and hashes[at] == wanted:
            if self._names[row := int(order[at])].as_py() == name:
                return row
            at -= 1
        return None

    @cached_property
    def _index(self) -> tuple[Numbers, Numbers]:
        """Hashes of all names, sorted, and their rows; of equal ones the newest is the last."""
        hashes = _hashes((name for (name,) in self.each("name")), self._starts[-1])
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    @cached_property
    def _names(self) -> pa.StringArray:
        return pa.concat_arrays([part.field("name") for part in self._rows])

    @cached_property
    def _sizes(self) -> Numbers:
        return self._numbers("size")

    @cached_property
    def _modified(self) -> Numbers:
        return self._numbers("modified")

    @cached_property
    def _whole(self) -> Numbers:
        whole: Numbers = self._numbers("to_line") >= self._numbers("lines")
        return whole

    def _numbers(self, field: str) -> Numbers:
        return np.concatenate([part.field(field).to_numpy() for part in self._rows])


def _hashes(names: Iterable[str], count: int) -> Numbers:
    return np.fromiter(map(hash, names), np.int64, count)


def _is_read(file: FoundFile, before: PlannedFile | None) -> bool:
    if before is None:
        return False
    is_same = (file.size, file.modified) == (before.size, before.modified)
    return is_same and before.to_line >= before.lines
