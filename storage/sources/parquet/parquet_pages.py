"""Reads the headers of a Parquet column's pages, which no library that we use shows: how large a page becomes.

A header is a struct of Thrift in its compact protocol. It is what a reader goes by when it makes room for a page; the
footer only sums it up, and may say anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Coding = Literal["plain", "dictionary", "prefix"]
"""How the values of a page may be longer than the page: not at all, by a dictionary, or by the value before."""

_AHEAD = 1 << 18
_HEADER = 1 << 13
_LONGEST_HEADER = 1 << 24
"""Some writers put the first and last value of a page into its header."""
_STOP, _BYTE, _BINARY, _LISTS, _MAP, _STRUCT = 0, 3, 8, (9, 10), 11, 12
_BOOLEANS, _INTEGERS = (1, 2), (4, 5, 6)
_FIXED = {1: 0, 2: 0, _BYTE: 1, 7: 8}
"""Bytes of values that have no length: as a field a truth value is told by its type alone."""
_LONG_LIST, _LONGEST_NUMBER = 15, 63
_KIND, _UNPACKED, _PACKED = 1, 2, 3
_DATA = {0: (5, 2), 3: (8, 4)}
"""Of data pages, old and new: which field describes the values, and which of its own fields their encoding."""
_DESCRIBED = tuple(field for field, _ in _DATA.values())
_VALUES = 1
_CODINGS: dict[int, Coding] = {2: "dictionary", 8: "dictionary", 7: "prefix"}


@dataclass(frozen=True, slots=True)
class Page:
    """What a header says of its page."""

    unpacked: int
    """Bytes of the page when it is decompressed."""
    values: int
    """How many values a data page has, null ones included; of a dictionary none are counted."""
    coding: Coding


class _Thrift:
    """Bytes of the compact protocol, read one item after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def struct(self, *wanted: int) -> tuple[dict[int, int], dict[int, dict[int, int]]]:
        """The integers of a struct by the numbers of their fields, and those of the wanted structs in it."""
        found: dict[int, int] = {}
        within: dict[int, dict[int, int]] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            kind = head & 15
            number = number + (head >> 4) if head >> 4 else self._signed()
            if kind in _INTEGERS:
                found[number] = self._signed()
            elif kind == _STRUCT and number in wanted:
                within[number] = self.struct()[0]
            else:
                self._skip(kind)
        return found, within

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > _LONGEST_NUMBER:
                raise ValueError("a number of more than 64 bits")
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _skip(self, kind: int) -> None:
        if kind in _INTEGERS:
            self._unsigned()
        elif kind in _FIXED:
            self.at += _FIXED[kind]
        elif kind == _BINARY:
            length = self._unsigned()
            self.at += length
        elif kind == _STRUCT:
            self.struct()
        elif kind in _LISTS:
            head = self._byte()
            size = head >> 4 if head >> 4 != _LONG_LIST else self._unsigned()
            self._skip_all([head & 15], size)
        elif kind == _MAP:
            size = self._unsigned()
            head = self._byte() if size else 0
            self._skip_all([head >> 4, head & 15], size)
        else:
            raise ValueError(f"no type of Thrift has the number {kind}")

    def _skip_all(self, kinds: list[int], size: int) -> None:
        for _ in range(size):
            for kind in kinds:
                # within a list a truth value is a byte
                self._skip(_BYTE if kind in _BOOLEANS else kind)
                if self.at > len(self._data):
                    raise IndexError


class Window:
    """A file that is read here and there, mostly a little behind where it was read before."""

    def __init__(self, file: pa.NativeFile) -> None:
        """Look into an open file."""
        self._file = file
        self._start, self._data = 0, b""

    def read(self, start: int, size: int) -> bytes:
        """Return some bytes of the file; each page of an object store is not asked for on its own."""
        skipped = start - self._start
        if skipped < 0 or skipped + size > len(self._data):
            self._start, self._data, skipped = start, self._file.read_at(max(size, _AHEAD), start), 0
        return self._data[skipped : skipped + size]


def read_pages(file: Window, start: int, end: int) -> Iterator[Page]:
    """Yield the pages between two places of a file. Raises `ValueError` for what is none."""
    while start < end:
        (header, described), length = _read_header(file, start, end)
        unpacked, packed = header.get(_UNPACKED, -1), header.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise ValueError(f"the header of a page at byte {start:,} has no sizes")
        field, encoding = _DATA.get(header.get(_KIND, -1), (0, 0))
        values = described.get(field, {})
        yield Page(unpacked, values.get(_VALUES, 0), _CODINGS.get(values.get(encoding, 0), "plain"))
        start += length + packed


def _read_header(
    file: Window, start: int, end: int
) -> tuple[tuple[dict[int, int], dict[int, dict[int, int]]], int]:
    size = _HEADER
    while size <= _LONGEST_HEADER:
        thrift = _Thrift(file.read(start, min(size, end - start)))
        try:
            return thrift.struct(*_DESCRIBED), thrift.at
        except IndexError:
            size *= 32
        except RecursionError:
            break
    raise ValueError(f"no header of a page at byte {start:,}")
