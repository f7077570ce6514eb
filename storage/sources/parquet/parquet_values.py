"""Adds up the bytes of the values in a column of a Parquet file, with little of it in memory.

What a dictionary holds is read once, and of each value only its place there. Values that begin as the one before are
read a few at a time, for each may be as long as its page.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakejoin.storage.sources.parquet.parquet_pages import Page

_PIECE = 1 << 26
"""Bytes of values that are read at once."""
_ROWS = 1 << 16
"""Rows whose places in a dictionary are read at once."""
_BUFFER = 1 << 16


@dataclass
class Chunk:
    """A column of a row group."""

    group: int
    path: str
    repeated: bool
    least: int = 0
    """Bytes that its values have in any case."""
    most: int = 0
    """Bytes that its values have at most, as far as is known."""
    from_dictionary: int = 0
    """How many values stand in the dictionary, which has `dictionary` bytes."""
    dictionary: int = 0
    prefixed: bool = False
    """Some value begins as the one before, with no more than a number to say so."""
    page: int = 0
    """Bytes of the largest page."""

    @property
    def is_unreadable(self) -> bool:
        """Whether a row may be any number of long values, which would all be read at once."""
        return self.repeated and self.prefixed

    def add(self, page: Page) -> None:
        """Count one more page of texts; what stands in the dictionary is not yet in `most`."""
        self.least += page.unpacked
        self.page = max(self.page, page.unpacked)
        if not page.values:
            self.dictionary = max(self.dictionary, page.unpacked)
        match page.coding:
            case "plain":
                self.most += page.unpacked
            case "dictionary":
                self.from_dictionary += page.values
            case "prefix":
                self.prefixed = True
                self.most += page.values * page.unpacked


class Columns:
    """A file whose columns can be read one by one, with no more than a page of it in memory."""

    def __init__(self, file: pa.NativeFile, footer: pq.FileMetaData) -> None:
        self._file, self._footer = file, footer

    @cached_property
    def _plain(self) -> pq.ParquetFile:
        return self._open([])

    @cached_property
    def _by_dictionary(self) -> pq.ParquetFile:
        schema = self._footer.schema
        columns = (schema.column(i) for i in range(len(schema)))
        return self._open([column.path for column in columns if column.physical_type == "BYTE_ARRAY"])

    def _open(self, read_dictionary: list[str]) -> pq.ParquetFile:
        return pq.ParquetFile(
            self._file, metadata=self._footer, read_dictionary=read_dictionary, pre_buffer=False, buffer_size=_BUFFER,
            arrow_extensions_enabled=False,
        )  # fmt: skip

    def read(self, chunk: Chunk, rows: int, *, plain: bool = False) -> Iterator[pa.Array]:
        """Yield the values of a chunk, so many rows at a time, with their dictionary unless they are read `plain`."""
        file = self._plain if plain else self._by_dictionary
        batches = file.iter_batches(rows, row_groups=[chunk.group], columns=[chunk.path], use_threads=False)
        for batch in batches:
            for column in batch.columns:
                yield from _leaves(column)


def narrow_by_longest(columns: Columns, chunk: Chunk) -> int:
    """Return the most that a chunk has if each value from the dictionary is its longest."""
    if not chunk.from_dictionary or chunk.is_unreadable:
        return chunk.most
    # a row brings all of the dictionary; one without values none of it
    first = next(columns.read(chunk, 1), None)
    entries = first.dictionary if first is not None and _is_dictionary(first) else []
    if not len(entries):
        return chunk.most
    longest = int(pc.max(pc.binary_length(entries)).as_py())
    return max(chunk.most - chunk.from_dictionary * (chunk.dictionary - longest), chunk.least)


def narrow_by_lengths(columns: Columns, chunk: Chunk, most: int) -> int:
    """Return the bytes of all values, added up until they are more than `most`."""
    if chunk.is_unreadable:
        return chunk.most
    rows = max(_PIECE // max(chunk.page, 1), 1) if chunk.prefixed else _ROWS
    found = 0
    for leaf in columns.read(chunk, min(rows, _ROWS), plain=chunk.prefixed):
        lengths = pc.binary_length(leaf.dictionary if _is_dictionary(leaf) else leaf)
        found += pc.sum(lengths.take(leaf.indices) if _is_dictionary(leaf) else lengths).as_py() or 0
        if found > most:
            break
    return max(found, chunk.least)


def _is_dictionary(array: pa.Array) -> bool:
    return isinstance(array, pa.DictionaryArray)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The values within lists, maps and structs."""
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray | pa.MapArray):
        yield from _leaves(array.flatten())
    elif isinstance(array, pa.StructArray):
        for field in array.flatten():
            yield from _leaves(field)
    else:
        yield array
